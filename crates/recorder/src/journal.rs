//! The journal: what the recorder itself saw since it last closed files (samples, readings, names, processes, notes), in the
//! segments folder, where it outlives the recorder as the workload's records do. Only a recovery reads it.

use crate::manifest::{Device, Process};
use crate::store::Cell;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use trace::codes::Note;
use trace::plain_file;
use trace::tables::{ColumnType, Table};

/// In a segments folder.
pub(crate) const JOURNAL: &str = "journal";

/// Names the layout: a recovery leaves alone what it does not know.
const MAGIC: [u8; 4] = *b"isj1";
/// A second of the busiest recording is a tenth of this. Only a disk that takes nothing for long fills it.
const MOST: usize = 16 << 20;
/// The entry that is no row. Rows begin with the number of their table.
const FACTS: u8 = 255;
const NULL: u8 = 0;
const THERE: u8 = 1;

/// What the manifest will say.
#[derive(Default, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// With their numbers.
    pub processes: Vec<(usize, Process)>,
    #[serde(with = "crate::note_json")]
    pub notes: Vec<Note>,
    pub devices: Option<Vec<Device>>,
}

/// Entries on their way into the journal.
#[derive(Default)]
pub(crate) struct Entries(Vec<u8>);

impl Entries {
    /// A row that will be in the file of that number, unless we are killed before.
    pub fn row(&mut self, table: Table, file: u32, cells: &[Cell<'_>]) {
        self.0.push(table as u8);
        self.0.extend(file.to_le_bytes());
        for cell in cells {
            self.0.push(if matches!(cell, Cell::Null) { NULL } else { THERE });
            match cell {
                Cell::Int(value) => self.0.extend(value.to_le_bytes()),
                Cell::Long(value) => self.0.extend(value.to_le_bytes()),
                Cell::Text(text) => self.text(text.as_bytes()),
                Cell::Null => {}
            }
        }
    }

    pub fn facts(&mut self, facts: &Facts) {
        if let Ok(json) = serde_json::to_vec(facts) {
            self.0.push(FACTS);
            self.text(&json);
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as u32).to_le_bytes());
        self.0.extend(bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

pub(crate) struct Journal {
    file: File,
    length: usize,
    buffer: Vec<u8>,
}

impl Journal {
    /// Begins a journal, or goes on with that of a killed recorder, of which so many bytes are whole.
    pub fn resume(folder: &Path, whole: u64) -> io::Result<Journal> {
        let mut options = File::options();
        options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(folder.join(JOURNAL))?;
        file.set_len(whole)?;
        Ok(Journal { file, length: whole as usize, buffer: Vec::new() })
    }

    /// Adds entries that belong together: a recovery finds all of them, or none.
    pub fn append(&mut self, entries: &Entries) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.extend(if self.length == 0 { &MAGIC[..] } else { &[] });
        self.buffer.extend((entries.0.len() as u32).to_le_bytes());
        self.buffer.extend(&entries.0);
        if self.length + self.buffer.len() > MOST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // Half of it would hide what comes after.
        self.file.write_all(&self.buffer).inspect_err(|_| _ = self.file.set_len(self.length as u64))?;
        self.length += self.buffer.len();
        Ok(())
    }

    /// Everything in it is in files now.
    pub fn clear(&mut self) {
        if self.file.set_len(0).is_ok() {
            self.length = 0;
        }
    }
}

/// When a journal was last written to, in nanoseconds since 1970.
pub(crate) fn last_written(folder: &Path) -> Option<u64> {
    let time: SystemTime = fs::metadata(folder.join(JOURNAL)).and_then(|file| file.modified()).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_nanos() as u64)
}

/// Reads a journal as far as it goes: the last entries may have been cut by the kill. Returns how many bytes are whole.
pub(crate) fn read(folder: &Path, row: impl FnMut(Table, u32, &[Cell<'_>]), facts: impl FnMut(Facts)) -> u64 {
    let (bytes, mut whole) = (plain_file::read_inside(&folder.join(JOURNAL), MOST as u64).unwrap_or_default(), 0);
    let _ = decode(&bytes, &mut whole, row, facts);
    whole as u64
}

fn decode(
    bytes: &[u8],
    whole: &mut usize,
    mut row: impl FnMut(Table, u32, &[Cell<'_>]),
    mut facts: impl FnMut(Facts),
) -> Option<()> {
    let mut rest = bytes.strip_prefix(&MAGIC)?;
    loop {
        *whole = bytes.len() - rest.len();
        let mut entries = text(&mut rest)?;
        while let Some(tag) = take::<1>(&mut entries) {
            if tag == [FACTS] {
                facts(serde_json::from_slice(text(&mut entries)?).ok()?);
                continue;
            }
            let table = *Table::ALL.get(usize::from(tag[0]))?;
            let file = u32::from_le_bytes(take(&mut entries)?);
            let mut cells = Vec::with_capacity(table.columns().len());
            for column in table.columns() {
                cells.push(match (take(&mut entries)?, column.kind) {
                    ([NULL], _) if column.optional => Cell::Null,
                    ([THERE], ColumnType::Int32) => Cell::Int(i32::from_le_bytes(take(&mut entries)?)),
                    ([THERE], ColumnType::Int64) => Cell::Long(i64::from_le_bytes(take(&mut entries)?)),
                    ([THERE], ColumnType::Text) => Cell::Text(std::str::from_utf8(text(&mut entries)?).ok()?),
                    _ => return None,
                });
            }
            row(table, file, &cells);
        }
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*first)
}

fn text<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(from)?) as usize;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(number: i32) -> Entries {
        let mut entries = Entries::default();
        let name = [Cell::Int(number), Cell::Text("naïve"), Cell::Null, Cell::Int(-3)];
        entries.row(Table::Names, 7, &name);
        entries.facts(&Facts { notes: vec![Note::sentence(format!("note {number}"))], ..Facts::default() });
        entries
    }

    fn read_back(folder: &Path) -> Vec<String> {
        let found = std::cell::RefCell::new(Vec::new());
        read(
            folder,
            |table, file, cells| found.borrow_mut().push(format!("{} {file} {cells:?}", table.name())),
            |facts| found.borrow_mut().push(facts.notes[0].said()),
        );
        found.into_inner()
    }

    #[test]
    fn what_was_written_whole_comes_back_wherever_the_kill_cut_it() {
        let folder = std::env::temp_dir().join(format!("inferscope-journal-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut journal = Journal::resume(&folder, 0).unwrap();
        journal.append(&entries(1)).unwrap();
        let first = ["names 7 [Int(1), Text(\"naïve\"), Null, Int(-3)]", "note 1"];
        assert_eq!(read_back(&folder), first);
        let whole = journal.length;
        journal.append(&entries(2)).unwrap();
        assert_eq!(read_back(&folder).len(), 4);
        let bytes = fs::read(folder.join(JOURNAL)).unwrap();
        for cut in 0..bytes.len() {
            fs::write(folder.join(JOURNAL), &bytes[..cut]).unwrap();
            let expected: &[&str] = if cut < whole { &[] } else { &first };
            assert_eq!(read_back(&folder), expected, "cut at {cut}");
        }
        journal.clear();
        assert!(read_back(&folder).is_empty() && last_written(&folder).is_some());
        journal.append(&entries(3)).unwrap();
        assert_eq!(read_back(&folder).last().unwrap(), "note 3");
        fs::remove_dir_all(folder).unwrap();
    }
}
