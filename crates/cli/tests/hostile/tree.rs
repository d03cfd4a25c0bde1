//! What a piece of the file system is: every name with its kind, owner, rights, size, times and contents. Two looks at it are equal
//! if nothing has been changed in between.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A line of what is known of it, and its bytes.
pub type Tree = BTreeMap<PathBuf, (String, Vec<u8>)>;

/// Larger files are made of holes here: their size and time tell.
const LARGEST: u64 = 1 << 22;

pub fn look(roots: &[&Path]) -> Tree {
    let mut tree = Tree::new();
    roots.iter().for_each(|root| add(root, &mut tree));
    tree
}

/// The folders that a recording has in shared memory, and those of others beside them.
pub fn shared(marked: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains(marked)).collect()
}

fn add(path: &Path, tree: &mut Tree) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
    let kind = metadata.file_type();
    let mut bytes = Vec::new();
    let content = match () {
        () if kind.is_symlink() => format!("link to {:?}", std::fs::read_link(path)),
        () if kind.is_dir() => {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.for_each(|entry| add(&entry.path(), tree));
            "folder".to_owned()
        }
        () if kind.is_file() && metadata.len() <= LARGEST => {
            bytes = std::fs::read(path).expect("a file of the test's own");
            "file".to_owned()
        }
        () => format!("{} {} {}", kind.is_fifo(), kind.is_socket(), metadata.rdev()),
    };
    let (mode, size, links) = (metadata.mode(), metadata.len(), metadata.nlink());
    let (second, nano) = (metadata.mtime(), metadata.mtime_nsec());
    let owner = metadata.uid();
    let line = format!("{mode:o} {owner} {size} {links} {second}.{nano} {content}");
    tree.insert(path.to_owned(), (line, bytes));
}

/// What differs, in words.
pub fn changes(before: &Tree, after: &Tree) -> Vec<String> {
    let shorten = |(line, bytes): &(String, Vec<u8>)| {
        format!("{line} {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(80)]))
    };
    let gone =
        before.iter().filter(|(path, _)| !after.contains_key(*path)).map(|(path, _)| format!("{path:?} is gone"));
    let other = after.iter().filter(|(path, is)| before.get(*path) != Some(is)).map(|(path, is)| {
        let was = before.get(path).map_or("nothing".to_owned(), shorten);
        format!("{path:?} was {was}, is {}", shorten(is))
    });
    gone.chain(other).collect()
}
