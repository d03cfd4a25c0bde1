//! Makes way for a program that goes on while its trace is completed and looked at. With one thread besides (which is the
//! caller's to see to) this costs the program, where it wants every core, a hundredth of one.

use std::fs;

/// The lowest there is short of the scheduler's idle class: that would get a three-hundredth of a busy core, and whoever
/// called `stop()` waits for the report.
const NICE: i32 = 19;
/// `IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7)`: after everybody else's reads and writes, but not never.
const LAST_TO_READ: libc::c_long = 2 << 13 | 7;

/// All threads of this process, and those that they start. What is refused changes nothing.
pub fn make_way() {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).for_each(lower);
    // Where the kernel shares time between sessions first (autogroups), priorities count only within one. The recorder that
    // the package starts has a session of its own; another's session is not ours to slow down.
    // SAFETY: both ask for a number of this process.
    if unsafe { libc::getsid(0) == libc::getpid() } {
        let _ = fs::write("/proc/self/autogroup", NICE.to_string());
    }
}

fn lower(thread: libc::id_t) {
    // SAFETY: plain system calls about a thread of this process; 1 is IOPRIO_WHO_PROCESS, which means a thread.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, thread, NICE);
        libc::syscall(libc::SYS_ioprio_set, 1, thread, LAST_TO_READ);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_makes_way_with_those_that_it_starts() {
        // SAFETY: asks for a number of the calling thread.
        let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        // SAFETY: the same.
        let reads = || unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) };
        let inside = std::thread::spawn(move || {
            // SAFETY: as above.
            lower(unsafe { libc::gettid() } as libc::id_t);
            std::thread::spawn(move || (nice(), reads())).join().unwrap()
        });
        assert_eq!(inside.join().unwrap(), (NICE, LAST_TO_READ));
    }
}
