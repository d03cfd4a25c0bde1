//! The bytes of a pickle through one buffer, with the offset for messages. A length that the file cannot hold is known before anything is
//! taken for it.

use std::io::{self, Read};

const BUFFER: usize = 256 << 10;
/// Integers as text, and names; a line without end is damage.
const LONGEST_LINE: usize = 64 << 10;

/// Why reading ended before the end.
#[derive(Debug)]
pub enum Stop {
    /// The file ends in the middle.
    Cut,
    Damaged(&'static str),
    /// It asks for something that is not plain data: what.
    Code(String),
    /// It takes more memory than a snapshot of this size has values for.
    TooMuch,
    Input(io::Error),
}

pub struct Input<'p, R> {
    reader: R,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Offset in the file of the buffer's first byte.
    before: u64,
    pub total: u64,
    progress: &'p mut dyn FnMut(u64, u64),
}

impl<'p, R: Read> Input<'p, R> {
    pub fn new(reader: R, total: u64, progress: &'p mut dyn FnMut(u64, u64)) -> Input<'p, R> {
        Input { reader, buffer: vec![0; BUFFER], at: 0, filled: 0, before: 0, total, progress }
    }

    pub fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Bytes of the file that were not read yet, as far as its size says.
    pub fn left(&self) -> u64 {
        self.total.saturating_sub(self.offset())
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, Stop> {
        if self.at == self.filled {
            self.fill(1)?;
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.fill(N)?;
        let bytes = self.buffer[self.at..self.at + N].try_into().map_err(|_| Stop::Cut)?;
        self.at += N;
        Ok(bytes)
    }

    pub fn take(&mut self, length: usize) -> Result<&[u8], Stop> {
        self.fill(length)?;
        self.at += length;
        Ok(&self.buffer[self.at - length..self.at])
    }

    /// Up to the end of the line, without it.
    pub fn line(&mut self) -> Result<&[u8], Stop> {
        let mut seen = 0;
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[self.at + seen..self.filled]) {
                let start = self.at;
                self.at += seen + length + 1;
                return Ok(&self.buffer[start..self.at - 1]);
            }
            seen = self.filled - self.at;
            if seen > LONGEST_LINE {
                return Err(Stop::Damaged("a line has no end"));
            }
            self.fill(seen + 1)?;
        }
    }

    pub fn skip(&mut self, length: u64) -> Result<(), Stop> {
        let mut left = self.fits(length)?;
        while left > 0 {
            let part = left.min(BUFFER as u64) as usize;
            self.take(part)?;
            left -= part as u64;
        }
        Ok(())
    }

    /// The length, if the file has that much.
    pub fn fits(&self, length: u64) -> Result<u64, Stop> {
        if length <= self.left() { Ok(length) } else { Err(Stop::Cut) }
    }

    /// Makes sure that so many bytes lie in the buffer, one behind the other.
    fn fill(&mut self, length: usize) -> Result<(), Stop> {
        if self.filled - self.at >= length {
            return Ok(());
        }
        self.fits(length as u64)?;
        self.buffer.copy_within(self.at..self.filled, 0);
        self.before += self.at as u64;
        (self.at, self.filled) = (0, self.filled - self.at);
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        (self.progress)(self.before.min(self.total), self.total);
        while self.filled < length {
            match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Err(Stop::Cut),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Input(error)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lines_and_lengths_come_across_the_ends_of_the_buffer() {
        let bytes: Vec<u8> = (0..3 * BUFFER).map(|at| if at % 1000 == 999 { b'\n' } else { b'x' }).collect();
        let mut none = |_, _| {};
        let mut input = Input::new(bytes.as_slice(), bytes.len() as u64, &mut none);
        for _ in 0..300 {
            assert_eq!(input.line().unwrap().len(), 999);
        }
        assert_eq!(input.take(2000).unwrap().len(), 2000);
        assert_eq!(input.offset(), 302_000);
        input.skip(input.left() - 1).unwrap();
        assert!(input.byte().is_ok() && matches!(input.byte(), Err(Stop::Cut)));
    }

    #[test]
    fn what_the_file_cannot_hold_is_not_asked_for() {
        let mut none = |_, _| {};
        let mut input = Input::new(&b"abc"[..], 3, &mut none);
        assert!(matches!(input.take(usize::MAX), Err(Stop::Cut)) && matches!(input.skip(u64::MAX), Err(Stop::Cut)));
        assert_eq!(input.buffer.len(), BUFFER);
    }
}
