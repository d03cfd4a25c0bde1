//! Values of a JSON file one after the other, without holding the file: lines, the elements of an array, or those under `events` of an object that goes on
//! over many lines.

use super::{ReadError, ReadReport};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};

type Each<'a> = dyn FnMut(Value) -> Result<(), String> + 'a;

const EVENTS: &str = "events";

/// What some editors put in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first byte that is no white space, which stays in the input.
pub fn first_byte(input: &mut impl BufRead) -> io::Result<Option<u8>> {
    if input.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    loop {
        let buffer = input.fill_buf()?;
        let Some(first) = buffer.first().copied() else { return Ok(None) };
        if !first.is_ascii_whitespace() {
            return Ok(Some(first));
        }
        input.consume(1);
    }
}

/// Objects, a line each, or one object over many lines.
pub fn lines(mut input: impl BufRead, longest: u64, each: &mut Each<'_>) -> Result<ReadReport, ReadError> {
    let (mut report, mut at, mut line) = (ReadReport::default(), 0, Vec::new());
    let invalid = |at, why| ReadError::invalid("line", at, why);
    loop {
        line.clear();
        input.by_ref().take(longest + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(report);
        }
        at += 1;
        let is_too_long = line.len() as u64 > longest;
        let ended = line.ends_with(b"\n");
        if line.trim_ascii().is_empty() {
            continue;
        }
        let value = if is_too_long { None } else { Some(serde_json::from_slice::<Value>(&line)) };
        match value {
            // A file of one object that holds all events.
            Some(Ok(Value::Object(mut object))) if at == 1 && object.get(EVENTS).is_some_and(Value::is_array) => {
                let Some(Value::Array(events)) = object.remove(EVENTS) else { return Ok(report) };
                for (number, value) in (1..).zip(events) {
                    each(value).map_err(|why| ReadError::invalid("event", number, why))?;
                    report.events += 1;
                }
            }
            Some(Ok(value)) => {
                each(value).map_err(|why| invalid(at, why))?;
                report.events += 1;
            }
            Some(Err(_)) if !ended && report.events > 0 => {
                report.cut_short = true;
                return Ok(report);
            }
            // It goes on in the next line, or in this one.
            None if at == 1 && line.trim_ascii_start().starts_with(b"{") => {
                return object(line.as_slice().chain(input), longest, each);
            }
            Some(Err(error)) if at == 1 && error.is_eof() => {
                return object(line.as_slice().chain(input), longest, each);
            }
            None => return Err(invalid(at, format!("longer than {longest} bytes"))),
            Some(Err(error)) => return Err(invalid(at, format!("not JSON: {error}"))),
        }
    }
}

pub fn array(input: impl Read, longest: u64, each: &mut Each<'_>) -> Result<ReadReport, ReadError> {
    whole(input, longest, each, |reader, elements| elements.deserialize(reader))
}

fn object(input: impl Read, longest: u64, each: &mut Each<'_>) -> Result<ReadReport, ReadError> {
    whole(input, longest, each, |reader, elements| reader.deserialize_map(Object { elements }))
}

type Reader<'a, R> = serde_json::Deserializer<serde_json::de::IoRead<Bounded<'a, R>>>;

/// One value that is the whole file, whose elements are given to `each`.
fn whole<R: Read>(
    input: R,
    longest: u64,
    each: &mut Each<'_>,
    read: impl FnOnce(&mut Reader<'_, R>, &mut Elements<'_, '_>) -> serde_json::Result<()>,
) -> Result<ReadReport, ReadError> {
    let left = Cell::new(longest);
    let mut elements = Elements { each, count: 0, within: false, left: &left, longest };
    let mut reader = serde_json::Deserializer::from_reader(Bounded { input, left: &left, longest });
    let done = read(&mut reader, &mut elements).and_then(|()| reader.end());
    let Elements { count, within, .. } = elements;
    match done {
        Ok(()) => Ok(ReadReport { events: count, cut_short: false }),
        Err(error) if error.is_eof() && count > 0 => Ok(ReadReport { events: count, cut_short: true }),
        Err(error) if within => Err(ReadError::invalid("event", count + 1, error)),
        Err(error) if error.is_data() => Err(ReadError::invalid("line", 1, error)),
        Err(error) => Err(ReadError::invalid("line", 1, format_args!("not JSON: {error}"))),
    }
}

/// An input of which no more than so much may be read for one element: a value takes many times its text in memory.
struct Bounded<'a, R> {
    input: R,
    left: &'a Cell<u64>,
    longest: u64,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {} bytes", self.longest)));
        }
        let most = buffer.len().min(usize::try_from(self.left.get()).unwrap_or(usize::MAX));
        let read = self.input.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - read as u64);
        Ok(read)
    }
}

/// The elements of an array.
struct Elements<'a, 'b> {
    each: &'a mut Each<'b>,
    count: u64,
    /// It stands in the array.
    within: bool,
    left: &'a Cell<u64>,
    longest: u64,
}

impl<'de> DeserializeSeed<'de> for &mut Elements<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Elements<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        self.within = true;
        while let Some(value) = elements.next_element::<Value>()? {
            (self.each)(value).map_err(A::Error::custom)?;
            self.count += 1;
            self.left.set(self.longest);
        }
        self.within = false;
        Ok(())
    }
}

/// An object with `events`, of which nothing else counts; or an event.
struct Object<'a, 'b, 'c> {
    elements: &'a mut Elements<'b, 'c>,
}

impl<'de> Visitor<'de> for Object<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an event, or an object with `events`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let (mut others, mut has_events) = (Map::new(), false);
        while let Some(name) = fields.next_key::<String>()? {
            if name == EVENTS {
                has_events = true;
                fields.next_value_seed(&mut *self.elements)?;
            } else {
                others.insert(name, fields.next_value()?);
            }
        }
        if !has_events {
            (self.elements.each)(Value::Object(others)).map_err(A::Error::custom)?;
            self.elements.count += 1;
        }
        Ok(())
    }
}
