//! How large a segment may be here: no larger than a small share of what the machine leaves this process, because what the
//! segment takes the program cannot have.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What keeps a segment smaller than it was asked to be. The numbers are in shared memory: never reused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Limit {
    None = 0,
    /// RLIMIT_AS (`ulimit -v`), or the kernel gave no address space.
    AddressSpace = 1,
    /// The file system of the segments, or a quota there.
    FileSystem = 2,
    /// memory.max of a cgroup.
    Cgroup = 3,
    /// RLIMIT_FSIZE (`ulimit -f`).
    FileSize = 4,
}

impl Limit {
    pub fn from_u32(number: u32) -> Limit {
        match number {
            1 => Limit::AddressSpace,
            2 => Limit::FileSystem,
            3 => Limit::Cgroup,
            4 => Limit::FileSize,
            _ => Limit::None,
        }
    }

    /// What an error of mmap, ftruncate or madvise says. None: it is no shortage.
    pub(super) fn of(error: &io::Error) -> Option<Limit> {
        match error.raw_os_error()? {
            libc::ENOMEM | libc::EAGAIN => Some(Limit::AddressSpace),
            libc::ENOSPC | libc::EDQUOT => Some(Limit::FileSystem),
            libc::EFBIG => Some(Limit::FileSize),
            _ => None,
        }
    }
}

/// A segment is never smaller: names, some threads, and rings that are overwritten often.
pub(super) const LEAST: usize = 256 << 10;

/// Address space and a cgroup's memory are the program's first.
const SHARE: u64 = 8;
/// A file system that holds segments holds little else, but /dev/shm is also where loaders of data put their tensors.
const DISK_SHARE: u64 = 2;

/// How many of the bytes asked for may be had in this folder, and what the limit is.
pub(super) fn allowed(folder: &Path, asked: usize) -> (usize, Limit) {
    let limits = [
        (address_space_left().map(|left| left / SHARE), Limit::AddressSpace),
        (free_bytes(folder).map(|left| left / DISK_SHARE), Limit::FileSystem),
        (cgroup_left().map(|left| left / SHARE), Limit::Cgroup),
        (soft_limit(libc::RLIMIT_FSIZE), Limit::FileSize),
    ];
    let (mut bytes, mut what) = (asked, Limit::None);
    for (allowed, limit) in limits {
        let allowed = allowed.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)).max(LEAST);
        if allowed < bytes {
            (bytes, what) = (allowed, limit);
        }
    }
    (bytes, what)
}

/// None: there is no limit.
fn soft_limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: plain data that the call fills.
    let rc = unsafe { libc::getrlimit(resource, &mut limit) };
    (rc == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

fn address_space_left() -> Option<u64> {
    let limit = soft_limit(libc::RLIMIT_AS)?;
    let pages: u64 = fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    // SAFETY: plain system call.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as u64;
    Some(limit.saturating_sub(pages * page))
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: `stat` is plain data that the call fills.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut stat) == 0).then_some(stat)?
    };
    // ramfs and the like say 0 of 0.
    (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// What the tightest of the cgroups (version 2) around this process leaves. None: no limit that we can see.
fn cgroup_left() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let group = root.join(group);
    let groups = group.ancestors().take_while(|folder| folder.starts_with(root));
    groups.filter_map(group_left).min()
}

fn group_left(folder: &Path) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let most: u64 = read("memory.max")?.trim().parse().ok()?; // "max" is no number: no limit.
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    Some(left(most, used, &read("memory.stat").unwrap_or_default()))
}

/// The kernel takes cached file pages back before it kills anybody, so they count as free.
fn left(most: u64, used: u64, stat: &str) -> u64 {
    let cached = stat.lines().filter_map(|line| line.split_once(' '));
    let cached = cached.filter(|(name, _)| ["active_file", "inactive_file"].contains(name));
    let cached: u64 = cached.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum();
    most.saturating_sub(used.saturating_sub(cached))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_files_are_free_memory() {
        assert_eq!(left(100, 90, "anon 20\nactive_file 30\ninactive_file 25\nshmem 15\n"), 65);
        assert_eq!(left(100, 90, ""), 10);
        assert_eq!(left(100, 120, "active_file 5\n"), 0);
    }

    #[test]
    fn nothing_is_smaller_than_the_least() {
        let (bytes, _) = allowed(Path::new("/proc"), LEAST);
        assert_eq!(bytes, LEAST);
    }

    #[test]
    fn shortages_are_told_from_other_errors() {
        let of = |number| Limit::of(&io::Error::from_raw_os_error(number));
        assert_eq!((of(libc::ENOMEM), of(libc::EDQUOT)), (Some(Limit::AddressSpace), Some(Limit::FileSystem)));
        assert_eq!(of(libc::EACCES), None);
        for limit in [Limit::None, Limit::AddressSpace, Limit::FileSystem, Limit::Cgroup, Limit::FileSize] {
            assert_eq!(Limit::from_u32(limit as u32), limit);
        }
    }
}
