//! The fields of one JSON object, each as the text it was written in: a field of the wrong type costs that field, numbers keep
//! their digits, and what nobody asks for is never copied.

use super::number;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use trace::event::{MAX_TEXT, cut};

/// Calls `take` with every key and value. Nothing in a value is recursed into, however deep it is.
pub fn fields<'a>(text: &'a str, take: impl FnMut(&str, Raw<'a>)) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Fields(take))?;
    deserializer.end()
}

struct Fields<F>(F);

impl<'a, F: FnMut(&str, Raw<'a>)> Visitor<'a> for Fields<F> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            if let Some(key) = Raw(key.get()).text() {
                let value = value.get();
                (self.0)(&key, Raw(if value == "null" { "" } else { value }));
            }
        }
        Ok(())
    }
}

/// A JSON value as text; empty when it is missing or null.
#[derive(Clone, Copy, Default, Debug)]
pub struct Raw<'a>(pub &'a str);

impl<'a> Raw<'a> {
    pub fn given(self) -> bool {
        !self.0.is_empty()
    }

    /// A string, no longer than the recorder's own may be.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        Some(if inside.contains('\\') { unescaped(inside).into() } else { cut(inside, MAX_TEXT).into() })
    }

    pub fn owned(self) -> String {
        self.text().unwrap_or_default().into_owned()
    }

    /// A number, or a string that holds one, × 10^`power`.
    pub fn scaled(self, power: i64) -> Option<i64> {
        number::scaled(self.0.trim_matches('"').trim(), power)
    }

    pub fn whole(self) -> Option<i64> {
        self.scaled(0)
    }

    pub fn small(self) -> u32 {
        self.whole().and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
    }

    pub fn truth(self) -> bool {
        self.0 == "true"
    }

    pub fn object(self) -> Option<&'a str> {
        Some(self.0).filter(|text| text.starts_with('{'))
    }

    /// `[8, 2, 1]`.
    pub fn sides(self) -> Option<[u32; 3]> {
        let inside = self.0.strip_prefix('[')?.strip_suffix(']')?;
        let mut sides = [1; 3];
        for (side, text) in sides.iter_mut().zip(inside.split(',')) {
            *side = text.trim().parse().ok()?;
        }
        Some(sides)
    }
}

/// Half of a surrogate pair, which Python writes for undecodable bytes, becomes U+FFFD instead of an error.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut halves: Vec<u16> = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next().filter(|_| plain.len() < MAX_TEXT) {
        let escape = rest.strip_prefix('\\');
        if let Some(code) = escape.and_then(|rest| rest.strip_prefix('u')).and_then(|rest| rest.get(..4))
            && let Ok(code) = u16::from_str_radix(code, 16)
        {
            halves.push(code);
            rest = &rest[6..];
            // A pair is decoded together; it ends with its low half.
            if !(0xd800..0xdc00).contains(&code) || !rest.starts_with("\\u") {
                plain.extend(char::decode_utf16(halves.drain(..)).map(|letter| letter.unwrap_or('\u{fffd}')));
            }
            continue;
        }
        let (letter, used) = match escape.and_then(|rest| rest.chars().next()) {
            Some('n') => ('\n', 2),
            Some('t') => ('\t', 2),
            Some('r') => ('\r', 2),
            Some('b') => ('\u{8}', 2),
            Some('f') => ('\u{c}', 2),
            Some(other) => (other, 1 + other.len_utf8()),
            None => (letter, letter.len_utf8()),
        };
        plain.push(letter);
        rest = &rest[used..];
    }
    plain.extend(char::decode_utf16(halves).map(|letter| letter.unwrap_or('\u{fffd}')));
    cut(&plain, MAX_TEXT).to_owned()
}

/// What other writers put into JSON that JSON does not allow: control characters in strings become spaces, a backslash that
/// escapes nothing stays one (paths of Windows), and Python's `NaN` and `Infinity` become null.
pub fn cleaned(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let (mut inside, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let word = ["NaN", "Infinity", "-Infinity"].iter().find(|word| !inside && rest.starts_with(**word));
        if let Some(word) = word {
            clean.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        if inside && !escaped && letter == '\\' && !escapes(&rest.as_bytes()[1..]) {
            clean.push_str("\\\\");
            rest = &rest[1..];
            continue;
        }
        inside ^= letter == '"' && !escaped;
        escaped = inside && letter == '\\' && !escaped;
        clean.push(if letter < ' ' { ' ' } else { letter });
        rest = &rest[letter.len_utf8()..];
    }
    clean
}

/// Is this what may stand behind a backslash?
fn escapes(rest: &[u8]) -> bool {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => true,
        [b'u', digits @ ..] => digits.len() >= 4 && digits[..4].iter().all(u8::is_ascii_hexdigit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_text_whatever_their_type() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let text = format!(r#"{{"a":1790000000123456.789,"b":null,"\u0063":{deep},"c":"x","d":{{"k": [1]}}}}"#);
        let mut seen = Vec::new();
        fields(&text, |key, value| seen.push((key.to_owned(), value.0.len(), value))).unwrap();
        assert_eq!(seen[0].2.scaled(3), Some(1_790_000_000_123_456_789));
        assert!(!seen[1].2.given());
        assert_eq!((seen[2].0.as_str(), seen[2].1), ("c", 200_000));
        assert_eq!(seen[4].2.object(), Some(r#"{"k": [1]}"#));
        for wrong in ["[]", "7", "", "{\"a\"}", "{} {}", "{\"a\":\"\u{1}\"}"] {
            assert!(fields(wrong, |_, _| {}).is_err(), "{wrong}");
        }
    }

    #[test]
    fn strings_are_unescaped_and_never_refused() {
        let text = |raw| Raw(raw).owned();
        assert_eq!(text(r#""a\n\t\"\\\/\u00e9\ud83d\ude00""#), "a\n\t\"\\/é😀");
        assert_eq!(text(r#""x\udc80y\ud83dz""#), "x\u{fffd}y\u{fffd}z");
        assert_eq!(text(r#""\ud83d\u0041\uzzzz""#), "\u{fffd}Auzzzz");
        assert_eq!((text("\""), text("7"), text(r#""\""#)), (String::new(), String::new(), "\\".into()));
        assert_eq!(text(&format!("\"\\n{}\"", "é".repeat(MAX_TEXT))).len(), MAX_TEXT - 1);
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stays_one() {
        let text = r#"{"a":"C:\path\\x\u12\u00e9\""}"#;
        assert_eq!(cleaned(text), r#"{"a":"C:\\path\\x\\u12\u00e9\""}"#);
    }

    #[test]
    fn what_json_does_not_allow_is_made_allowed() {
        let text = "{\"a\":NaN,\"b\":\"NaN \u{1}\n\\\"\",\"c\":-Infinity}";
        assert_eq!(cleaned(text), r#"{"a":null,"b":"NaN   \"","c":null}"#);
    }
}
