//! The name table of a segment: each name is appended once, and its number goes into records. The table is
//! bounded; what does not fit is written beside its record instead (`NameId::INLINE`), so no name is lost.

use crate::event::{MAX_TEXT, NameId, cut};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a function is defined. Joined to its name in the table by `SEPARATOR`.
pub const SEPARATOR: char = '\u{1f}';

/// Names that one process may intern. Each also costs a map entry in the workload.
const MOST_NAMES: usize = 200_000;
/// Messages that a program makes up may take this share of the names and of the table: functions, kernels and calls, which
/// have no room for a text of their own, keep the rest.
const MESSAGES: (usize, usize) = (7, 8);

/// The table's bytes and the number of bytes published.
#[derive(Clone, Copy)]
pub struct NameTable<'a> {
    head: &'a AtomicU64,
    words: &'a [AtomicU64],
}

impl<'a> NameTable<'a> {
    pub fn new(head: &'a AtomicU64, words: &'a [AtomicU64]) -> NameTable<'a> {
        NameTable { head, words }
    }
}

/// The writing side: remembers what it has written. Callers hold a lock around it; only a name's first use
/// comes here.
pub struct NameWriter<'a> {
    table: NameTable<'a>,
    /// Gives the same table with at least that many bytes present, while there is room.
    grow: Box<dyn Fn(usize) -> Option<NameTable<'a>> + Send + 'a>,
    known: HashMap<Box<str>, NameId>,
    next: u32,
    full: bool,
}

/// Memory is taken from the machine in doublings from here: most processes have few names.
const FIRST_BYTES: usize = 64 << 10;
/// Where memory is scarce: a page.
const LEAST_BYTES: usize = 4096;

impl<'a> NameWriter<'a> {
    /// None when there is no room for even a small table.
    pub fn new(grow: impl Fn(usize) -> Option<NameTable<'a>> + Send + 'a) -> Option<NameWriter<'a>> {
        let table = grow(FIRST_BYTES).or_else(|| grow(LEAST_BYTES))?;
        Some(NameWriter { table, grow: Box::new(grow), known: HashMap::new(), next: 1, full: false })
    }

    /// Makes room for `words` more words after `head`.
    fn fits(&mut self, head: usize, words: usize) -> bool {
        while head + words > self.table.words.len() {
            let before = self.table.words.len();
            match (self.grow)(before * 16) {
                Some(table) if table.words.len() > before => self.table = table,
                _ => return false,
            }
        }
        true
    }

    /// The number of a name, or `INLINE` when the table is full.
    pub fn intern(&mut self, text: &str) -> NameId {
        let text = cut(text, MAX_TEXT);
        if let Some(id) = self.known.get(text) {
            return *id;
        }
        if self.full || self.known.len() >= MOST_NAMES {
            return NameId::INLINE;
        }
        self.append(text)
    }

    /// The same for a text of which there may be any number, in a table that may grow to `most` bytes.
    pub fn intern_message(&mut self, text: &str, most: usize) -> NameId {
        let share = |all: usize| all / MESSAGES.1 * MESSAGES.0;
        let used = self.table.head.load(Ordering::Relaxed) as usize;
        let is_full = self.known.len() >= share(MOST_NAMES) || used + 8 + MAX_TEXT > share(most);
        match self.known.get(cut(text, MAX_TEXT)) {
            Some(id) => *id,
            None if is_full => NameId::INLINE,
            None => self.intern(text),
        }
    }

    fn append(&mut self, text: &str) -> NameId {
        let head = self.table.head.load(Ordering::Relaxed) as usize / 8;
        let needed = 1 + text.len().div_ceil(8);
        if !self.fits(head, needed) {
            self.full = true;
            return NameId::INLINE;
        }
        self.table.words[head].store(text.len() as u64, Ordering::Relaxed);
        for (cell, chunk) in self.table.words[head + 1..].iter().zip(text.as_bytes().chunks(8)) {
            let mut bytes = [0u8; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            cell.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        self.table.head.store(((head + needed) * 8) as u64, Ordering::Release);
        let id = NameId(self.next);
        self.next += 1;
        self.known.insert(text.into(), id);
        id
    }
}

/// The reading side: hands over names in the order of their numbers, each once.
#[derive(Default, Debug)]
pub struct NameCursor {
    at: usize,
    read: u32,
}

impl NameCursor {
    /// Calls `take` for every name published since the last call. Stops for good at damage.
    pub fn read(&mut self, table: NameTable<'_>, mut take: impl FnMut(NameId, String)) {
        let head = (table.head.load(Ordering::Acquire) as usize / 8).min(table.words.len());
        while self.at < head {
            let length = table.words[self.at].load(Ordering::Relaxed) as usize;
            let needed = 1 + length.min(MAX_TEXT + 8).div_ceil(8);
            if length > MAX_TEXT || self.at + needed > head {
                self.at = usize::MAX;
                return;
            }
            let mut bytes: Vec<u8> = table.words[self.at + 1..self.at + needed]
                .iter()
                .flat_map(|cell| cell.load(Ordering::Relaxed).to_le_bytes())
                .collect();
            bytes.truncate(length);
            self.at += needed;
            self.read += 1;
            take(NameId(self.read), String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    fn read(table: NameTable<'_>) -> Vec<(u32, String)> {
        let mut names = Vec::new();
        NameCursor::default().read(table, |id, text| names.push((id.0, text)));
        names
    }

    #[test]
    fn names_are_written_once_and_read_in_order() {
        let (head, words) = (AtomicU64::new(0), words(64));
        let table = NameTable::new(&head, &words);
        let mut writer = NameWriter::new(|_| Some(table)).unwrap();
        let ids: Vec<_> = ["a", "tokenise é", "", "a"].map(|name| writer.intern(name).0).into();
        assert_eq!(ids, [1, 2, 3, 1]);
        assert_eq!(read(table), [(1, "a".into()), (2, "tokenise é".into()), (3, String::new())]);
    }

    #[test]
    fn a_full_table_says_inline_and_keeps_what_it_has() {
        let (head, words) = (AtomicU64::new(0), words(5));
        let table = NameTable::new(&head, &words);
        let mut writer = NameWriter::new(|_| Some(table)).unwrap();
        assert_eq!(writer.intern("eight by"), NameId(1));
        assert_eq!(writer.intern(&"x".repeat(100)), NameId::INLINE);
        assert_eq!(writer.intern("eight by"), NameId(1));
        assert_eq!(read(table).len(), 1);
    }

    #[test]
    fn messages_leave_room_for_other_names() {
        let (head, words) = (AtomicU64::new(0), words(1 << 10));
        let table = NameTable::new(&head, &words);
        let mut writer = NameWriter::new(|_| Some(table)).unwrap();
        let first = writer.intern_message("request 0", 8 << 10);
        let full = (1..).find(|at| writer.intern_message(&format!("request {at}"), 8 << 10) == NameId::INLINE);
        assert!(full.is_some_and(|at| at > 100), "{full:?}");
        assert_eq!(writer.intern_message("request 0", 8 << 10), first);
        assert_ne!(writer.intern("cudaLaunchKernel"), NameId::INLINE);
    }

    #[test]
    fn a_damaged_table_stops_quietly() {
        let (head, words) = (AtomicU64::new(40), words(5));
        words[0].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(read(NameTable::new(&head, &words)), []);
    }
}
