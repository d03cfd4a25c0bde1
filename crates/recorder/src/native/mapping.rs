//! A file of code as bytes, mapped and not read: only what is looked at costs memory.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::Arc;

/// What tells one file from another, and from its own later contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileIdentity {
    pub fn of(file: &File) -> io::Result<FileIdentity> {
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let changed = (about.mtime(), about.mtime_nsec());
        Ok(FileIdentity { device: about.dev(), inode: about.ino(), size: about.size(), changed })
    }
}

pub(super) struct Mapping {
    file: File,
    pub identity: FileIdentity,
    start: *const u8,
}

// SAFETY: the mapping is read only, and stays where it is until it is dropped.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn of(file: File) -> io::Result<Mapping> {
        let identity = FileIdentity::of(&file)?;
        let length = usize::try_from(identity.size).ok().filter(|length| *length > 0);
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { file, identity, start: start.cast() })
    }

    /// Whether the file is what it was. Reading beyond the end of one that was cut off meanwhile would end this process (and ends the
    /// one that runs its code), so this is asked each time before it is read.
    pub fn is_whole(&self) -> bool {
        FileIdentity::of(&self.file).is_ok_and(|now| now == self.identity)
    }

    /// Gives back the memory of what was read so far: a table of symbols is read once as a whole, and then at a few places.
    pub fn release(&self) {
        // SAFETY: of a mapping that nobody writes to: what is read again comes from the file again.
        unsafe { libc::madvise(self.start.cast_mut().cast(), self.identity.size as usize, libc::MADV_DONTNEED) };
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as this value lives, with this length.
        unsafe { std::slice::from_raw_parts(self.start, self.identity.size as usize) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and nobody has a reference into it.
        unsafe { libc::munmap(self.start.cast_mut().cast(), self.identity.size as usize) };
    }
}

/// A part of a mapped file.
#[derive(Clone)]
pub(super) struct Part {
    mapping: Arc<Mapping>,
    range: Range<usize>,
}

impl Part {
    /// None: it does not lie in the file.
    pub fn of(mapping: &Arc<Mapping>, offset: u64, length: u64) -> Option<Part> {
        let range = usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(length)?).ok()?;
        mapping.bytes().get(range.clone())?;
        Some(Part { mapping: Arc::clone(mapping), range })
    }
}

impl Deref for Part {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.mapping.bytes()[self.range.clone()]
    }
}
