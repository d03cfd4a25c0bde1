//! The trace on disk: one batch of columns per table, closed into segment files while recording, the small ones compacted
//! into one per table at the end. A file has its name only once it is whole.

mod columns;
mod compact;
mod covered;
mod files;
mod parquet_file;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use columns::{CallFields, Cell, Columns};
pub(crate) use covered::{Covered, OnDisk, counter, lost};
pub(crate) use files::Files;
pub(crate) use scan::{Checkpoint, Left, scan};

use crate::journal::Entries;
use crate::private;
use parquet_file::{Writer, io_error};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::tables::{Table, file_name};

pub(crate) struct Store {
    files: Arc<Files>,
    batches: Vec<Columns>,
    next: Vec<u32>,
    /// What the last slices file said about the rings and their losses.
    covered: Covered,
    /// Rows that are not in the journal yet, where there is one.
    unkept: Entries,
    keeps: bool,
    /// How many files had to be put back because the folder was removed.
    pub restored: usize,
}

/// What refers comes after what it refers to, and slices last: their footer says which ring records are on disk.
const ORDER: [Table; 11] = [
    Table::Names,
    Table::Stacks,
    Table::Threads,
    Table::Samples,
    Table::Counters,
    Table::Losses,
    Table::Anchors,
    Table::Allocations,
    Table::Blocks,
    Table::Gpu,
    Table::Slices,
];

/// The tables that records of rings go to.
const FROM_RINGS: [Table; 4] = [Table::Slices, Table::Gpu, Table::Allocations, Table::Blocks];
/// The tables whose footers say how far they have got: also that of losses, most of which are of rings.
const WITH_FOOTER: [Table; 5] = [Table::Slices, Table::Gpu, Table::Allocations, Table::Blocks, Table::Losses];

impl Store {
    /// The store of a folder, new or left by a killed recorder.
    pub fn open(folder: &Path) -> io::Result<Store> {
        let files = Arc::new(Files::open(folder)?);
        let next = Table::ALL.map(|table| files.next(table)).to_vec();
        Ok(Store {
            files,
            batches: Table::ALL.map(Columns::new).into(),
            next,
            covered: Covered::default(),
            unkept: Entries::default(),
            keeps: false,
            restored: 0,
        })
    }

    pub fn files(&self) -> Arc<Files> {
        Arc::clone(&self.files)
    }

    pub fn batch(&mut self, table: Table) -> &mut Columns {
        &mut self.batches[table as usize]
    }

    /// Adds a row, unless the batch is full because the disk does not take it. Says whether it was added.
    pub fn push(&mut self, table: Table, cells: &[Cell<'_>]) -> bool {
        let room = !self.batch(table).is_full();
        if room {
            self.add(table, cells);
        }
        room
    }

    /// Adds a row, full or not.
    pub fn add(&mut self, table: Table, cells: &[Cell<'_>]) {
        self.batch(table).push(cells);
        if self.keeps {
            self.unkept.row(table, self.next[table as usize], cells);
        }
    }

    /// From now on rows that are pushed or added are also for the journal. Those out of rings go into their batch directly:
    /// the ring keeps them.
    pub fn keep_rows(&mut self) {
        self.keeps = true;
    }

    pub fn unkept(&mut self) -> &mut Entries {
        &mut self.unkept
    }

    /// No more records should be taken from rings before this is on disk.
    pub fn is_full(&self) -> bool {
        self.batches[Table::Names as usize].is_full()
            || FROM_RINGS.iter().any(|table| self.batches[*table as usize].is_full())
    }

    pub fn any_full(&self) -> bool {
        self.batches.iter().any(Columns::is_full)
    }

    /// Writes every batch that has rows. What could not be written stays for the next attempt.
    pub fn close(&mut self, covered: &Covered) -> io::Result<()> {
        let folder = self.files.folder().to_owned();
        match self.close_into(&folder, &ORDER, covered, true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.restored += self.files.restore()?;
                self.close_into(&folder, &ORDER, covered, true)
            }
            result => result,
        }
    }

    /// Writes names and stacks alone, to make room for more of them.
    pub fn close_names(&mut self) -> io::Result<()> {
        let folder = self.files.folder().to_owned();
        self.close_into(&folder, &ORDER[..2], &Covered::default(), true)
    }

    /// The last resort when the trace's disk takes nothing: the same files elsewhere, for a later recovery.
    pub fn rescue(&mut self, folder: &Path, covered: &Covered) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        self.close_into(folder, &ORDER, covered, false)
    }

    fn close_into(&mut self, folder: &Path, tables: &[Table], covered: &Covered, keep: bool) -> io::Result<()> {
        for table in tables.iter().copied() {
            let (batch, next) = (&self.batches[table as usize], self.next[table as usize]);
            // Without rows the slices' file is written all the same where rings were read: its footer vouches for the others.
            let vouches = table == Table::Slices && !covered.is_empty() && *covered != self.covered;
            if batch.rows() == 0 && !vouches {
                continue;
            }
            let none = Covered::default();
            let file = write_file(folder, batch, next, if WITH_FOOTER.contains(&table) { covered } else { &none })?;
            if table == Table::Slices {
                self.covered.clone_from(covered);
            }
            if keep {
                self.files.add(table, next, next, file)?;
            }
            self.next[table as usize] = next + 1;
            self.batches[table as usize].clear();
        }
        Ok(())
    }

    /// Small files joined, and everything that was removed from under us back in place.
    pub fn finish(&mut self, segments: Option<&Path>) -> io::Result<()> {
        self.restored += self.files.restore()?;
        for group in self.files.rest() {
            compact::merge(&self.files, &group, segments)?;
        }
        Ok(())
    }
}

fn write_file(folder: &Path, batch: &Columns, number: u32, covered: &Covered) -> io::Result<File> {
    let name: PathBuf = folder.join(file_name(batch.table, number, number));
    let unfinished = name.with_extension("parquet.tmp");
    let write = || {
        let file = private::create(&unfinished)?;
        let mut writer = Writer::new(batch.table, file.try_clone()?).map_err(io_error)?;
        if batch.rows() > 0 {
            writer.write(batch).map_err(io_error)?;
        }
        writer.finish(covered).map_err(io_error)?;
        std::fs::rename(&unfinished, &name)?;
        Ok(file)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&unfinished);
    })
}

/// Compacts what is ripe, once. Says whether there was anything.
pub(crate) fn compact_once(files: &Files, segments: Option<&Path>) -> io::Result<bool> {
    let Some(group) = files.ripe() else { return Ok(false) };
    compact::merge(files, &group, segments).map(|()| true)
}
