//! Whether a thread has run since its stack was read, by what the scheduler counts of it: the stack of a thread that has not
//! run is the same. Exact, and a fifth to a fiftieth of what reading a stack costs.

use crate::proc::Stat;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Of /proc/PID/task/TID/schedstat: how long the thread was on a processor, and how often it came to be on one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    ran_ns: u64,
    slices: u64,
}

impl Counts {
    fn parse(text: &[u8]) -> Option<Counts> {
        let mut words = text.trim_ascii_end().split(|byte| *byte == b' ').map(number);
        let (ran_ns, _, slices) = (words.next()??, words.next()??, words.next()??);
        // A kernel that does not count says 0; a thread that is there has run.
        (slices > 0).then_some(Counts { ran_ns, slices })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let next = |number: u64, byte: &u8| number.checked_mul(10)?.checked_add(u64::from((*byte as char).to_digit(10)?));
    digits.iter().try_fold(0, next).filter(|_| !digits.is_empty())
}

/// What is known of a thread from when its stack was last read.
#[derive(Default)]
pub(super) struct LastRead {
    /// Its counts, if it was off the processors all the while.
    at_rest: Option<Counts>,
}

impl LastRead {
    /// Whether the thread has not run since.
    pub fn is_current(&self, counts: Option<Counts>) -> bool {
        counts.is_some() && self.at_rest == counts
    }

    /// The stack was read. The counts of a thread that is on a processor stand still until the next tick of the clock, so
    /// equal counts say nothing of a thread that may run: only one that slept in between, and did not wake up, was at rest.
    pub fn set(&mut self, before: Option<Counts>, runnable: Option<bool>, after: impl FnOnce() -> Option<Counts>) {
        self.at_rest = before.filter(|_| runnable == Some(false)).filter(|before| after() == Some(*before));
    }

    pub fn forget(&mut self) {
        self.at_rest = None;
    }
}

/// The kernel's files of one thread.
pub(super) struct KernelThread {
    folder: String,
    schedstat: Option<KeptOpen>,
}

impl KernelThread {
    pub fn at(pid: u32, thread: i32) -> KernelThread {
        KernelThread { schedstat: None, folder: format!("/proc/{pid}/task/{thread}") }
    }

    /// For one that is asked often.
    pub fn kept_open(pid: u32, thread: i32) -> KernelThread {
        let at = KernelThread::at(pid, thread);
        KernelThread { schedstat: KeptOpen::new(&format!("{}/schedstat", at.folder)), ..at }
    }

    pub fn counts(&self) -> Option<Counts> {
        // Three numbers of at most 20 digits.
        let mut text = [0; 64];
        let length = match &self.schedstat {
            Some(kept) => kept.read(&mut text),
            None => File::open(format!("{}/schedstat", self.folder)).and_then(|mut file| file.read(&mut text)),
        };
        Counts::parse(&text[..length.ok()?])
    }

    /// Whether it runs or waits for a processor. None: there is no such thread, or it is another container's number.
    pub fn is_runnable(&self) -> Option<bool> {
        let mut text = [0; 512];
        let length = File::open(format!("{}/stat", self.folder)).and_then(|mut file| file.read(&mut text)).ok()?;
        Stat::state(&String::from_utf8_lossy(&text[..length])).map(|state| state == b'R')
    }
}

/// A file that stays open, which makes reading it four times as fast. Not every thread's, for the recorder needs others too.
struct KeptOpen(File);

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Half of what this process may have open, and no more than a large pool of threads needs.
static MOST_OPEN: LazyLock<usize> = LazyLock::new(|| {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives the call.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if asked == 0 { (limit.rlim_cur / 2).min(8192) as usize } else { 0 }
});

impl KeptOpen {
    fn new(path: &str) -> Option<KeptOpen> {
        if OPEN.fetch_add(1, Ordering::Relaxed) < *MOST_OPEN
            && let Ok(file) = File::open(path)
        {
            return Some(KeptOpen(file));
        }
        OPEN.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// By the system call itself: libc's function also prepares for the thread to be cancelled, here a twentieth of the cost.
    fn read(&self, text: &mut [u8]) -> std::io::Result<usize> {
        // SAFETY: the kernel writes no more than `text` is long.
        let read = unsafe { libc::syscall(libc::SYS_pread64, self.0.as_raw_fd(), text.as_mut_ptr(), text.len(), 0) };
        usize::try_from(read).map_err(|_| std::io::Error::last_os_error())
    }
}

impl Drop for KeptOpen {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn counts(ran_ns: u64, slices: u64) -> Option<Counts> {
        Some(Counts { ran_ns, slices })
    }

    #[test]
    fn a_kernel_that_does_not_count_says_nothing() {
        assert_eq!(Counts::parse(b"74174 62438 2\n"), counts(74174, 2));
        assert_eq!(Counts::parse(b"0 0 0\n"), None);
        for damaged in [&b""[..], b"7", b"7 8", b"7  8", b"7 8 x", b"7 -8 9", b"7 8 99999999999999999999"] {
            assert_eq!(Counts::parse(damaged), None);
        }
    }

    #[test]
    fn only_a_thread_that_slept_while_it_was_read_and_has_not_run_since_is_unchanged() {
        let current = |before, runnable, after, now| {
            let mut last = LastRead::default();
            last.set(before, runnable, || after);
            last.is_current(now)
        };
        let (rested, ran, woke) = (counts(5, 1), counts(6, 1), counts(5, 2));
        assert!(current(rested, Some(false), rested, rested));
        // It ran, or came to a processor, since then or while it was read.
        assert!(!current(rested, Some(false), rested, ran) && !current(rested, Some(false), rested, woke));
        assert!(!current(rested, Some(false), ran, ran) && !current(rested, Some(false), woke, rested));
        // On a processor, or waiting for one: its counts may stand still although it runs.
        assert!(!current(rested, Some(true), rested, rested));
        // Nothing is known of it.
        assert!(!current(rested, None, rested, rested) && !current(None, Some(false), None, None));
        let mut last = LastRead::default();
        assert!(!last.is_current(rested) && !last.is_current(None));
        last.set(rested, Some(false), || rested);
        last.forget();
        assert!(!last.is_current(rested));
    }

    #[test]
    fn a_thread_that_waits_is_at_rest_until_it_is_woken() {
        let (wake, woken) = channel::<()>();
        let (answer, answered) = channel();
        let waiting = std::thread::spawn(move || {
            // SAFETY: a plain question about this thread.
            answer.send(unsafe { libc::gettid() }).unwrap();
            while woken.recv().is_ok() {
                answer.send(0).unwrap();
            }
        });
        let kernel = KernelThread::kept_open(std::process::id(), answered.recv().unwrap());
        let mut last = LastRead::default();
        let rest = |last: &mut LastRead| {
            while !last.is_current(kernel.counts()) {
                last.set(kernel.counts(), kernel.is_runnable(), || kernel.counts());
            }
        };
        rest(&mut last);
        wake.send(()).unwrap();
        answered.recv().unwrap();
        assert!(!last.is_current(kernel.counts()));
        rest(&mut last);
        drop(wake);
        waiting.join().unwrap();
        assert!(!last.is_current(kernel.counts()));
    }
}
