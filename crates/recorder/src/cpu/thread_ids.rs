//! Which kernel thread a Python thread is. Python 3.11 and later say it themselves; before, the Python thread id is the
//! address of the C library's own record of the thread, in which the kernel's number stands at a place that we find.

use super::remote_memory::read_memory;
use super::scheduling::KernelThread;
use std::collections::HashSet;

#[derive(Default)]
pub(crate) struct ThreadIds {
    /// Where in that record the number stands, once found.
    offset: Option<usize>,
}

/// glibc's record is 2304 bytes long, musl's much shorter; the number is in the first kilobyte of either.
const SEARCHED: usize = 1024;

impl ThreadIds {
    /// The kernel's number of a Python thread, if it is one of `threads`.
    pub fn find(&mut self, pid: u32, python_id: u64, threads: &HashSet<i32>) -> Option<i32> {
        let address = usize::try_from(python_id).ok()?;
        if let Some(offset) = self.offset {
            let mut bytes = [0; 4];
            read_memory(pid, address + offset, &mut bytes).ok()?;
            return Some(i32::from_ne_bytes(bytes)).filter(|thread| threads.contains(thread));
        }
        let mut bytes = [0; SEARCHED];
        read_memory(pid, address, &mut bytes).ok()?;
        let numbers = bytes.chunks_exact(4).map(|word| i32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        let (at, thread) = numbers.enumerate().find(|(_, number)| threads.contains(number))?;
        self.offset = Some(at * 4);
        Some(thread)
    }
}

/// Whether the process has the same numbers for its threads as we have. In another container it has its own.
pub(crate) fn are_ours(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_ascii_whitespace().count() == 1)
}

/// The kernel's threads of a process.
pub(crate) fn numbers(pid: u32) -> HashSet<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// The kernel's threads of a process, and which of them run at this moment.
pub(crate) fn threads(pid: u32) -> (HashSet<i32>, HashSet<i32>) {
    let all = numbers(pid);
    let runs = |thread: &&i32| KernelThread::at(pid, **thread).is_runnable() == Some(true);
    let running = all.iter().filter(runs).copied().collect();
    (all, running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_thread_is_found_by_its_address() {
        // SAFETY: plain questions about this thread.
        let (address, thread) = unsafe { (libc::pthread_self(), libc::gettid()) };
        let pid = std::process::id();
        let (all, _) = threads(pid);
        assert!(are_ours(pid) && !are_ours(u32::MAX >> 1));
        let mut ids = ThreadIds::default();
        assert_eq!(ids.find(pid, address, &all), Some(thread));
        assert_eq!(ids.find(pid, address, &all), Some(thread));
        assert_eq!(ids.find(pid, 8, &all), None);
    }
}
