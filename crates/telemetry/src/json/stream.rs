//! Values of a JSON file one after the other, without holding the file: lines, or the elements of an array (also one under `events`).

use super::{ReadError, ReadReport};
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::io::{BufRead, Read};

type Each<'a> = dyn FnMut(Value) -> Result<(), String> + 'a;

/// The first byte that is no white space, which stays in the input.
pub fn first_byte(input: &mut impl BufRead) -> std::io::Result<Option<u8>> {
    loop {
        let buffer = input.fill_buf()?;
        let Some(first) = buffer.first().copied() else { return Ok(None) };
        if !first.is_ascii_whitespace() {
            return Ok(Some(first));
        }
        input.consume(1);
    }
}

pub fn lines(mut input: impl BufRead, longest: u64, each: &mut Each<'_>) -> Result<ReadReport, ReadError> {
    let (mut report, mut at, mut line) = (ReadReport::default(), 0, Vec::new());
    let invalid = |at, why| ReadError::Invalid { unit: "line", at, why };
    loop {
        line.clear();
        input.by_ref().take(longest + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(report);
        }
        at += 1;
        if line.len() as u64 > longest {
            return Err(invalid(at, format!("longer than {longest} bytes")));
        }
        let ended = line.ends_with(b"\n");
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Value>(&line) {
            // A file of one object that holds all events.
            Ok(Value::Object(mut object)) if at == 1 && object.get("events").is_some_and(Value::is_array) => {
                let Some(Value::Array(events)) = object.remove("events") else { return Ok(report) };
                for (number, value) in (1..).zip(events) {
                    each(value).map_err(|why| ReadError::Invalid { unit: "event", at: number, why })?;
                    report.events += 1;
                }
            }
            Ok(value) => {
                each(value).map_err(|why| invalid(at, why))?;
                report.events += 1;
            }
            Err(_) if !ended && report.events > 0 => {
                report.cut_short = true;
                return Ok(report);
            }
            Err(error) => return Err(invalid(at, format!("not JSON: {error}"))),
        }
    }
}

pub fn array(input: impl BufRead, each: &mut Each<'_>) -> Result<u64, ReadError> {
    let mut count = 0;
    let mut reader = serde_json::Deserializer::from_reader(input);
    let read = Elements { each, count: &mut count }.deserialize(&mut reader).and_then(|()| reader.end());
    read.map(|()| count).map_err(|error| ReadError::Invalid { unit: "event", at: count + 1, why: error.to_string() })
}

struct Elements<'a, 'b> {
    each: &'a mut Each<'b>,
    count: &'a mut u64,
}

impl<'de> DeserializeSeed<'de> for Elements<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(value) = elements.next_element::<Value>()? {
            (self.each)(value).map_err(A::Error::custom)?;
            *self.count += 1;
        }
        Ok(())
    }
}
