//! The kernel's permissions, the clock, and room in memory and on disk.

use super::{Line, Mark};
use std::ffi::CString;
use std::fs::read_to_string;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

pub fn recordable() -> Vec<Line> {
    let package = match recorder::package() {
        Some(path) => Ok(format!("the Python package is in {}", path.display())),
        None => Err("the Python package is not installed next to this command: `pip install inferscope`".to_owned()),
    };
    let inside = package.clone().map(|_| "inferscope run --calls (off by default)".to_owned());
    let native = recorder::can_see_native();
    vec![
        Line::of(children(), "stacks of started commands"),
        Line::of(others(), "stacks of other processes"),
        Line::of(native.map(|()| "by perf events (--native=false for none)".into()), "native frames"),
        Line::of(package, "scopes, steps, marks"),
        Line::of(inside, "calls"),
        Line::of(readable("/proc/self/stat", "from /proc"), "memory and threads"),
        Line::of(readable("/proc/self/numa_maps", "per node, from /proc/PID/numa_maps"), "memory by NUMA node"),
        Line::of(readable("/proc/pressure/cpu", "PSI, from /proc/pressure"), "pressure"),
    ]
}

/// Tries on a child that waits for us.
fn children() -> Result<String, String> {
    let child = Command::new("sh").args(["-c", "read wait"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut child = child.map_err(|error| format!("cannot start a shell to test it: {error}"))?;
    let result = recorder::can_sample(child.id());
    // Its input closes here, so it ends by itself.
    drop(child.stdin.take());
    _ = child.wait();
    result.map(|()| "inferscope run".into())
}

fn others() -> Result<String, String> {
    let scope = read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let capable = capable();
    match scope.trim() {
        "3" => Err("ptrace is disabled until reboot (kernel.yama.ptrace_scope=3)".into()),
        "2" if !capable => Err("only root may use ptrace (kernel.yama.ptrace_scope=2): use sudo".into()),
        "1" if !capable => Err(
            "ptrace is restricted (kernel.yama.ptrace_scope=1): use `inferscope run`, sudo, or `sudo sysctl kernel.yama.ptrace_scope=0`"
                .into(),
        ),
        _ if capable => Ok("inferscope attach, processes of any user".into()),
        _ => Ok("inferscope attach, processes of this user".into()),
    }
}

/// CAP_SYS_PTRACE is bit 19.
fn capable() -> bool {
    let mask = status("CapEff:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_some_and(|mask| mask & 1 << 19 != 0)
}

fn status(key: &str) -> Option<String> {
    let text = read_to_string("/proc/self/status").ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned())
}

fn readable(path: &str, how: &str) -> Result<String, String> {
    match std::fs::read(path) {
        Ok(_) => Ok(how.to_owned()),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

pub fn machine(shared_memory: u64) -> Vec<Line> {
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or("unknown".into(), |cores| cores.to_string());
    let seccomp = match status("Seccomp:").as_deref() {
        Some("0") | None => "no filter",
        _ => "a filter is active (a container?)",
    };
    let capable = if capable() { "yes" } else { "no" };
    let clock = match trace::Source::detect() {
        trace::Source::Tsc => Line::new(Mark::Yes, "clock", "the CPU's time-stamp counter, read without a system call"),
        trace::Source::Monotonic => Line::new(
            Mark::Note,
            "clock",
            "CLOCK_MONOTONIC, slower: the kernel does not trust the CPU's time-stamp counter",
        ),
    };
    let confined = match crate::landlock::version() {
        Ok(version) => {
            Ok(format!("by Landlock (version {version}): they can only read the trace and write the output"))
        }
        Err(error) => Err(format!("not confined: Landlock is not available ({error})")),
    };
    vec![
        Line::of(confined, "sandbox of `analyze` and others"),
        Line::new(Mark::Note, "kernel", kernel.trim()),
        Line::new(Mark::Note, "usable cores", cores),
        Line::new(Mark::Note, "NUMA nodes", nodes()),
        Line::new(Mark::Note, "seccomp", seccomp),
        Line::new(Mark::Note, "CAP_SYS_PTRACE", capable),
        clock,
        room("/dev/shm", "/dev/shm", shared_memory, "buffers go to disk instead, which is slower"),
        room(".", "disk here", 1 << 30, "a trace takes 5 to 20 bytes per event"),
    ]
}

fn nodes() -> String {
    let entries = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let node = |name: &str| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok());
    match entries.filter(|entry| entry.file_name().to_str().is_some_and(node)).count() {
        0 => "unknown".into(),
        count => count.to_string(),
    }
}

fn room(path: &str, what: &str, wanted: u64, otherwise: &str) -> Line {
    match free_bytes(Path::new(path)) {
        Some(free) if free >= wanted => Line::new(Mark::Yes, what, format!("{} free", report::bytes(free))),
        Some(free) => Line::new(Mark::No, what, format!("only {} free: {otherwise}", report::bytes(free))),
        None => Line::new(Mark::No, what, format!("not usable: {otherwise}")),
    }
}

fn free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: `stat` is plain data that the call fills.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut stat) == 0).then_some(stat)?
    };
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
