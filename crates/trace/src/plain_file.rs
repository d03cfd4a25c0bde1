//! Opens a plain file for reading, and nothing else: a pipe would wait for a writer, a device may never end, and a link in a
//! folder that somebody else made leads anywhere.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A file that the user named: the user's own link is followed.
pub fn open_named(path: &Path) -> io::Result<File> {
    check(&std::fs::metadata(path)?)?;
    open(path, 0)
}

/// A file in a folder that may be anybody's: a link is not followed.
pub fn open_inside(path: &Path) -> io::Result<File> {
    check(&std::fs::symlink_metadata(path)?)?;
    open(path, libc::O_NOFOLLOW)
}

/// All of such a file, as far as it is not longer than that.
pub fn read_inside(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (mut bytes, file) = (Vec::new(), open_inside(path)?);
    let declared = file.metadata()?.len();
    if declared <= most {
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if declared.max(bytes.len() as u64) > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// From this size on, a file that is mostly holes is not believed: to copy it would fill a disk with what is not there.
const LARGE: u64 = 1 << 30;

/// Whether a file says that it is much larger than what it takes. File systems that compress take a few times less than its size.
pub fn is_hollow(metadata: &Metadata) -> bool {
    metadata.len() > LARGE && metadata.blocks().saturating_mul(512) < metadata.len() / 16
}

/// What it is may have changed since it was looked at: then it is at least not waited for, and not read.
fn open(path: &Path, flags: i32) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | flags).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(metadata: &Metadata) -> io::Result<()> {
    let why = match metadata.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_symlink() => "it is a symbolic link, which is not followed here",
        kind if kind.is_dir() => "it is a folder",
        _ => "it is a pipe, a socket or a device, not a file",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_are_opened_and_nothing_is_waited_for() {
        let folder = std::env::temp_dir().join(format!("inferscope-plain-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        std::fs::write(at("file"), "12345").unwrap();
        symlink(at("file"), at("link")).unwrap();
        let pipe = CString::new(at("pipe").as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        symlink(at("pipe"), at("link-to-pipe")).unwrap();
        assert!(open_named(&at("file")).is_ok() && open_named(&at("link")).is_ok());
        let refused = |name: &str| open_inside(&at(name)).unwrap_err().to_string();
        assert!(refused("link").contains("symbolic link"));
        assert!(refused("pipe").contains("pipe") && refused("").contains("folder"));
        assert!(open_named(&at("link-to-pipe")).is_err() && open_named(Path::new("/dev/zero")).is_err());
        assert_eq!(read_inside(&at("file"), 5).unwrap(), b"12345");
        assert_eq!(read_inside(&at("file"), 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        File::options().write(true).open(at("file")).and_then(|file| file.set_len(LARGE + 1)).unwrap();
        assert!(
            is_hollow(&std::fs::metadata(at("file")).unwrap())
                && !is_hollow(&std::fs::metadata("/proc/self/exe").unwrap())
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
