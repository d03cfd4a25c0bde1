//! Why the kernel does not let us read another process's memory, in words that name the setting to change.

use super::remote_memory::read_memory;
use std::fmt;
use std::fs;
use std::io;

/// Why the memory of a process cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unreadable {
    /// It is gone, or becoming another program at this very moment.
    Ended,
    /// What forbids it and what to change.
    Forbidden(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Unreadable::Ended => "the process has ended",
            Unreadable::Forbidden(why) => why,
        })
    }
}

/// Tries to read one byte of the process.
pub(crate) fn check(pid: u32) -> Result<(), Unreadable> {
    match read_something(pid) {
        Ok(()) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(Unreadable::Ended),
        Err(error) => Err(Unreadable::Forbidden(explain(pid, &error))),
    }
}

fn read_something(pid: u32) -> io::Result<()> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let readable = maps.lines().find(|line| line.split(' ').nth(1).is_some_and(|access| access.starts_with('r')));
    let start = readable.and_then(|line| usize::from_str_radix(line.split('-').next()?, 16).ok());
    // A process that is being started, or a zombie, maps nothing.
    let start = start.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    read_memory(pid, start, &mut [0])
}

fn explain(pid: u32, error: &io::Error) -> String {
    let me = std::process::id();
    let byte = 0u8;
    let own = read_memory(me, std::ptr::from_ref(&byte) as usize, &mut [0]);
    if own.is_err() {
        let filtered = status(me, "Seccomp:").is_some_and(|mode| mode.trim() != "0");
        let what = if filtered { "a seccomp filter" } else { "the kernel" };
        return format!(
            "{what} blocks process_vm_readv ({error}). In a container, start it with --cap-add=SYS_PTRACE \
             (or --security-opt seccomp=unconfined)."
        );
    }
    let user = |pid| status(pid, "Uid:").and_then(|ids| ids.split_ascii_whitespace().nth(1)?.parse::<u32>().ok());
    // CAP_SYS_PTRACE is bit 19.
    let capable = status(me, "CapEff:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let capable = capable.is_some_and(|mask| mask & 1 << 19 != 0);
    if let (Some(theirs), Some(ours)) = (user(pid), user(me))
        && theirs != ours
        && !capable
    {
        return format!(
            "it belongs to uid {theirs}, and inferscope runs as uid {ours}. Run inferscope as that user, or with sudo."
        );
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "3" => "ptrace is disabled until reboot (kernel.yama.ptrace_scope=3).".into(),
        scope @ ("1" | "2") if !capable => format!(
            "ptrace is restricted (kernel.yama.ptrace_scope={scope}). Run `sudo sysctl kernel.yama.ptrace_scope=0`, run inferscope with sudo, \
             or start the program with `inferscope run`{}.",
            if scope == "2" { " as root" } else { " (without Python's -I or -S, so that it can permit it)" }
        ),
        _ => format!(
            "the kernel refuses ({error}): the process is protected (it changed its uid, or is not dumpable). \
                      Run inferscope with sudo, or in a container with --cap-add=SYS_PTRACE."
        ),
    }
}

fn status(pid: u32, line: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|text| text.strip_prefix(line)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_may_read_ourselves_and_nobody_may_read_what_is_not_there() {
        assert_eq!(check(std::process::id()), Ok(()));
        assert!(check(u32::MAX >> 1).is_err());
        assert!(!explain(std::process::id(), &io::Error::from_raw_os_error(libc::EPERM)).is_empty());
    }
}
