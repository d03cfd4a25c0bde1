//! One file of a sink while it is written: room that the disk has promised, mapped, with a header that says how much of it is committed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

pub const MAGIC: [u8; 8] = *b"ISTELEM\x01";
/// Magic, and the end of what is committed.
pub const HEADER: usize = 16;

pub struct Mapped {
    file: File,
    path: PathBuf,
    bytes: NonNull<u8>,
    size: usize,
    end: usize,
}

// SAFETY: the mapping is used by its owner only, wherever that is.
unsafe impl Send for Mapped {}

impl Mapped {
    /// A new file. Its room is taken from the disk now: a mapped page that the disk cannot hold would kill the process.
    pub fn create(path: PathBuf, size: usize) -> io::Result<Mapped> {
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        let made = Mapped::map(&file, size);
        let bytes = made.inspect_err(|_| _ = std::fs::remove_file(&path))?;
        let mut mapped = Mapped { file, path, bytes, size, end: HEADER };
        mapped.slice(0, MAGIC.len()).copy_from_slice(&MAGIC);
        mapped.commit();
        Ok(mapped)
    }

    fn map(file: &File, size: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: plain system calls on an open descriptor; the mapping is ours alone.
        let pointer = unsafe {
            let code = libc::posix_fallocate(file.as_raw_fd(), 0, size as libc::off_t);
            if code != 0 {
                return Err(io::Error::from_raw_os_error(code));
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if pointer == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(pointer.cast()).ok_or_else(io::Error::last_os_error)
    }

    /// What somebody else did to the file, so that it takes nothing any more. A mapped page that the file lost would kill the process that touches it.
    pub fn taken(&self) -> Option<&'static str> {
        let metadata = self.file.metadata().ok()?;
        match (metadata.len() < self.size as u64, metadata.nlink()) {
            (true, _) => Some("was truncated by another program"),
            (_, 0) => Some("was removed by another program"),
            _ => None,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn has_room(&self, length: usize) -> bool {
        self.size - self.end >= length
    }

    /// Bytes that are committed, with the header.
    pub fn used(&self) -> usize {
        self.end
    }

    /// There must be room.
    pub fn append(&mut self, bytes: &[u8]) {
        let at = self.end;
        self.slice(at, bytes.len()).copy_from_slice(bytes);
        self.end += bytes.len();
        self.commit();
    }

    fn slice(&mut self, at: usize, length: usize) -> &mut [u8] {
        assert!(at + length <= self.size, "beyond the end of a telemetry file");
        // SAFETY: inside the mapping, by the line above, and borrowed from its only owner.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr().add(at), length) }
    }

    /// What was written before is seen by whoever sees the new end.
    fn commit(&self) {
        // SAFETY: eight bytes at a multiple of eight inside the mapping, which nobody else writes.
        let end = unsafe { AtomicU64::from_ptr(self.bytes.as_ptr().add(MAGIC.len()).cast()) };
        end.store((self.end as u64).to_le(), Ordering::Release);
    }
}

impl Drop for Mapped {
    /// Gives the room back that was not needed.
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody uses any more.
        unsafe { libc::munmap(self.bytes.as_ptr().cast(), self.size) };
        // Of a file that somebody cut, nothing is made up.
        if self.file.metadata().is_ok_and(|metadata| metadata.len() > self.end as u64) {
            let _ = self.file.set_len(self.end as u64);
        }
    }
}
