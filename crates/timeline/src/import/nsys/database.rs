//! The SQLite file: opened so that nothing is ever written beside it, and read table by table with only the columns that it
//! has. Tables and columns came and went with the versions of Nsight Systems.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// SQLite's own memory: pages that it keeps, and one row, which is at most some kilobytes.
const MOST_HEAP: u64 = 256 << 20;
/// A row takes two bytes in its page's list, and at least two of its own.
const LEAST_ROW: u64 = 4;

pub struct Database {
    connection: Connection,
    /// Tables, with their columns.
    pub tables: BTreeMap<String, HashSet<String>>,
    most_rows: u64,
}

/// One row, by the place of the wanted columns; a missing column or another type reads as nothing.
pub struct Row<'a>(&'a rusqlite::Row<'a>);

impl Database {
    pub fn open(path: &Path) -> rusqlite::Result<Database> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(address(path), flags)?;
        // What a file defines itself must not run.
        connection.execute_batch("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;")?;
        connection.execute_batch(&format!("PRAGMA hard_heap_limit={MOST_HEAP};"))?;
        let mut tables = BTreeMap::new();
        let names: Vec<String> = connection
            .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")?
            .query_map([], |row| row.get(0))?
            .filter_map(Result::ok)
            .collect();
        for name in names {
            let columns = connection
                .prepare("SELECT name FROM pragma_table_info(?1)")?
                .query_map([&name], |row| row.get(0))?
                .filter_map(Result::ok)
                .collect();
            tables.insert(name, columns);
        }
        let most_rows = std::fs::metadata(path).map_or(0, |file| file.len()) / LEAST_ROW;
        Ok(Database { connection, tables, most_rows })
    }

    pub fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// Calls `take` with every row. A damaged table gives the rows before the damage, and the error.
    pub fn rows(&self, table: &str, columns: &[&str], mut take: impl FnMut(Row<'_>)) -> rusqlite::Result<()> {
        let Some(known) = self.tables.get(table) else { return Ok(()) };
        // Names of tables and columns are ours, never the file's.
        let list: Vec<String> = columns
            .iter()
            .map(|column| if known.contains(*column) { format!("\"{column}\"") } else { "NULL".into() })
            .collect();
        let mut statement = self.connection.prepare(&format!("SELECT {} FROM \"{table}\"", list.join(",")))?;
        let mut rows = statement.query([])?;
        let mut left = self.most_rows;
        while let Some(row) = rows.next()? {
            // Pages that refer to each other in a circle give rows without end.
            left = left.checked_sub(1).ok_or(rusqlite::Error::InvalidQuery)?;
            take(Row(row));
        }
        Ok(())
    }
}

impl Row<'_> {
    pub fn number(&self, place: usize) -> Option<i64> {
        match self.0.get_ref(place) {
            Ok(ValueRef::Integer(number)) => Some(number),
            _ => None,
        }
    }

    pub fn small(&self, place: usize) -> u32 {
        self.number(place).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
    }

    pub fn text(&self, place: usize) -> Option<String> {
        match self.0.get_ref(place) {
            Ok(ValueRef::Text(bytes)) => {
                Some(trace::event::cut(&String::from_utf8_lossy(bytes), trace::event::MAX_TEXT).to_owned())
            }
            _ => None,
        }
    }
}

/// `immutable`: no lock is taken and no journal looked for, so the file may lie where we cannot write.
fn address(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            _ => write!(address, "%{byte:02X}").unwrap_or_default(),
        }
    }
    address + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_the_same_file_whatever_is_in_it() {
        assert_eq!(address(Path::new("/a b/c?d#e%f.sqlite")), "file:/a%20b/c%3Fd%23e%25f.sqlite?immutable=1");
    }
}
