//! Why the kernel gives no native stacks, in words that name the setting to change.

use super::event::Event;
use std::fs;
use std::io;

/// Tries it on this very thread. Err: what forbids it and what to change.
pub(crate) fn check() -> Result<(), String> {
    // SAFETY: asks for the number of this thread.
    let thread = unsafe { libc::gettid() };
    Event::open(thread).map(drop).map_err(|error| explain(&error))
}

/// What forbids it.
pub(crate) fn explain(error: &io::Error) -> String {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let filtered = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filtered = filtered.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() != "0"));
    said(error, paranoid.and_then(|text| text.trim().parse().ok()), filtered)
}

/// A level above 2 is of some distributions: nobody without the capability may.
const MOST_PARANOID: i32 = 2;

fn said(error: &io::Error, paranoid: Option<i32>, filtered: bool) -> String {
    match (error.raw_os_error(), paranoid) {
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > MOST_PARANOID => format!(
            "perf events are restricted (kernel.perf_event_paranoid={level}). Run `sudo sysctl kernel.perf_event_paranoid=2`, or give \
             inferscope CAP_PERFMON (in a container: --cap-add=PERFMON)."
        ),
        (Some(libc::EACCES | libc::EPERM | libc::ENOSYS), _) if filtered => {
            "a seccomp filter blocks perf_event_open. In a container, start it with --cap-add=PERFMON (or --security-opt \
             seccomp=unconfined)."
                .into()
        }
        (Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP), _) | (_, None) => {
            format!("this kernel has no perf events ({error}).")
        }
        (Some(libc::EPERM), _) => format!(
            "the kernel refuses perf events ({error}): they lock more memory than this user may (kernel.perf_event_mlock_kb, ulimit -l), \
             or the process is another user's. Run inferscope with sudo."
        ),
        (Some(libc::EMFILE), _) => "too many open files (ulimit -n).".into(),
        _ => format!("the kernel refuses perf events ({error})."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forbids_it_is_named_with_what_to_change() {
        let of = |code, level, filtered| said(&io::Error::from_raw_os_error(code), level, filtered);
        let ubuntu = of(libc::EACCES, Some(4), true);
        assert!(ubuntu.contains("perf_event_paranoid=4") && ubuntu.contains("sysctl kernel.perf_event_paranoid=2"));
        assert!(ubuntu.contains("CAP_PERFMON"));
        assert!(of(libc::EPERM, Some(2), true).contains("seccomp"));
        assert!(of(libc::EPERM, Some(2), false).contains("perf_event_mlock_kb"));
        assert!(of(libc::ENOSYS, None, false).contains("no perf events"));
        assert!(of(libc::EMFILE, Some(1), false).contains("ulimit -n"));
        assert!(of(libc::EINVAL, Some(1), false).contains("refuses"));
    }
}
