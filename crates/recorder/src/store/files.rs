//! The trace's files as they stand: which table, which range, and an open descriptor of each. The descriptor keeps the
//! data alive when somebody removes the folder under us, so it can be put back.

use crate::private;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use trace::plain_file;
use trace::tables::{Table, current_files, file_name, parse_file_name};

pub(crate) struct SegmentFile {
    pub table: Table,
    pub first: u32,
    pub last: u32,
    pub bytes: u64,
    file: File,
}

impl SegmentFile {
    pub fn name(&self) -> String {
        file_name(self.table, self.first, self.last)
    }

    /// A descriptor with a position of its own, also of a file that has no name any more.
    pub fn reopen(&self) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// All current files of a trace, shared by the writer and the compactor.
pub(crate) struct Files {
    folder: PathBuf,
    list: Mutex<Vec<Arc<SegmentFile>>>,
}

/// Compaction turns this many files into one, and that many of those into the next.
const FAN_IN: usize = 16;
/// A file this large is left alone: rewriting it would cost more than one more file does.
const LARGE: u64 = 512 << 20;
/// At the end somebody waits for the report: a file this large is as good as joined. Each table has a few of them for every
/// hundred megabytes.
const LARGE_AT_END: u64 = 4 << 20;

impl Files {
    /// The files of a trace's folder; none for a new one. Leftovers of a killed writer or compactor are removed.
    pub fn open(folder: &Path) -> io::Result<Files> {
        let (mut found, mut unfinished) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            found.extend(parse_file_name(&name));
            if name.ends_with(".parquet.tmp") {
                unfinished.push(folder.join(name));
            }
        }
        let current = current_files(found.clone());
        let replaced = found.iter().filter(|file| !current.contains(file));
        let replaced = replaced.map(|(table, first, last)| folder.join(file_name(*table, *first, *last)));
        for path in replaced.chain(unfinished) {
            std::fs::remove_file(path)?;
        }
        let files = Files { folder: folder.to_owned(), list: Mutex::new(Vec::new()) };
        for (table, first, last) in current {
            let file = plain_file::open_inside(&folder.join(file_name(table, first, last)))?;
            files.add(table, first, last, file)?;
        }
        Ok(files)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<SegmentFile>>> {
        self.list.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn add(&self, table: Table, first: u32, last: u32, file: File) -> io::Result<()> {
        let bytes = file.metadata()?.len();
        self.lock().push(Arc::new(SegmentFile { table, first, last, bytes, file }));
        Ok(())
    }

    /// In order.
    pub fn of(&self, table: Table) -> Vec<Arc<SegmentFile>> {
        let mut files: Vec<_> = self.lock().iter().filter(|file| file.table == table).cloned().collect();
        files.sort_by_key(|file| file.first);
        files
    }

    /// Number of the next file of a table.
    pub fn next(&self, table: Table) -> u32 {
        self.of(table).last().map_or(1, |file| file.last + 1)
    }

    /// Files that should become one now: enough neighbours that were compacted equally often.
    pub fn ripe(&self) -> Option<Vec<Arc<SegmentFile>>> {
        let level = |file: &Arc<SegmentFile>| (file.last - file.first + 1).ilog(FAN_IN as u32);
        Table::ALL.into_iter().find_map(|table| {
            let files: Vec<_> = self.of(table).into_iter().collect();
            let runs = files.chunk_by(|a, b| level(a) == level(b) && a.bytes < LARGE && b.bytes < LARGE);
            runs.into_iter().find(|run| run.len() >= FAN_IN).map(|run| run[..FAN_IN].to_vec())
        })
    }

    /// Files that should become one at the end: all neighbours that are small. How much that is does not grow with the trace.
    pub fn rest(&self) -> Vec<Vec<Arc<SegmentFile>>> {
        let small = |file: &Arc<SegmentFile>| file.bytes < LARGE_AT_END;
        let tables = Table::ALL.map(|table| self.of(table));
        let runs = tables.iter().flat_map(|files| files.chunk_by(|a, b| small(a) && small(b)));
        runs.filter(|run| run.len() > 1).map(<[_]>::to_vec).collect()
    }

    /// `merged` is in place under its own name: forgets and removes what it replaces.
    pub fn replace(&self, old: &[Arc<SegmentFile>], merged: File) -> io::Result<()> {
        let (Some(first), Some(last)) = (old.first(), old.last()) else { return Ok(()) };
        self.add(first.table, first.first, last.last, merged)?;
        self.lock().retain(|file| !old.iter().any(|gone| Arc::ptr_eq(gone, file)));
        for file in old {
            // Already gone is as good.
            let _ = std::fs::remove_file(self.folder.join(file.name()));
        }
        Ok(())
    }

    /// Puts back what was removed from under us. Returns how many files were.
    pub fn restore(&self) -> io::Result<usize> {
        private::folder(&self.folder)?;
        let files = self.lock().clone();
        let mut restored = 0;
        for file in files {
            let path = self.folder.join(file.name());
            let ours = file.file.metadata()?.ino();
            if std::fs::metadata(&path).is_ok_and(|there| there.ino() == ours) {
                continue;
            }
            let unfinished = path.with_extension("parquet.tmp");
            let mut copy = private::create(&unfinished)?;
            io::copy(&mut file.reopen()?, &mut copy)?;
            std::fs::rename(&unfinished, &path)?;
            self.add(file.table, file.first, file.last, copy)?;
            self.lock().retain(|other| !Arc::ptr_eq(other, &file));
            restored += 1;
        }
        Ok(restored)
    }
}
