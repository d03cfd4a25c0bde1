//! Begin and end of scopes, steps and layers become one slice. They may lie in different rings (a task moved to another
//! thread), so an end may be read before its begin; and either may have been overwritten.

use crate::store::{Cell, Checkpoint, Columns};
use std::collections::HashMap;
use trace::tables::SliceKind;

/// What a begin record says; an end record says it too, but for parent and args.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Begun {
    pub start: i64,
    pub thread: i32,
    pub kind: SliceKind,
    pub name: i32,
    pub parent: Option<i32>,
    pub args: Option<String>,
}

/// Scopes and steps share their ids, layers may have their own.
type Key = (SliceKind, i32);

/// The open scopes, steps and layers of one process.
#[derive(Default)]
pub(crate) struct Pairing {
    process: i32,
    open: HashMap<Key, Begun>,
    /// Ends that came before their begin, with the round they came in.
    early: HashMap<Key, (Begun, i64, u64)>,
    /// Begun since the last file was closed: not yet on disk as open.
    new: Vec<Key>,
    text_bytes: usize,
}

/// Beyond these a begin goes to disk at once, and its end stands for itself.
const MOST_OPEN: usize = 100_000;
const MOST_TEXT: usize = 8 << 20;

impl Pairing {
    pub fn new(process: i32) -> Pairing {
        Pairing { process, ..Pairing::default() }
    }

    /// A slice that a killed recorder left on disk as open.
    pub fn reopen(&mut self, id: i32, left: Checkpoint) {
        if let Some(kind) = SliceKind::from_i32(left.kind) {
            let Checkpoint { start, thread, name, parent, args, .. } = left;
            self.open.insert((kind, id), Begun { start, thread, kind, name, parent, args });
        }
    }

    pub fn begin(&mut self, id: i32, begun: Begun, rows: &mut Columns) {
        let key = (begun.kind, id);
        if let Some((_, end, _)) = self.early.remove(&key) {
            return push(rows, self.process, Some(id), &begun, Some(end));
        }
        let bytes = begun.args.as_ref().map_or(0, String::len);
        if self.open.len() >= MOST_OPEN || self.text_bytes + bytes > MOST_TEXT {
            return push(rows, self.process, Some(id), &begun, None);
        }
        self.text_bytes += bytes;
        self.open.insert(key, begun);
        self.new.push(key);
    }

    /// `begun` is what the end record itself knows, in case its begin is gone.
    pub fn end(&mut self, id: i32, begun: Begun, end: i64, round: u64, rows: &mut Columns) {
        match self.open.remove(&(begun.kind, id)) {
            Some(open) => {
                self.text_bytes = self.text_bytes.saturating_sub(open.args.as_ref().map_or(0, String::len));
                push(rows, self.process, Some(id), &open, Some(end));
            }
            None if self.early.len() >= MOST_OPEN => push(rows, self.process, Some(id), &begun, Some(end)),
            None => _ = self.early.insert((begun.kind, id), (begun, end, round)),
        }
    }

    /// Every ring was read in `round`: ends that came before it will not find their begin any more.
    pub fn settle(&mut self, round: u64, rows: &mut Columns) {
        let process = self.process;
        self.early.retain(|(_, id), (begun, end, came)| {
            let wait = *came >= round;
            if !wait {
                push(rows, process, Some(*id), begun, Some(*end));
            }
            wait
        });
    }

    pub fn waits(&self) -> bool {
        !self.early.is_empty()
    }

    /// Writes what is open, once: the ring's space may be reclaimed after this.
    pub fn checkpoint(&mut self, rows: &mut Columns) {
        for key in self.new.drain(..) {
            if let Some(begun) = self.open.get(&key) {
                push(rows, self.process, Some(key.1), begun, None);
            }
        }
    }

    /// The process is gone: nothing will end any more.
    pub fn abandon(&mut self, rows: &mut Columns) {
        self.settle(u64::MAX, rows);
        self.checkpoint(rows);
    }
}

/// A row of slices; open without `end`.
pub(crate) fn push(rows: &mut Columns, process: i32, id: Option<i32>, begun: &Begun, end: Option<i64>) {
    rows.push(&[
        Cell::Long(begun.start),
        Cell::long_or_null(end.map(|end| (end - begun.start).max(0))),
        Cell::Int(process),
        Cell::Int(begun.thread),
        Cell::Int(begun.kind as i32),
        Cell::Int(begun.name),
        Cell::int_or_null(id),
        Cell::int_or_null(begun.parent),
        Cell::text_or_null(begun.args.as_deref()),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::tables::Table;

    fn begun(start: i64, parent: Option<i32>) -> Begun {
        Begun { start, thread: 1, kind: SliceKind::Scope, name: 1, parent, args: None }
    }

    fn rows(work: impl FnOnce(&mut Pairing, &mut Columns)) -> usize {
        let (mut pairing, mut columns) = (Pairing::new(0), Columns::new(Table::Slices));
        work(&mut pairing, &mut columns);
        columns.rows()
    }

    #[test]
    fn a_pair_is_one_row_and_an_open_one_is_checkpointed_once() {
        let count = rows(|pairing, rows| {
            pairing.begin(7, begun(10, None), rows);
            pairing.end(7, begun(10, None), 20, 1, rows);
            pairing.begin(8, begun(11, Some(7)), rows);
            pairing.checkpoint(rows);
            pairing.checkpoint(rows);
            pairing.abandon(rows);
        });
        assert_eq!(count, 2);
    }

    #[test]
    fn an_end_waits_one_whole_round_for_its_begin() {
        let count = rows(|pairing, rows| {
            pairing.end(7, begun(10, None), 20, 1, rows);
            pairing.settle(1, rows);
            assert_eq!((rows.rows(), pairing.waits()), (0, true));
            pairing.begin(7, begun(10, Some(3)), rows);
            assert_eq!((rows.rows(), pairing.waits()), (1, false));
            pairing.end(9, begun(10, None), 20, 1, rows);
            pairing.settle(2, rows);
        });
        assert_eq!(count, 2);
    }

    #[test]
    fn a_million_open_scopes_stay_bounded() {
        let count = rows(|pairing, rows| {
            for id in 0..1_000_000 {
                pairing.begin(id, begun(i64::from(id), None), rows);
                if rows.is_full() {
                    rows.clear();
                }
            }
            assert!(pairing.open.len() <= MOST_OPEN && pairing.new.len() <= MOST_OPEN);
            rows.clear();
            pairing.end(999_999, begun(5, None), 9, 1, rows);
            pairing.settle(2, rows);
        });
        assert_eq!(count, 1);
    }
}
