//! JSON as text, written event by event: integer nanoseconds become microseconds with three decimals without ever being a
//! floating-point number, names are escaped once, and recorded arguments go in as they are if they are JSON.

use std::io::{self, Write};
use timeline::{NameIndex, Timeline};

/// One event, built in memory that is used again for the next.
#[derive(Default)]
pub struct Event {
    bytes: Vec<u8>,
}

impl Event {
    pub fn raw(&mut self, text: &str) -> &mut Event {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Event {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Event {
        // Writing to a vector does not fail.
        _ = serde_json::to_writer(&mut self.bytes, text);
        self
    }

    pub fn number(&mut self, number: u64) -> &mut Event {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        let mut left = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.bytes(&digits[at..])
    }

    pub fn signed(&mut self, number: i64) -> &mut Event {
        if number < 0 {
            self.bytes.push(b'-');
        }
        self.number(number.unsigned_abs())
    }

    /// Nanoseconds as microseconds.
    pub fn micros(&mut self, nanos: u64) -> &mut Event {
        self.number(nanos / 1000);
        let part = nanos % 1000;
        let digit = |power: u64| b'0' + (part / power % 10) as u8;
        self.bytes(&[b'.', digit(100), digit(10), digit(1)])
    }

    /// A JSON object that was recorded as text. What is not one (it was cut, or is damaged) is kept as text.
    pub fn object(&mut self, text: &str) -> &mut Event {
        let whole = text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if whole { self.raw(text.trim()) } else { self.raw(r#"{"text":"#).text(text).raw("}") }
    }

    /// Hands the event over and begins the next.
    pub fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// Every name as a JSON string.
pub struct Quoted {
    names: Vec<Box<[u8]>>,
}

impl Quoted {
    pub fn new(timeline: &Timeline) -> Quoted {
        let quote = |index: u32| {
            let mut bytes = Vec::new();
            _ = serde_json::to_writer(&mut bytes, timeline.names.text(NameIndex(index)));
            bytes.into_boxed_slice()
        };
        Quoted { names: (0..timeline.names.len() as u32).map(quote).collect() }
    }

    pub fn get(&self, name: NameIndex) -> &[u8] {
        self.names.get(name.0 as usize).unwrap_or(&self.names[0])
    }
}

/// `[`, `,` and `]` around things that come one at a time, a line each.
pub struct Separator(bool);

impl Separator {
    pub fn new() -> Separator {
        Separator(false)
    }

    pub fn next(&mut self) -> &'static str {
        if std::mem::replace(&mut self.0, true) { ",\n" } else { "\n" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Event)) -> String {
        let (mut event, mut out) = (Event::default(), Vec::new());
        write(&mut event);
        event.send(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn microseconds_keep_every_nanosecond() {
        let cases = [(0, "0.000"), (1, "0.001"), (1_234_567, "1234.567"), (u64::MAX, "18446744073709551.615")];
        for (nanos, text) in cases {
            assert_eq!(written(|event| _ = event.micros(nanos)), text);
        }
        assert_eq!(written(|event| _ = event.signed(i64::MIN)), i64::MIN.to_string());
    }

    #[test]
    fn arguments_that_are_not_json_are_kept_as_text() {
        assert_eq!(written(|event| _ = event.object(r#" {"a":[1]} "#)), r#"{"a":[1]}"#);
        assert_eq!(written(|event| _ = event.object(r#"{"a":"cu"#)), r#"{"text":"{\"a\":\"cu"}"#);
        assert_eq!(written(|event| _ = event.object("7")), r#"{"text":"7"}"#);
        assert_eq!(written(|event| _ = event.object("{}{}")), r#"{"text":"{}{}"}"#);
    }
}
