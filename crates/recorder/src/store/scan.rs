//! What a killed recorder left on disk, as far as a recovery has to know it: how far the rings are covered, which
//! scopes were open, and which name numbers are taken.

use super::columns::{Cell, Columns, Values};
use super::covered::OnDisk;
use super::files::{Files, SegmentFile};
use super::parquet_file::{self, io_error};
use parquet::data_type::ByteArray;
use parquet::file::reader::FileReader;
use std::collections::HashMap;
use std::io;
use trace::clock::Anchor;
use trace::codes::LossReason;
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
    pub last_stack: i32,
    /// The first and the latest readings of the clocks.
    pub first_anchor: Option<Anchor>,
    pub last_anchor: Option<Anchor>,
    /// The largest of their residuals.
    pub residual: u64,
    pub losses: HashMap<LossReason, u64>,
    /// Files that could not be read. What is in them is left out, and said so.
    pub unreadable: Vec<String>,
}

pub(crate) fn scan(files: &Files) -> Left {
    let mut left = Left::default();
    let filled_from_rings = [Table::Gpu, Table::Allocations, Table::Blocks, Table::Slices];
    let tables = [Table::Names, Table::Stacks, Table::Anchors, Table::Losses].into_iter().chain(filled_from_rings);
    for file in tables.flat_map(|table| files.of(table)) {
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
    if matches!(file.table, Table::Gpu | Table::Allocations | Table::Blocks) {
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
            Table::Stacks => left.last_stack = ints(&columns, 0).iter().copied().fold(left.last_stack, i32::max),
            Table::Losses => {
                for (reason, count) in texts(&columns, 3).iter().zip(longs(&columns, 4)) {
                    left.lost(&String::from_utf8_lossy(reason.data()), *count);
                }
            }
            _ => (0..columns.rows()).for_each(|row| left.anchor([0, 1, 2, 3].map(|at| longs(&columns, at)[row]))),
        }
    }
    Ok(())
}

impl Left {
    /// A row of the journal, which is in no file yet.
    pub fn add(&mut self, table: Table, cells: &[Cell<'_>]) {
        match (table, cells) {
            (Table::Names, [Cell::Int(id), ..]) => self.last_name = self.last_name.max(*id),
            (Table::Stacks, [Cell::Int(id), ..]) => self.last_stack = self.last_stack.max(*id),
            (Table::Anchors, [Cell::Long(ticks), Cell::Long(mono), Cell::Long(real), Cell::Long(residual)]) => {
                self.anchor([*ticks, *mono, *real, *residual]);
            }
            (Table::Losses, [_, _, _, Cell::Text(reason), Cell::Long(count)]) => self.lost(reason, *count),
            _ => {}
        }
    }

    fn anchor(&mut self, [ticks, mono, real, residual]: [i64; 4]) {
        let anchor = Anchor { ticks: ticks as u64, mono: mono as u64, real: real as u64, bracket: 0 };
        self.first_anchor.get_or_insert(anchor);
        self.last_anchor = Some(anchor);
        self.residual = self.residual.max(residual as u64);
    }

    fn lost(&mut self, reason: &str, count: i64) {
        let reason = LossReason::from_name(reason).unwrap_or(LossReason::Unknown);
        *self.losses.entry(reason).or_default() += count as u64;
    }
}

fn ints(columns: &Columns, number: usize) -> &[i32] {
    if let Values::Int(values) = &columns.data[number].values { values } else { &[] }
}

fn longs(columns: &Columns, number: usize) -> &[i64] {
    if let Values::Long(values) = &columns.data[number].values { values } else { &[] }
}

fn texts(columns: &Columns, number: usize) -> &[ByteArray] {
    if let Values::Text(values) = &columns.data[number].values { values } else { &[] }
}

/// Notes slices that are open in these rows, and forgets those that they complete.
fn open_slices(columns: &Columns, open: &mut HashMap<(i32, i32, i32), Checkpoint>) {
    let level = |column: usize, row: usize| columns.data[column].levels.as_ref().is_none_or(|levels| levels[row] == 1);
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
        let args = next(8, &mut args_at).map(|at| String::from_utf8_lossy(texts(columns, 8)[at].data()).into_owned());
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
