//! Whether a trace, and the segments' folder that its manifest names, are this user's own and nobody else's. A manifest may say
//! anything: a folder is believed to be the trace's only where it carries the trace's id, or, for traces without one, its path.

use crate::file_names::RESCUED;
use crate::file_names::SEGMENTS;
use crate::journal::JOURNAL;
use crate::manifest::Manifest;
use crate::output::{TRACE_FILE, TRACE_ID_FILE};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace::plain_file;
use trace::segment::SUFFIX;
use trace::tables::{LOCK, MANIFEST};

/// Longer than any path, and than an id.
const LONGEST: u64 = 1 << 16;
/// Where the recorder makes segments' folders.
pub(crate) const SHARED: &str = "/dev/shm";

/// Where the segments' folder of a trace is.
pub(crate) enum Found {
    /// Err: why nothing may be changed there.
    At(PathBuf, Result<(), String>),
    /// It is gone, as after a reboot.
    Nowhere,
    /// There is a folder, and it is not this trace's.
    Refused(String),
}

pub(crate) fn user() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}

/// Err: why this trace may not be changed.
pub(crate) fn of_trace(folder: &File, here: &Path, manifest: &Manifest) -> Result<(), String> {
    let metadata = folder.metadata().map_err(|error| error.to_string())?;
    if metadata.uid() != user() {
        return Err("it belongs to another user".into());
    }
    if is_shared(&metadata) {
        return Err("others may write to its folder".into());
    }
    if manifest.clock.boot_id.is_empty() || manifest.clock.boot_id != crate::host::boot_id() {
        return Err("it was recorded on another machine, or before the last reboot".into());
    }
    // SAFETY: plain system call on an open descriptor and a constant.
    if unsafe { libc::faccessat(folder.as_raw_fd(), c".".as_ptr(), libc::W_OK, libc::AT_EACCESS) } != 0 {
        return Err("it is read-only".into());
    }
    plain_inside(here)
}

/// Every file in the folder has one name, and is this user's; a folder in it too.
fn plain_inside(folder: &Path) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("its folder cannot be read: {error}");
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let metadata = entry.metadata().map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // A folder of the user's own is none of our business, unless it stands where we have a file.
        let plain = metadata.is_file() && metadata.nlink() == 1 || metadata.is_dir() && !is_file_of_ours(&name);
        if !plain || metadata.uid() != user() || is_shared(&metadata) {
            return Err(format!("{name:?} in it is a link, not a plain file, or writable by another user"));
        }
    }
    Ok(())
}

fn is_file_of_ours(name: &str) -> bool {
    let known = [LOCK, JOURNAL, TRACE_FILE, TRACE_ID_FILE];
    known.contains(&name) || name.starts_with(MANIFEST) || name.contains(".parquet") || name.ends_with(SUFFIX)
}

fn is_shared(metadata: &Metadata) -> bool {
    metadata.mode() & 0o022 != 0
}

/// The segments' folder of a trace.
pub(crate) fn segments(folder: &File, here: &Path, manifest: &Manifest) -> Found {
    let Some(named) = manifest.segments.as_ref().map(Path::new) else { return Found::Nowhere };
    let Some(path) = allowed_place(named, here) else {
        return Found::Refused("its manifest names a buffer folder that InferScope would not create".into());
    };
    let refused = |why: &str| Found::Refused(format!("{} {why}", named.display()));
    let (Ok(metadata), Ok(trace)) = (fs::symlink_metadata(&path), folder.metadata()) else { return Found::Nowhere };
    if !metadata.is_dir() || metadata.uid() != trace.uid() {
        return refused("does not belong to the owner of the trace");
    }
    let same = match &manifest.id {
        Some(id) => {
            plain_file::read_inside(&path.join(TRACE_ID_FILE), LONGEST).is_ok_and(|there| there == id.as_bytes())
        }
        None => plain_file::read_inside(&path.join(TRACE_FILE), LONGEST).is_ok_and(|there| leads_to(&there, &trace)),
    };
    if !same {
        return refused("belongs to another trace");
    }
    let rescued = path.join(RESCUED);
    let private = if is_shared(&metadata) { Err("others may write to its buffers".to_owned()) } else { Ok(()) };
    let safe = private.and_then(|()| plain_inside(&path));
    let safe = safe.and_then(|()| if rescued.exists() { plain_inside(&rescued) } else { Ok(()) });
    Found::At(path, safe)
}

/// Directly in shared memory under a name of ours, or in the trace's own folder, wherever that has been moved to.
fn allowed_place(named: &Path, here: &Path) -> Option<PathBuf> {
    let name = named.file_name()?.to_str()?;
    if name == SEGMENTS {
        return Some(here.join(SEGMENTS));
    }
    let user = name.strip_prefix("inferscope-")?.split('-').next()?;
    let ours = !user.is_empty() && user.bytes().all(|digit| digit.is_ascii_digit());
    (ours && named.parent() == Some(Path::new(SHARED))).then(|| Path::new(SHARED).join(name))
}

fn leads_to(path: &[u8], trace: &Metadata) -> bool {
    let there = fs::metadata(Path::new(OsStr::from_bytes(path)));
    there.is_ok_and(|there| (there.dev(), there.ino()) == (trace.dev(), trace.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_that_the_recorder_makes_are_places_of_segments() {
        let here = Path::new("/t");
        let place = |named: &str| allowed_place(Path::new(named), here).map(|path| path.display().to_string());
        assert_eq!(place("/dev/shm/inferscope-0-12-ab").as_deref(), Some("/dev/shm/inferscope-0-12-ab"));
        assert_eq!(place("/where/it/was/segments").as_deref(), Some("/t/segments"));
        for named in [
            "/home/me",
            "/dev/shm",
            "/dev/shm/other",
            "/dev/shm/inferscope-x-1",
            "/dev/shm/inferscope-0-1/../../../home/me",
            "/dev/shm/a/../inferscope-0-1",
            "/tmp/inferscope-0-12-ab",
            "inferscope-0-12-ab",
            "/dev/shm/inferscope-0-12-ab/..",
            "",
        ] {
            assert_eq!(place(named), None, "{named}");
        }
    }
}
