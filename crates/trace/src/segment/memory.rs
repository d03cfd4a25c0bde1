//! Mapped memory: the only place that asks the kernel for it. A page is made present before anybody writes to it,
//! because writing to a mapped file on a full disk kills the process (SIGBUS).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A shared mapping of a whole file, or a private copy of one.
pub(crate) struct Memory {
    base: *mut u8,
    bytes: usize,
    shared: bool,
}

// SAFETY: the memory is only reached through atomics, and lives as long as `Memory`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

// Linux 5.14; older kernels answer EINVAL and we allocate by fallocate.
const MADV_POPULATE_WRITE: libc::c_int = 23;

impl Memory {
    /// Maps a file for reading and writing, shared with every other process that maps it.
    pub fn map(file: &File, bytes: usize) -> io::Result<Memory> {
        Memory::take(bytes, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// A copy in our own memory, page-aligned like a mapping: for files that nobody writes any more and that
    /// we do not trust.
    pub fn copy(bytes: &[u8]) -> io::Result<Memory> {
        let memory = Memory::take(bytes.len(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
        // SAFETY: fresh memory of at least that size, which nobody else knows yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.base, bytes.len()) };
        Ok(memory)
    }

    fn take(bytes: usize, flags: libc::c_int, file: libc::c_int) -> io::Result<Memory> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at an address the kernel chooses aliases nothing of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Memory { base: base.cast(), bytes, shared: flags == libc::MAP_SHARED })
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes pages present, so that later writes can neither fail nor take a page fault.
    /// `path` serves kernels that cannot do it through the mapping; no descriptor is kept, for the workload
    /// may close all of them and ours would then be somebody else's file.
    pub fn populate(&self, at: usize, bytes: usize, path: &Path) -> io::Result<()> {
        let start = at & !4095;
        let end = (at + bytes).next_multiple_of(4096).min(self.bytes);
        if at + bytes > self.bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the range lies inside our mapping and starts on a page.
        let rc = unsafe { libc::madvise(self.base.add(start).cast(), end - start, MADV_POPULATE_WRITE) };
        if rc == 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINVAL) => allocate(path, start, end - start),
            error if error.raw_os_error() == Some(libc::EFAULT) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            error => Err(error),
        }
    }

    /// Frees the pages, here and in the file. They read as zero afterwards.
    pub fn discard(&self) {
        // SAFETY: the whole of our own mapping. Where the file system cannot do it nothing happens.
        unsafe { libc::madvise(self.base.cast(), self.bytes, libc::MADV_REMOVE) };
    }

    /// Lets go of the pages of a shared mapping: they stay in the file, and come back when they are touched.
    pub fn forget_pages(&self) {
        if self.shared {
            // SAFETY: the mapping is ours and shared, so nothing that was written to it is lost.
            unsafe { libc::madvise(self.base.cast(), self.bytes, libc::MADV_DONTNEED) };
        }
    }

    /// A shared object at an offset. None when it would reach outside.
    ///
    /// # Safety
    /// `T` consists of atomics only: any bytes are a value of it, and writers elsewhere are no data race.
    pub unsafe fn at<T>(&self, offset: usize) -> Option<&T> {
        // SAFETY: as for `slice`.
        unsafe { self.slice::<T>(offset, 1) }.map(|slice| &slice[0])
    }

    /// As [`Memory::at`], for `count` objects.
    ///
    /// # Safety
    /// As for [`Memory::at`].
    pub unsafe fn slice<T>(&self, offset: usize, count: usize) -> Option<&[T]> {
        let end = count.checked_mul(size_of::<T>())?.checked_add(offset)?;
        let aligned = (self.base as usize).wrapping_add(offset).is_multiple_of(align_of::<T>());
        // SAFETY: in bounds and aligned, checked here; validity by the caller's promise.
        (end <= self.bytes && aligned)
            .then(|| unsafe { std::slice::from_raw_parts(self.base.add(offset).cast(), count) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours and every reference into it borrows `self`.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

fn allocate(path: &Path, at: usize, bytes: usize) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    // SAFETY: a plain system call on a descriptor that lives until the end of this function.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), at as i64, bytes as i64) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
