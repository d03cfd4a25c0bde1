//! Files and folders that only this user can look into: a trace may hold what is personal. A file is always a new one under its
//! name, so that nothing is written through a link, and nothing that has a second name is changed.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// A new, empty file in the place of what was there, whatever the umask is.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // `create_new` follows no link.
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(path)?.write_all(bytes)
}

/// A new folder; it must not be there.
pub(crate) fn new_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

/// The same, with the folders above it as usual; one that is there already stays as it is.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match new_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// A number that nobody guesses, as 32 hexadecimal digits.
pub(crate) fn random_id() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    // SAFETY: the kernel writes at most the length of the buffer.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled != bytes.len() as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn what_is_behind_a_link_or_a_second_name_stays() {
        let place = std::env::temp_dir().join(format!("inferscope-private-{}", std::process::id()));
        folder(&place).unwrap();
        let at = |name: &str| place.join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink(at("victim"), at("link")).unwrap();
        fs::hard_link(at("victim"), at("second")).unwrap();
        for name in ["link", "second", "new"] {
            write(&at(name), b"ours").unwrap();
            let made = fs::symlink_metadata(at(name)).unwrap();
            assert!(made.is_file() && made.nlink() == 1 && made.mode() & 0o777 == 0o600, "{name}");
        }
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
        assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o700);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn ids_differ() {
        let (one, other) = (random_id().unwrap(), random_id().unwrap());
        assert!(one != other && one.len() == 32 && one.bytes().all(|digit| digit.is_ascii_hexdigit()));
    }
}
