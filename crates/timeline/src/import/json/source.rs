//! The bytes of a file, unpacked if they are gzip, through one buffer; how far we are is told as they are taken.

use flate2::bufread::MultiGzDecoder;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

const BUFFER: usize = 256 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Some writers begin UTF-8 with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub struct Source<'p> {
    pub input: Box<dyn BufRead + 'p>,
    pub packed: bool,
    /// Nothing is in it at all.
    pub empty: bool,
}

/// `progress` is called with the bytes of the file that were taken, and all of them. What unpacks to more than `most` bytes ends
/// with [`io::ErrorKind::FileTooLarge`].
pub fn open<'p>(file: File, most: u64, progress: &'p mut dyn FnMut(u64, u64)) -> io::Result<Source<'p>> {
    let total = file.metadata()?.len();
    let taken = Rc::new(Cell::new(0));
    let mut plain = BufReader::with_capacity(BUFFER, Counted { file, taken: taken.clone() });
    let (packed, empty) = {
        let first = plain.fill_buf()?;
        (first.starts_with(&GZIP), first.is_empty())
    };
    let left = if packed { most } else { u64::MAX };
    let unpacked: Box<dyn Read> = if packed { Box::new(MultiGzDecoder::new(plain)) } else { Box::new(plain) };
    let mut input = BufReader::with_capacity(BUFFER, Told { inner: unpacked, left, taken, total, progress });
    // A damaged archive is met again by whoever reads on.
    if input.fill_buf().is_ok_and(|first| first.starts_with(BYTE_ORDER_MARK)) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    Ok(Source { input: Box::new(input), packed, empty })
}

struct Counted {
    file: File,
    taken: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}

struct Told<'p> {
    inner: Box<dyn Read>,
    /// Bytes that may still come.
    left: u64,
    taken: Rc<Cell<u64>>,
    total: u64,
    progress: &'p mut dyn FnMut(u64, u64),
}

impl Read for Told<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (self.progress)(self.taken.get().min(self.total), self.total);
        let count = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(count)
    }
}
