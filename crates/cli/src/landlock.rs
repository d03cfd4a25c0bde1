//! Landlock, the kernel's way for a process to give rights away: from then on it reads and writes only beneath the paths that it
//! named. As plain system calls: the structures are a dozen words and never change. What to allow is left to `confine`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Rights to files, by the kernel's numbers.
pub const WRITE_FILE: u64 = 1 << 1;
pub const READ_FILE: u64 = 1 << 2;
pub const READ_DIR: u64 = 1 << 3;
pub const REMOVE_DIR: u64 = 1 << 4;
pub const REMOVE_FILE: u64 = 1 << 5;
pub const MAKE_DIR: u64 = 1 << 7;
pub const MAKE_REG: u64 = 1 << 8;
pub const TRUNCATE: u64 = 1 << 14;

/// Those that a rule for a plain file may have.
const OF_FILES: u64 = WRITE_FILE | READ_FILE | TRUNCATE;

/// All rights to files that a version of Landlock knows: 13 at first, then moving between folders, truncating, and calls to devices.
fn known(version: i64) -> u64 {
    let bits = match version {
        ..=1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << bits) - 1
}

/// What the kernel is asked to refuse unless a rule allows it. TCP since version 4; signals and abstract sockets since 6.
#[repr(C)]
struct Handled {
    files: u64,
    tcp: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: i32,
}

const VERSION: u32 = 1;
const PATH_BENEATH: u32 = 1;

/// The version that the kernel has. Err: it has none, or a filter forbids it.
pub fn version() -> io::Result<i64> {
    // SAFETY: asks for a number; no pointer is read.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0usize, 0usize, VERSION) };
    if version < 1 { Err(io::Error::last_os_error()) } else { Ok(version) }
}

/// Rights that stay, to be gathered before `enforce`.
pub struct Ruleset {
    descriptor: OwnedFd,
    known: u64,
}

impl Ruleset {
    pub fn new() -> io::Result<Ruleset> {
        let version = version()?;
        let handled = Handled {
            files: known(version),
            tcp: if version >= 4 { 0b11 } else { 0 },
            scopes: if version >= 6 { 0b11 } else { 0 },
        };
        // An older kernel knows only the beginning, and refuses what it does not know.
        let size = match version {
            ..=3 => 8usize,
            4 | 5 => 16,
            _ => 24,
        };
        // SAFETY: the kernel reads at most `size` bytes of the structure, which has 24.
        let made = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0u32) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that is nobody else's.
        let descriptor = unsafe { OwnedFd::from_raw_fd(made as i32) };
        Ok(Ruleset { descriptor, known: handled.files })
    }

    /// Allows this for a path and what is beneath it. A path that is not there needs no right.
    pub fn allow(&self, path: &Path, rights: u64) {
        let Ok(parent) = File::options().read(true).custom_flags(libc::O_PATH).open(path) else { return };
        let folder = parent.metadata().is_ok_and(|metadata| metadata.is_dir());
        let allowed = rights & self.known & if folder { u64::MAX } else { OF_FILES };
        let rule = Beneath { allowed, parent: parent.as_raw_fd() };
        // SAFETY: the kernel reads the structure, and the descriptor in it is open. A refusal only means fewer rights.
        unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, self.descriptor.as_raw_fd(), PATH_BENEATH, &raw const rule, 0u32)
        };
    }

    /// From here on, for this thread and those that it starts.
    pub fn enforce(self) -> io::Result<()> {
        // SAFETY: plain system calls with numbers.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::syscall(libc::SYS_landlock_restrict_self, self.descriptor.as_raw_fd(), 0u32) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
