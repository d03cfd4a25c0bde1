//! Reads the files of a sink, also one that is being written or whose writer was killed.

use super::EXTENSION;
use super::encode::Decoder;
use super::file::{HEADER, MAGIC};
use crate::event::Event;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Larger than any file that a sink writes.
const LARGEST: u64 = 1 << 30;

/// From where on a file makes no sense.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    pub file: PathBuf,
    pub offset: u64,
    pub what: &'static str,
}

/// The files of a folder, oldest first.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let (entry, path) = entry.map(|entry| (entry.metadata(), entry.path()))?;
        if path.extension().is_some_and(|extension| extension == EXTENSION)
            && let Ok(metadata) = entry
            && metadata.is_file()
        {
            found.push((metadata.modified().ok(), path));
        }
    }
    // A file is changed last when it is closed; of two in one moment the name decides.
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// All events of all files of a folder.
pub fn read_folder(folder: &Path, take: &mut dyn FnMut(Event)) -> io::Result<Vec<Damage>> {
    let mut damage = Vec::new();
    for file in files(folder)? {
        damage.extend(read(&file, take)?);
    }
    Ok(damage)
}

/// The events of one file. What follows damage is left out.
pub fn read(path: &Path, take: &mut dyn FnMut(Event)) -> io::Result<Option<Damage>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    let damage = match bytes.len() as u64 > LARGEST {
        true => Some((0, "larger than a telemetry file can be")),
        false => events_of(&bytes, take),
    };
    Ok(damage.map(|(offset, what)| Damage { file: path.to_owned(), offset: offset as u64, what }))
}

/// Some: from where on the bytes make no sense, and what is wrong there.
pub(super) fn events_of(bytes: &[u8], take: &mut dyn FnMut(Event)) -> Option<(usize, &'static str)> {
    let Some((head, _)) = bytes.split_at_checked(HEADER).filter(|(head, _)| head.starts_with(&MAGIC)) else {
        return Some((0, "not a telemetry file"));
    };
    let mut end = [0; 8];
    end.copy_from_slice(&head[MAGIC.len()..]);
    let committed = usize::try_from(u64::from_le_bytes(end)).unwrap_or(usize::MAX);
    let (mut decoder, mut at) = (Decoder::default(), HEADER);
    let all = &bytes[..committed.min(bytes.len())];
    while at < all.len() {
        let Some((event, length)) = decoder.event(&all[at..]) else { return Some((at, "bytes that are no event")) };
        take(event);
        at += length;
    }
    (committed > bytes.len()).then_some((at, "the file ends before its last event"))
}
