//! Reading at an address. While the layout of the interpreter is a guess, every page is tried first; once it was checked, addresses are only looked
//! at for what no address can be.

use std::ptr;

pub trait Memory {
    /// Whether so many bytes can be read here.
    fn has(&self, at: usize, bytes: usize) -> bool;

    #[inline(always)]
    fn word(&self, at: usize) -> Option<usize> {
        // SAFETY: it can be read, and is as long as a word. Another thread may write it at the same time, as the hash of a string.
        (at.is_multiple_of(8) && self.has(at, 8)).then(|| unsafe { ptr::read_volatile(at as *const usize) })
    }

    #[inline(always)]
    fn number(&self, at: usize) -> Option<i32> {
        // SAFETY: as for `word`.
        (at.is_multiple_of(4) && self.has(at, 4)).then(|| unsafe { ptr::read_volatile(at as *const i32) })
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> Option<u8> {
        // SAFETY: as for `word`.
        self.has(at, 1).then(|| unsafe { ptr::read_volatile(at as *const u8) })
    }

    /// What does not change as long as its object lives: characters and tables.
    #[inline(always)]
    fn bytes<'a>(&self, at: usize, count: usize) -> Option<&'a [u8]> {
        // SAFETY: they can be read; whoever asks lets go of them before the reading of the stack ends, until when their object is alive.
        self.has(at, count).then(|| unsafe { std::slice::from_raw_parts(at as *const u8, count) })
    }
}

/// Addresses of a layout that was checked. All that is read belongs to the calling thread's own frames, which cannot end before it returns: an
/// address that could be one, is one.
pub struct Checked;

/// The first page is never mapped, and the upper half of all addresses is the kernel's.
const LOWEST: usize = 4096;
const HIGHEST: usize = 1 << 47;

impl Memory for Checked {
    #[inline(always)]
    fn has(&self, at: usize, bytes: usize) -> bool {
        (LOWEST..HIGHEST).contains(&at) && bytes < HIGHEST - at
    }
}

/// Addresses that may be wrong: the kernel is asked to write a byte of each page into a pipe, which it refuses where there is none. Unlike the
/// calls that read another process's memory, no sandbox forbids that.
pub struct Tried {
    pipe: [i32; 2],
}

const PAGE: usize = 4096;
/// More than any object that is looked at has.
const MOST: usize = 4 << 20;

impl Tried {
    pub fn new() -> Option<Tried> {
        let mut pipe = [-1; 2];
        // SAFETY: room for two descriptors.
        (unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } == 0).then_some(Tried { pipe })
    }

    fn is_mapped(&self, at: usize) -> bool {
        let mut byte = 0u8;
        // SAFETY: the kernel reads one byte, or says that it cannot; and gives it back into a byte of ours.
        unsafe {
            libc::write(self.pipe[1], at as *const _, 1) == 1
                && libc::read(self.pipe[0], (&raw mut byte).cast(), 1) == 1
        }
    }
}

impl Memory for Tried {
    fn has(&self, at: usize, bytes: usize) -> bool {
        let Some(last) = at.checked_add(bytes.saturating_sub(1)).filter(|_| bytes <= MOST) else { return false };
        (at / PAGE..=last / PAGE).all(|page| self.is_mapped((page * PAGE).max(at)))
    }
}

impl Drop for Tried {
    fn drop(&mut self) {
        // SAFETY: our own descriptors.
        self.pipe.iter().for_each(|one| unsafe {
            libc::close(*one);
        });
    }
}
