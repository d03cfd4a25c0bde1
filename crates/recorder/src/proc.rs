//! The few facts about processes that several parts of the recorder ask /proc for.

use std::fs;
use std::time::Duration;

/// What /proc/PID/stat says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stat {
    pub state: u8,
    pub parent: u32,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub threads: u32,
    /// With the pid, the name of a process for ever: pids are used again.
    pub start_ticks: u64,
    pub resident_pages: u64,
    /// Where its stack begins, which differs from program to program that one process runs (execve). 0: unknown.
    pub stack: u64,
    /// A thread of the kernel, which has no program and no memory of its own.
    pub is_kernel: bool,
    /// Being taken apart, by its own end or by a signal.
    pub is_exiting: bool,
}

/// PF_KTHREAD, of the kernel's flags for a task.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// PF_EXITING and PF_SIGNALED, of the same.
const EXITING: u64 = 0x404;

impl Stat {
    /// Only the state: `R` is one that runs or could.
    pub fn state(text: &str) -> Option<u8> {
        text.get(text.rfind(')')? + 1..)?.trim_start().bytes().next()
    }

    pub fn parse(text: &str) -> Option<Stat> {
        // The name may hold spaces and parentheses; it ends at the last one.
        let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        // Numbered as in proc(5), where the state is field 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            state: *fields.first()?.as_bytes().first()?,
            parent: field(4)? as u32,
            minor_faults: field(10)?,
            major_faults: field(12)?,
            threads: field(20)? as u32,
            start_ticks: field(22)?,
            resident_pages: field(24)?,
            stack: field(28).unwrap_or(0),
            is_kernel: field(9)? & KERNEL_THREAD != 0,
            is_exiting: field(9)? & EXITING != 0,
        })
    }
}

pub(crate) fn stat(pid: u32) -> Option<Stat> {
    Stat::parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// Whether exactly this process still runs. One that has ended but was not yet waited for does not.
pub(crate) fn alive(pid: u32, start_ticks: u64) -> bool {
    stat(pid).is_some_and(|stat| stat.start_ticks == start_ticks && !has_ended(pid, &stat))
}

fn has_ended(pid: u32, stat: &Stat) -> bool {
    // The first thread may be gone while others go on.
    matches!(stat.state, b'Z' | b'X')
        && fs::read_dir(format!("/proc/{pid}/task")).map_or(true, |tasks| tasks.count() <= 1)
}

/// Whether a process of this pid runs. Also asked of recorders whose parent was killed, and for whom nobody may ever wait.
pub(crate) fn runs(pid: u32) -> bool {
    stat(pid).map_or_else(|| exists(pid), |stat| !has_ended(pid, &stat))
}

/// Whether it will go on: not one that was killed and is only being taken apart, which may hold its files for a while.
pub(crate) fn goes_on(pid: u32) -> bool {
    let killed = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let pending =
            |key: &str| status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix(key)?.trim(), 16).ok());
        ["SigPnd:", "ShdPnd:"].iter().any(|key| pending(key).is_some_and(|set| set & 1 << (libc::SIGKILL - 1) != 0))
    };
    stat(pid).is_some_and(|stat| !matches!(stat.state, b'Z' | b'X') && !stat.is_exiting) && !killed()
}

/// The same, or it was not waited for yet.
pub(crate) fn exists(pid: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let asked = unsafe { libc::kill(pid as i32, 0) };
    asked == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Rests for so long, less when the process ends meanwhile.
pub(crate) fn rest(pid: u32, time: Duration) {
    // SAFETY: plain system calls; the descriptor is closed before leaving.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        if descriptor < 0 {
            return std::thread::sleep(time);
        }
        let mut ended = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        libc::poll(&mut ended, 1, time.as_millis() as i32);
        libc::close(descriptor);
    }
}

/// The program of a process: the name that it was started by, without its folder.
pub(crate) fn program(pid: u32) -> String {
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = exe.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.or_else(|| Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())).unwrap_or_default()
}

/// CPU time of all threads of a process, ended ones included, to the nanosecond; /proc knows it to 10 ms only.
pub(crate) fn cpu_ns(pid: u32) -> Option<u64> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both outlive the calls that fill them.
    let read =
        unsafe { libc::clock_getcpuclockid(pid as i32, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0 };
    read.then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// When a process started, in CLOCK_MONOTONIC nanoseconds (to the tick: 10 ms).
pub(crate) fn started_ns(start_ticks: u64) -> u64 {
    let read = |clock| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` outlives the call.
        unsafe { libc::clock_gettime(clock, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let suspended = read(libc::CLOCK_BOOTTIME).saturating_sub(read(libc::CLOCK_MONOTONIC));
    // SAFETY: a plain question.
    let hertz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    (start_ticks * (1_000_000_000 / hertz)).saturating_sub(suspended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_killed_does_not_go_on() {
        assert!(goes_on(std::process::id()) && !goes_on(u32::MAX >> 1));
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(goes_on(child.id()));
        child.kill().unwrap();
        // Whether the signal is still pending, or it is gone and was not waited for.
        assert!(!goes_on(child.id()));
        child.wait().unwrap();
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let text = "12 (a) b) R 7 1 1 0 -1 0 100 0 5 0 3 2 0 0 20 0 4 0 777 1000 55 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.minor_faults, stat.major_faults), (b'R', 7, 100, 5));
        assert_eq!((stat.threads, stat.start_ticks, stat.resident_pages), (4, 777, 55));
        assert_eq!((Stat::parse("12 (a"), Stat::state("12 (a")), (None, None));
        assert_eq!(Stat::state(text), Some(b'R'));
        let kernel = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 10 0 0 0";
        assert_eq!((stat.is_kernel, Stat::parse(kernel).map(|stat| stat.is_kernel)), (false, Some(true)));
    }

    #[test]
    fn we_are_alive_and_a_reused_pid_is_not_us() {
        let me = std::process::id();
        let stat = stat(me).unwrap();
        assert!(alive(me, stat.start_ticks) && !alive(me, stat.start_ticks + 1));
        assert!(started_ns(stat.start_ticks) <= trace::clock::monotonic().0);
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        while runs(ended.id()) {
            std::thread::yield_now();
        }
        assert!(exists(ended.id()), "it was not waited for");
        ended.wait().unwrap();
        assert!(!exists(ended.id()) && runs(me));
    }
}
