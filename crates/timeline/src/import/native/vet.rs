//! Looks a Parquet file over before the parquet crate reads it: that crate allocates what a page header declares and
//! follows a schema as deep as it goes, so a few changed bytes could take all memory or overflow the stack, which no
//! caller can catch. Here every declared size is held against the bytes that are there.

use super::thrift::{self, Broken, Compact};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Ours are a few kilobytes; a compacted trace of days, a few megabytes.
const LARGEST_FOOTER: u64 = 64 << 20;
const MOST_COLUMNS: u64 = 256;
/// Delta- and run-length-encoded rows of ours take a byte or two, and less where a program does the same thing at an even
/// pace; 16 rows a byte leaves room, and stops a file of a kilobyte from declaring a billion rows. Room is made for all of
/// them, but what is never written to takes no memory.
const MOST_ROWS_A_BYTE: u64 = 16;
/// Snappy writes at most 64 bytes for 3.
const MOST_SNAPPY_GROWTH: u64 = 24;

/// Encodings whose decoders allocate by the page's own count: plain, dictionary, run length and delta. The others take
/// their allocation from inside the data, and our recorder does not write them.
const ENCODINGS: [i64; 5] = [0, 2, 3, 5, 8];

const MAGIC: &[u8; 4] = b"PAR1";

/// Checks the end of the file and its schema, which must be flat.
pub fn footer(file: &File, length: u64) -> Result<(), String> {
    if length < 12 {
        return Err(format!("it is only {length} bytes long"));
    }
    let mut tail = [0u8; 8];
    read(file, length - 8, &mut tail)?;
    if &tail[4..] != MAGIC {
        return Err("its end is missing".into());
    }
    let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if size > (length - 12).min(LARGEST_FOOTER) {
        return Err("its footer is larger than the file".into());
    }
    let mut bytes = vec![0; size as usize];
    read(file, length - 8 - size, &mut bytes)?;
    if !flat_schema(&bytes).unwrap_or(false) {
        return Err("its footer is damaged".into());
    }
    Ok(())
}

fn flat_schema(footer: &[u8]) -> Result<bool, Broken> {
    let mut flat = true;
    Compact::new(footer).fields(|reader, number, kind| {
        if (number, kind) != (2, thrift::LIST) {
            return Ok(false);
        }
        let (count, of) = reader.list()?;
        if of != thrift::STRUCT || count > MOST_COLUMNS {
            return Err(Broken);
        }
        for element in 0..count {
            reader.fields(|reader, number, kind| {
                if (number, kind) != (5, thrift::I32) {
                    return Ok(false);
                }
                flat &= reader.integer()? == if element == 0 { count as i64 - 1 } else { 0 };
                Ok(true)
            })?;
        }
        Ok(true)
    })?;
    Ok(flat)
}

/// Whether a file of that many bytes can hold that many rows.
pub fn rows(declared: i64, length: u64) -> Result<u64, String> {
    u64::try_from(declared)
        .ok()
        .filter(|rows| *rows <= length.saturating_mul(MOST_ROWS_A_BYTE))
        .ok_or_else(|| format!("it declares {declared} rows in {length} bytes"))
}

/// Walks the pages of one column chunk.
pub fn pages(file: &File, length: u64, start: u64, size: u64, snappy: bool) -> Result<(), String> {
    let end = start.checked_add(size).filter(|end| *end <= length).ok_or("a column lies outside the file")?;
    let mut at = start;
    let mut window = Vec::new();
    while at < end {
        let (header, header_size) = page(file, at, end, &mut window).ok_or("a page header is damaged")?;
        let room = end - at - header_size;
        let (packed, whole) = (unsigned(header.packed), unsigned(header.whole));
        let most = if snappy { packed.saturating_mul(MOST_SNAPPY_GROWTH).saturating_add(64) } else { packed };
        if packed > room || whole > most {
            return Err("a page is larger than the bytes it is made of".into());
        }
        // A value of a dictionary takes at least four bytes.
        if unsigned(header.dictionary_values) > whole / 4 {
            return Err("a dictionary declares more values than it has bytes for".into());
        }
        if header.encoding.is_some_and(|encoding| !ENCODINGS.contains(&encoding)) {
            return Err("a page has an encoding that InferScope does not write".into());
        }
        at += header_size + packed;
    }
    Ok(())
}

#[derive(Default)]
struct Header {
    whole: i64,
    packed: i64,
    dictionary_values: i64,
    encoding: Option<i64>,
}

/// The page header at `at` and its size. None: it is damaged.
fn page(file: &File, at: u64, end: u64, window: &mut Vec<u8>) -> Option<(Header, u64)> {
    // Most headers take 30 bytes; those with long statistics, a few kilobytes.
    for want in [256, 4096, 1 << 20] {
        let size = want.min(end - at);
        window.resize(size as usize, 0);
        read(file, at, window).ok()?;
        let mut reader = Compact::new(window);
        if let Ok(header) = header(&mut reader) {
            return Some((header, reader.position() as u64));
        }
        if size < want {
            break;
        }
    }
    None
}

fn header(reader: &mut Compact<'_>) -> Result<Header, Broken> {
    let mut header = Header::default();
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (2, thrift::I32) => header.whole = reader.integer()?,
            (3, thrift::I32) => header.packed = reader.integer()?,
            (5 | 7 | 8, thrift::STRUCT) => {
                let page = number;
                reader.fields(|reader, number, kind| {
                    match (page, number, kind) {
                        (7, 1, thrift::I32) => header.dictionary_values = reader.integer()?,
                        (5, 2, thrift::I32) | (8, 4, thrift::I32) => header.encoding = Some(reader.integer()?),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(header)
}

/// Negative numbers are as impossible as huge ones.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn read(file: &File, at: u64, bytes: &mut [u8]) -> Result<(), String> {
    file.read_exact_at(bytes, at).map_err(|error| format!("it cannot be read ({error})"))
}
