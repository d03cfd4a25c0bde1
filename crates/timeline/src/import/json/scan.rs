//! Finds where values begin and end in a stream of JSON and hands them over one at a time, so that a file costs the memory of
//! its largest event and a broken event costs itself. What is inside a value is left to `fields`.

use super::fields::Raw;
use memchr::memchr2;
use std::io::{self, BufRead};

/// A longer key is read as empty: nobody asks for it.
const LONGEST_KEY: usize = 256;

pub struct Scan<R> {
    input: R,
    /// Bytes taken so far.
    pub offset: u64,
}

/// Why the walk did not reach the end of the document.
#[derive(Debug)]
pub enum Stop {
    /// The input ends in the middle.
    Cut,
    /// What comes next cannot stand here.
    Unexpected(u8),
    Input(io::Error),
}

impl Stop {
    /// The input is a packed one that unpacks to more than it may.
    pub fn is_too_large(&self) -> bool {
        matches!(self, Stop::Input(error) if error.kind() == io::ErrorKind::FileTooLarge)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Stop::Cut,
            _ => Stop::Input(error),
        }
    }
}

impl<R: BufRead> Scan<R> {
    pub fn new(input: R) -> Scan<R> {
        Scan { input, offset: 0 }
    }

    fn take(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.offset += bytes as u64;
    }

    /// The next byte that is not space; it is not taken.
    pub fn peek(&mut self) -> Result<u8, Stop> {
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Err(Stop::Cut);
            }
            let spaces = chunk.iter().take_while(|byte| **byte <= b' ').count();
            let next = chunk.get(spaces).copied();
            self.take(spaces);
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }

    /// Takes the next byte if it is this one.
    pub fn accept(&mut self, byte: u8) -> Result<bool, Stop> {
        let found = self.peek()? == byte;
        self.take(usize::from(found));
        Ok(found)
    }

    pub fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        if self.accept(byte)? { Ok(()) } else { Err(Stop::Unexpected(self.peek()?)) }
    }

    /// Is there another value in this list (`]`) or object (`}`)? Takes the comma or the end.
    pub fn another(&mut self, end: u8) -> Result<bool, Stop> {
        while self.accept(b',')? {}
        Ok(!self.accept(end)?)
    }

    /// Takes a whole value. `kept` holds its text, or is empty if it is longer than `most`.
    pub fn value(&mut self, kept: &mut Vec<u8>, most: usize) -> Result<(), Stop> {
        kept.clear();
        let first = self.peek()?;
        let mut extent = Extent::default();
        let (mut over, mut length) = (false, 0);
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Err(Stop::Cut);
            }
            let (used, done) = extent.feed(chunk);
            length += used;
            over |= length > most;
            if !over {
                kept.extend_from_slice(&chunk[..used]);
            }
            self.take(used);
            if done {
                break;
            }
        }
        if over {
            kept.clear();
        }
        if length == 0 { Err(Stop::Unexpected(first)) } else { Ok(()) }
    }

    /// The next key of an object whose `{` was taken, with its colon; None at the end.
    pub fn key(&mut self) -> Result<Option<String>, Stop> {
        if !self.another(b'}')? {
            return Ok(None);
        }
        match self.peek()? {
            b'"' => {}
            other => return Err(Stop::Unexpected(other)),
        }
        let mut kept = Vec::new();
        self.value(&mut kept, LONGEST_KEY)?;
        self.expect(b':')?;
        Ok(Some(Raw(&String::from_utf8_lossy(&kept)).owned()))
    }

    pub fn skip(&mut self) -> Result<(), Stop> {
        self.value(&mut Vec::new(), 0)
    }
}

/// Where in a value we are.
#[derive(Default)]
struct Extent {
    depth: u64,
    inside: bool,
    escaped: bool,
    /// A number or a word has begun: it ends before whatever cannot be part of it.
    bare: bool,
}

impl Extent {
    /// How many bytes of the chunk belong to the value, and whether it ends there.
    fn feed(&mut self, chunk: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(byte) = chunk.get(at) {
            if self.escaped {
                self.escaped = false;
            } else if self.inside {
                let Some(skipped) = memchr2(b'"', b'\\', &chunk[at..]) else { break };
                at += skipped;
                self.escaped = chunk[at] == b'\\';
                self.inside = self.escaped;
                if !self.inside && self.depth == 0 {
                    return (at + 1, true);
                }
            } else {
                match byte {
                    b'"' | b'{' | b'[' if self.bare => return (at, true),
                    b'"' => self.inside = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' if self.depth > 0 => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            return (at + 1, true);
                        }
                    }
                    b'}' | b']' | b',' | b':' | ..=b' ' if self.depth == 0 => return (at, true),
                    _ => self.bare |= self.depth == 0,
                }
            }
            at += 1;
        }
        (chunk.len(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Every value of a list, read through a buffer of `size` bytes.
    fn values(text: &str, size: usize, most: usize) -> (Vec<String>, Option<Stop>, u64) {
        let mut scan = Scan::new(BufReader::with_capacity(size, text.as_bytes()));
        let (mut all, mut kept) = (Vec::new(), Vec::new());
        let mut walk = || {
            scan.expect(b'[')?;
            while scan.another(b']')? {
                scan.value(&mut kept, most)?;
                all.push(String::from_utf8_lossy(&kept).into_owned());
            }
            Ok(())
        };
        let stop = walk().err();
        (all, stop, scan.offset)
    }

    #[test]
    fn values_come_apart_wherever_the_buffer_ends() {
        let text = r#" [ {"a":"]}\"\\"} , [1,[2]],12.5e3 ,"x",null,]"#;
        for size in 1..text.len() {
            let (all, stop, _) = values(text, size, 100);
            assert_eq!(all, [r#"{"a":"]}\"\\"}"#, "[1,[2]]", "12.5e3", r#""x""#, "null"], "{size}");
            assert!(stop.is_none());
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_taken_but_not_kept() {
        let text = format!(r#"["{}",7]"#, "x".repeat(1000));
        assert_eq!(values(&text, 64, 100).0, ["", "7"]);
    }

    #[test]
    fn where_it_stopped_is_known() {
        assert!(matches!(values(r#"[1,{"a":"#, 3, 9), (_, Some(Stop::Cut), 8)));
        assert!(matches!(values("[1,}", 3, 9), (_, Some(Stop::Unexpected(b'}')), 3)));
        assert!(matches!(values(&"[".repeat(1_000_000), 4096, 9), (_, Some(Stop::Cut), 1_000_000)));
    }
}
