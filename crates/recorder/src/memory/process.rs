//! Memory of a process: resident, faults and CPU time often; what needs a walk over its page tables seldom.

use crate::counters::Counters;
use crate::proc::{self, Stat};
use std::fs;
use trace::counters as counter_names;
use trace::tables::WHOLE_PROCESS;

/// From /proc/PID/stat: cheap, so it is read at the full rate.
pub(crate) fn sample(process: i32, pid: u32, stat: &Stat, counters: &mut Counters) {
    // SAFETY: a plain question.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64;
    counters.set(process, WHOLE_PROCESS, counter_names::RSS_BYTES, stat.resident_pages * page);
    counters.set(process, WHOLE_PROCESS, counter_names::MINOR_FAULTS, stat.minor_faults);
    counters.set(process, WHOLE_PROCESS, counter_names::MAJOR_FAULTS, stat.major_faults);
    if let Some(spent) = proc::cpu_ns(pid) {
        counters.set(process, WHOLE_PROCESS, counter_names::CPU_NS, spent);
    }
}

/// From /proc/PID/smaps_rollup. Err: why it cannot be read.
pub(crate) fn sample_shared(process: i32, pid: u32, counters: &mut Counters) -> std::io::Result<()> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    for (line, counter) in [("Pss:", counter_names::PSS_BYTES), ("Swap:", counter_names::SWAP_BYTES)] {
        if let Some(kilobytes) = kilobytes(&text, line) {
            counters.set(process, WHOLE_PROCESS, counter, kilobytes * 1024);
        }
    }
    Ok(())
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The processor that the first thread last ran on.
pub(crate) fn processor(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().nth(39 - 3)?.parse().ok()
}

/// Whether a reading failed only because the process is gone.
pub(crate) fn is_gone(error: &std::io::Error, pid: u32) -> bool {
    error.raw_os_error() == Some(libc::ESRCH) || proc::stat(pid).is_none_or(|stat| matches!(stat.state, b'Z' | b'X'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Dictionary;
    use std::sync::Arc;

    #[test]
    fn our_own_memory_is_plausible() {
        let me = std::process::id();
        let mut counters = Counters::new(Arc::new(Dictionary::new(0)));
        sample(0, me, &proc::stat(me).unwrap(), &mut counters);
        let read = |counters: &Counters, name| counters.get(0, WHOLE_PROCESS, name).unwrap();
        assert!(read(&counters, "rss_bytes") > 1 << 20 && read(&counters, "cpu_ns") > 0);
        sample_shared(0, me, &mut counters).unwrap();
        assert!(read(&counters, "pss_bytes") > 0);
        assert_eq!(kilobytes("Rss: 7 kB\nPss:     12 kB\n", "Pss:"), Some(12));
    }
}
