//! A private copy of an unfinished trace, in which it is completed when the trace itself may not be changed. Only plain files
//! are copied, and no more than there is room for; the copy goes when it has been read.

use crate::file_names::RESCUED;
use crate::file_names::SEGMENTS;
use crate::journal::JOURNAL;
use crate::manifest::Manifest;
use crate::output::free_bytes;
use crate::ownership::user;
use crate::{private, proc};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trace::codes::{Note, NoteCode};
use trace::plain_file;
use trace::segment::SUFFIX;
use trace::tables::{MANIFEST, current_files, file_name, parse_file_name};

#[derive(Debug)]
pub struct TraceCopy(PathBuf);

impl TraceCopy {
    /// An empty one, where temporary files go.
    pub(crate) fn new() -> io::Result<TraceCopy> {
        let (place, prefix) = (std::env::temp_dir(), format!("inferscope-copy-{}-", user()));
        sweep(&place, &prefix);
        let path = place.join(format!("{prefix}{}-{}", std::process::id(), private::random_id()?));
        private::new_folder(&path)?;
        Ok(TraceCopy(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Copies a trace and its segments.
    pub(crate) fn fill(
        &self,
        trace: &Path,
        segments: &Path,
        mut manifest: Manifest,
        damaged: &[PathBuf],
        why: &str,
    ) -> io::Result<()> {
        let (ours, rescued) = (self.0.join(SEGMENTS), segments.join(RESCUED));
        private::new_folder(&ours)?;
        private::new_folder(&ours.join(RESCUED))?;
        let mut left = free_bytes(&self.0).unwrap_or(0) / 2;
        for name in tables(trace).into_iter().filter(|name| !damaged.contains(&trace.join(name))) {
            copy(&trace.join(&name), &self.0.join(&name), &mut left)?;
        }
        let is_folder = fs::symlink_metadata(&rescued).is_ok_and(|metadata| metadata.is_dir());
        let names = tables(&rescued).into_iter().filter(|name| !damaged.contains(&rescued.join(name)));
        for name in names.chain(is_folder.then(|| MANIFEST.to_owned())) {
            copy(&rescued.join(&name), &ours.join(RESCUED).join(&name), &mut left)?;
        }
        manifest.notes.push(Note::new(NoteCode::CompletedInCopy).with(why));
        manifest.notes.extend(damaged.iter().map(|table| Note::new(NoteCode::FileDamaged).with(file_name_of(table))));
        let entries = fs::read_dir(segments).into_iter().flatten().flatten();
        for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            if is_living(&name) {
                // Its records change while they are read, and only its own recorder may hold them fast.
                manifest.notes.push(Note::new(NoteCode::SegmentInUse).with(name));
            } else if name.ends_with(SUFFIX) || name == JOURNAL {
                copy(&segments.join(&name), &ours.join(&name), &mut left)?;
            }
        }
        manifest.write(&self.0)
    }
}

impl Drop for TraceCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is no plain file is left out, as is what is gone meanwhile.
fn copy(from: &Path, to: &Path, left: &mut u64) -> io::Result<()> {
    let Ok(mut source) = plain_file::open_inside(from) else { return Ok(()) };
    let size = source.metadata()?.len();
    *left = left.checked_sub(size).ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
    io::copy(&mut Read::by_ref(&mut source).take(size), &mut private::create(to)?).map(drop)
}

/// `<pid>-<start>`, and a number after it for the second segment of a process.
fn is_living(name: &str) -> bool {
    let mut parts = name.strip_suffix(SUFFIX).unwrap_or_default().split('-');
    let identity = parts.next().and_then(|pid| pid.parse().ok()).zip(parts.next().and_then(|start| start.parse().ok()));
    identity.is_some_and(|(pid, start)| proc::alive(pid, start))
}

/// Removes copies of this user whose process was killed.
fn sweep(place: &Path, prefix: &str) {
    use std::os::unix::fs::MetadataExt;
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(prefix).and_then(|rest| rest.split('-').next()?.parse().ok());
        let ours = || entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user());
        if pid.is_some_and(|pid| !proc::exists(pid)) && ours() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The tables in a folder, without those that others replace.
pub(crate) fn tables(folder: &Path) -> Vec<String> {
    // Not through a link; the path that leads through a descriptor is one.
    let linked = folder.is_symlink() && !folder.starts_with("/proc/self/fd");
    let entries = (!linked).then(|| std::fs::read_dir(folder).ok()).flatten().into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| parse_file_name(entry.file_name().to_str()?));
    current_files(found.collect()).into_iter().map(|(table, first, last)| file_name(table, first, last)).collect()
}

pub(crate) fn file_name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
