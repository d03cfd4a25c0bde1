//! Locks that the kernel releases when their holder dies: one on a trace, so that nobody recovers what is being recorded,
//! and one on each recorded process, so that two recorders do not meet.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use trace::plain_file;

#[derive(Debug)]
pub(crate) struct Lock {
    // Held as long as this descriptor is open.
    _file: File,
    /// To be removed when let go of.
    path: Option<PathBuf>,
}

/// What locks say of their holder; 0: this process.
static HOLDER: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(crate) enum Refused {
    /// Who holds it, as far as it says.
    Held(u32),
    Io(io::Error),
}

impl Lock {
    /// The lock on a file, which stays when the lock is gone.
    pub fn take(path: &Path) -> Result<Lock, Refused> {
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .map_err(Refused::Io)?;
        // Its number is written into it: not into what has another name, too, or is no file.
        let metadata = file.metadata().map_err(Refused::Io)?;
        if !metadata.is_file() || metadata.nlink() > 1 {
            return Err(Refused::Io(io::Error::other("it is not a file of its own")));
        }
        if !try_lock(&file, libc::LOCK_EX).map_err(Refused::Io)? {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            return Err(Refused::Held(holder.trim().parse().unwrap_or(0)));
        }
        // On a full disk the lock is held without saying by whom.
        let holder = Some(HOLDER.load(Ordering::Relaxed)).filter(|holder| *holder != 0);
        let holder = holder.unwrap_or_else(std::process::id);
        let _ = file.set_len(0).and_then(|()| write!(file, "{holder}"));
        Ok(Lock { _file: file, path: None })
    }

    /// Whether somebody holds the lock on a file. Changes nothing.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        match plain_file::open_inside(path) {
            Ok(file) => try_lock(&file, libc::LOCK_SH).map(|free| !free),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Who holds it, as far as the file says.
    pub fn holder(path: &Path) -> Option<u32> {
        let mut text = String::new();
        plain_file::open_inside(path).ok()?.take(16).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// The lock on recording a process. Err: who records it already.
    pub fn process(pid: u32) -> Result<Lock, Refused> {
        let path = folder().map_err(Refused::Io)?.join(pid.to_string());
        for _ in 0..100 {
            let mut lock = Lock::take(&path)?;
            // The last holder may have removed the file between our open and our lock: then ours is nobody's.
            let ours = lock._file.metadata().map(|file| file.ino());
            if ours.ok() == std::fs::metadata(&path).ok().map(|file| file.ino()) {
                lock.path = Some(path);
                return Ok(lock);
            }
        }
        Err(Refused::Io(io::ErrorKind::WouldBlock.into()))
    }
}

impl Lock {
    /// Locks that this process takes from now on say that another one holds them.
    pub fn hold_for(pid: u32) {
        HOLDER.store(pid, Ordering::Relaxed);
    }

    /// Whether this is the lock of the file at `path`, and not of one that was there before.
    pub fn is_of(&self, path: &Path) -> bool {
        let inode = |file: io::Result<std::fs::Metadata>| file.ok().map(|file| (file.dev(), file.ino()));
        inode(self._file.metadata()).is_some_and(|ours| Some(ours) == inode(std::fs::metadata(path)))
    }

    /// Lets go of it in every process that shares the descriptor.
    pub fn release(&self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
        // SAFETY: a plain system call on an open descriptor.
        unsafe { libc::flock(self._file.as_raw_fd(), libc::LOCK_UN) };
    }

    pub fn raw(&self) -> RawFd {
        self._file.as_raw_fd()
    }

    /// Removes the lock files of processes that are gone, left by recorders that were killed.
    pub fn sweep() {
        let entries = folder().and_then(std::fs::read_dir).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| !crate::proc::exists(*pid)).for_each(|pid| drop(Lock::process(pid)));
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Says whether it is ours now, without waiting.
fn try_lock(file: &File, how: i32) -> io::Result<bool> {
    // SAFETY: a plain system call on an open descriptor.
    if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EWOULDBLOCK) { Ok(false) } else { Err(error) }
}

/// This user's folder of locks.
fn folder() -> io::Result<PathBuf> {
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    let shared = Path::new("/dev/shm");
    let parent = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let folder = parent.join(format!("inferscope-{user}-locks"));
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Somebody else's folder under our name could keep us from recording anything.
    let metadata = std::fs::symlink_metadata(&folder)?;
    if metadata.uid() != user || !metadata.is_dir() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_recorded_once_at_a_time() {
        let me = std::process::id();
        let lock = Lock::process(me).unwrap();
        assert!(matches!(Lock::process(me), Err(Refused::Held(holder)) if holder == me));
        let path = folder().unwrap().join(me.to_string());
        assert!(lock.is_of(&path) && Lock::is_held(&path).unwrap());
        drop(lock);
        assert!(!Lock::is_held(&path).unwrap());
        drop(Lock::process(me).unwrap());
    }
}
