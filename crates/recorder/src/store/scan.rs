//! What a killed recorder left on disk, as far as a recovery has to know it: how far the rings are covered, which
//! scopes were open, and which name numbers are taken.

use super::columns::{Columns, Values};
use super::covered::OnDisk;
use super::files::{Files, SegmentFile};
use super::parquet_file::{self, io_error};
use parquet::file::reader::FileReader;
use std::collections::HashMap;
use std::io;
use trace::tables::Table;

/// A slice that was open when it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Checkpoint {
    pub start: i64,
    pub thread: i32,
    pub kind: i32,
    pub name: i32,
    pub parent: Option<i32>,
    pub args: Option<String>,
}

#[derive(Default)]
pub(crate) struct Left {
    pub covered: OnDisk,
    /// By process, kind and id.
    pub open: HashMap<(i32, i32, i32), Checkpoint>,
    pub last_name: i32,
    /// The latest reading of the clocks: CLOCK_MONOTONIC, and nanoseconds since 1970.
    pub last_anchor: Option<(i64, i64)>,
    /// Files that could not be read. What is in them is left out, and said so.
    pub unreadable: Vec<String>,
}

pub(crate) fn scan(files: &Files) -> Left {
    let mut left = Left::default();
    let tables = [Table::Names, Table::Anchors, Table::Gpu, Table::Allocations, Table::Slices];
    for file in tables.into_iter().flat_map(|table| files.of(table)) {
        if scan_file(&file, &mut left).is_err() {
            left.unreadable.push(file.name());
        }
    }
    left
}

fn scan_file(file: &SegmentFile, left: &mut Left) -> io::Result<()> {
    let reader = parquet_file::open(file.reopen()?).map_err(io_error)?;
    if let Some(covered) = left.covered.of(file.table) {
        covered.merge(&parquet_file::covered(&reader));
    }
    if matches!(file.table, Table::Gpu | Table::Allocations) {
        return Ok(());
    }
    let mut columns = Columns::new(file.table);
    for number in 0..reader.metadata().num_row_groups() {
        let group = reader.get_row_group(number).map_err(io_error)?;
        columns.clear();
        parquet_file::read(group.as_ref(), &mut columns).map_err(io_error)?;
        match file.table {
            Table::Slices => open_slices(&columns, &mut left.open),
            Table::Names => left.last_name = ints(&columns, 0).iter().copied().fold(left.last_name, i32::max),
            _ => left.last_anchor = longs(&columns, 1).last().copied().zip(longs(&columns, 2).last().copied()),
        }
    }
    Ok(())
}

fn ints(columns: &Columns, number: usize) -> &[i32] {
    if let Values::Int(values) = &columns.data[number].values { values } else { &[] }
}

fn longs(columns: &Columns, number: usize) -> &[i64] {
    if let Values::Long(values) = &columns.data[number].values { values } else { &[] }
}

/// Notes slices that are open in these rows, and forgets those that they complete.
fn open_slices(columns: &Columns, open: &mut HashMap<(i32, i32, i32), Checkpoint>) {
    let level = |column: usize, row: usize| columns.data[column].levels.as_ref().is_none_or(|levels| levels[row] == 1);
    let texts = if let Values::Text(values) = &columns.data[8].values { values.as_slice() } else { &[] };
    // Columns with nulls hold only what is there: positions run along.
    let (mut id_at, mut parent_at, mut args_at) = (0, 0, 0);
    for row in 0..columns.rows() {
        let next = |column: usize, at: &mut usize| {
            let there = level(column, row);
            *at += usize::from(there);
            there.then(|| *at - 1)
        };
        let id = next(6, &mut id_at).map(|at| ints(columns, 6)[at]);
        let parent = next(7, &mut parent_at).map(|at| ints(columns, 7)[at]);
        let args = next(8, &mut args_at).map(|at| String::from_utf8_lossy(texts[at].data()).into_owned());
        let Some(id) = id else { continue };
        let key = (ints(columns, 2)[row], ints(columns, 4)[row], id);
        if level(1, row) {
            open.remove(&key);
            continue;
        }
        let slice = Checkpoint {
            start: longs(columns, 0)[row],
            thread: ints(columns, 3)[row],
            kind: ints(columns, 4)[row],
            name: ints(columns, 5)[row],
            parent,
            args,
        };
        open.insert(key, slice);
    }
}
