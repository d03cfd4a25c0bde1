//! Settings and rules that nobody named are searched upwards from here, and whoever may write to a folder above could leave some:
//! a file of another user, or that others may change, is passed over, and it is said. One that is named is used.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace::plain_file;

/// The nearest file of a name that can be trusted.
#[derive(Default)]
pub struct Search {
    pub found: Option<(PathBuf, std::io::Result<File>)>,
    /// Why nearer ones are not used, in sentences.
    pub passed_over: Vec<String>,
}

pub fn search(folder: &Path, name: &str) -> Search {
    let mut search = Search::default();
    for path in folder.ancestors().map(|folder| folder.join(name)) {
        let Ok(link) = std::fs::symlink_metadata(&path) else { continue };
        // A link that leads nowhere is no file.
        let Ok(target) = std::fs::metadata(&path) else { continue };
        // Whose link it is decides where it leads to.
        let trusted = owner(&link).and_then(|()| trust(&target));
        let opened = trusted.map(|()| plain_file::open_named(&path));
        // It may have been replaced meanwhile.
        let again = opened.and_then(|opened| match opened.as_ref().ok().and_then(|file| file.metadata().ok()) {
            Some(metadata) => trust(&metadata).map(|()| opened),
            None => Ok(opened),
        });
        match again {
            Ok(opened) => {
                search.found = Some((path, opened));
                break;
            }
            Err(why) => search.passed_over.push(format!("{} is not used: {why}", path.display())),
        }
    }
    search
}

fn owner(metadata: &Metadata) -> Result<(), String> {
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    match metadata.uid() {
        owner if owner == user || owner == 0 => Ok(()),
        owner => Err(format!("it belongs to another user (uid {owner})")),
    }
}

fn trust(metadata: &Metadata) -> Result<(), String> {
    owner(metadata)?;
    // SAFETY: always succeeds.
    let group = unsafe { libc::getegid() };
    let (group_writes, others_write) = (metadata.mode() & 0o020 != 0, metadata.mode() & 0o002 != 0);
    // Where each user has a group of their own, files are writable by it as a matter of course.
    if others_write || group_writes && metadata.gid() != group && metadata.gid() != 0 {
        return Err("others may write to it (fix with chmod go-w)".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn files_of_others_are_passed_over_and_the_next_above_is_taken() {
        let root = std::env::temp_dir().join(format!("inferscope-found-{}", std::process::id()));
        let inner = root.join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let place = |folder: &str, mode: u32| {
            let path = root.join(folder).join("x.yaml");
            std::fs::write(&path, "top: 3").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        };
        let (above, near) = (place("", 0o644), place("a/b", 0o666));
        let of = || {
            let search = search(&inner, "x.yaml");
            (search.found.map(|(path, _)| path), search.passed_over)
        };
        let (found, passed) = of();
        assert_eq!((found, passed.len()), (Some(above.clone()), 1));
        assert!(passed[0].contains("others may write"), "{passed:?}");
        std::fs::set_permissions(&near, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(of(), (Some(near.clone()), Vec::new()));
        std::fs::remove_file(&near).unwrap();
        let other = root.join("other.yaml");
        std::fs::write(&other, "top: 3").unwrap();
        symlink(&other, &near).unwrap();
        assert_eq!(of(), (Some(near), Vec::new()));
        chown(&other, Some(12345), None).expect("this test makes a file of another user, so it must run as root");
        let (found, passed) = of();
        assert_eq!(found, Some(above));
        assert!(passed[0].contains("uid 12345"), "{passed:?}");
        std::fs::remove_dir_all(root).unwrap();
    }
}
