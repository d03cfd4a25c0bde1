//! How this process asks the system for memory while it reads a trace, how much it may take, and what is said when there is no
//! more. The recorder, which must stay small, leaves the allocator as it is.

use crate::unfinished;
use analysis::phrase;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// Less is too little to say anything at all.
const LEAST: u64 = 256 << 20;

/// The columns of a large trace and what is computed from them come and go by the hundred megabytes. Given back to the system
/// each time, they would cost a fault for every page again: a tenth of the time that a diagnosis takes. Kept, they are used again,
/// by whichever thread: one arena for all takes a tenth less memory than one for each, and large columns are no contention.
pub fn keep_what_is_freed() {
    #[cfg(target_env = "gnu")]
    for (option, number) in [
        (libc::M_MMAP_THRESHOLD, 1 << 30),
        (libc::M_TRIM_THRESHOLD, 1 << 28),
        (libc::M_TOP_PAD, 1 << 24),
        (libc::M_ARENA_MAX, 1),
    ] {
        // SAFETY: mallopt sets a number of the allocator, under the allocator's own lock; it takes no pointer.
        unsafe { libc::mallopt(option, number) };
    }
}

/// From here on this process takes no more than that, and says so when it would need more. None: what is free now, so that a
/// small file that becomes a large trace does not take the memory of everybody else.
pub fn limit(asked: Option<u64>) {
    let most = asked.unwrap_or_else(|| (free() / 10 * 9).max(LEAST));
    // SAFETY: the calls read and fill plain data.
    let allowed = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_DATA, &mut limit);
        limit.rlim_cur = limit.rlim_cur.min(most);
        libc::setrlimit(libc::RLIMIT_DATA, &limit);
        let mut space: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_AS, &mut space);
        limit.rlim_cur.min(space.rlim_cur)
    };
    when_none_is_left(
        &format!(
            "not enough memory: this trace takes more than the {} that reading it may take. Allow more with \
             --max-memory-mb (or `ulimit -v`), or read it where there is more.",
            phrase::bytes(allowed)
        ),
        1,
    );
}

/// What is said on stderr, and the exit code, when memory cannot be had.
pub fn when_none_is_left(text: &str, code: i32) {
    if let Ok(text) = CString::new(format!("inferscope: {text}\n")) {
        CODE.store(code, Ordering::SeqCst);
        // The one before is left: somebody may just be reading it.
        TEXT.store(text.into_raw(), Ordering::SeqCst);
    }
}

static TEXT: AtomicPtr<c_char> = AtomicPtr::new(null_mut());
static CODE: AtomicI32 = AtomicI32::new(1);

/// The system's allocator. What it cannot give ends the process with a sentence, where there is one, and else as usual.
pub struct Allocator;

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end();
    }
    memory
}

/// Nothing is allocated here, and nothing is unwound: half of what is in memory may be in the middle of a change.
#[cold]
fn end() {
    let text = TEXT.load(Ordering::SeqCst);
    if text.is_null() {
        return;
    }
    unfinished::remove_file();
    // SAFETY: plain system calls; the text ends with a zero and is never freed.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.cast(), libc::strlen(text));
        libc::_exit(CODE.load(Ordering::SeqCst));
    }
}

/// What the machine, and the group of processes that we are in, have left.
fn free() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let machine = kilobytes("MemAvailable:").map(|free| (free + kilobytes("SwapFree:").unwrap_or(0)) << 10);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let top = Path::new("/sys/fs/cgroup");
    let inner = top.join(group);
    let groups = inner.ancestors().take_while(|folder| folder.starts_with(top)).filter_map(|folder| {
        let number = |name: &str| std::fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
        Some(number("memory.max")?.saturating_sub(number("memory.current")?))
    });
    groups.chain(machine).min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_free_is_more_than_nothing_and_less_than_all_that_can_be() {
        let free = super::free();
        assert!((1 << 20..1 << 50).contains(&free), "{free}");
    }
}
