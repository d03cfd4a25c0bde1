//! Locks that the kernel releases when their holder dies: one on a trace, so that nobody recovers what is being recorded,
//! and one on each recorded process, so that two recorders do not meet.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

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
            .open(path)
            .map_err(Refused::Io)?;
        // SAFETY: a plain system call on an open descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EWOULDBLOCK) {
                return Err(Refused::Io(error));
            }
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

    pub fn raw(&self) -> RawFd {
        self._file.as_raw_fd()
    }

    /// Whether somebody holds the lock on a file. Changes nothing; neither follows a link nor waits for a pipe.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        let file = match File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        // SAFETY: a plain system call on an open descriptor, whose lock goes with it.
        Ok(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) } != 0)
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
    if std::fs::symlink_metadata(&folder)?.uid() != user {
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
