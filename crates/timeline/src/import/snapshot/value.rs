//! A value of a pickle in eight bytes: small numbers are in it, all else is a place in a table. Millions of them are alive at once.

/// What a [`Value`] is. The order is that of the tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Missing,
    None,
    Bool,
    /// An integer that fits into the value.
    Int,
    /// Any other number, in a table.
    Wide,
    Text,
    /// Something that no snapshot needs: bytes, a set, a text of megabytes.
    Opaque,
    /// A list, tuple or dictionary: a place in the table of slots, which says which, or what it became.
    Container,
    List,
    Dict,
    /// What dictionaries and lists of a snapshot become.
    Frame,
    Stack,
    Event,
    Block,
    Segment,
}

const KINDS: [Kind; 15] = [
    Kind::Missing,
    Kind::None,
    Kind::Bool,
    Kind::Int,
    Kind::Wide,
    Kind::Text,
    Kind::Opaque,
    Kind::Container,
    Kind::List,
    Kind::Dict,
    Kind::Frame,
    Kind::Stack,
    Kind::Event,
    Kind::Block,
    Kind::Segment,
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value(u64);

impl Value {
    pub const MISSING: Value = Value(0);
    pub const NONE: Value = Value::new(Kind::None, 0);
    pub const OPAQUE: Value = Value::new(Kind::Opaque, 0);

    pub const fn new(kind: Kind, place: u32) -> Value {
        Value(kind as u64 | (place as u64) << 4)
    }

    pub const fn bool(set: bool) -> Value {
        Value::new(Kind::Bool, set as u32)
    }

    /// None: it needs more than 60 bits.
    pub fn int(number: i64) -> Option<Value> {
        let shifted = number << 4;
        (shifted >> 4 == number).then_some(Value(Kind::Int as u64 | shifted as u64))
    }

    pub fn kind(self) -> Kind {
        KINDS.get((self.0 & 15) as usize).copied().unwrap_or(Kind::Missing)
    }

    /// Where it is in its table.
    pub fn place(self) -> usize {
        (self.0 >> 4) as usize
    }

    pub fn is(self, kind: Kind) -> bool {
        self.0 & 15 == kind as u64
    }

    pub fn small(self) -> i64 {
        (self.0 as i64) >> 4
    }
}

/// A number that does not fit into a [`Value`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Wide {
    Int(i128),
    /// An integer of more than 127 bits.
    Beyond,
    Float(f64),
}

impl Wide {
    /// An integer as pickles write it: little end first, two's complement.
    pub fn from_bytes(bytes: &[u8]) -> Wide {
        let Some(last) = bytes.last() else {
            return Wide::Int(0);
        };
        let sign = if last & 0x80 == 0 { 0 } else { 0xff };
        // More bytes than sixteen may be nothing but the sign again.
        if bytes.iter().skip(16).any(|byte| *byte != sign) || bytes.get(15).is_some_and(|byte| byte >> 7 != sign >> 7) {
            return Wide::Beyond;
        }
        let mut wide = [sign; 16];
        bytes.iter().zip(&mut wide).for_each(|(byte, place)| *place = *byte);
        Wide::Int(i128::from_le_bytes(wide))
    }

    /// An integer as text; None: it is none.
    pub fn from_text(text: &[u8]) -> Option<Wide> {
        let text = std::str::from_utf8(text).ok()?.trim().trim_end_matches('L');
        let digits = text.trim_start_matches(['-', '+']);
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        number.then(|| text.parse().map_or(Wide::Beyond, Wide::Int))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back_and_numbers_keep_their_sign() {
        for (tag, kind) in KINDS.iter().enumerate() {
            assert_eq!((*kind as usize, Value::new(*kind, u32::MAX).kind()), (tag, *kind));
            assert_eq!(Value::new(*kind, u32::MAX).place(), u32::MAX as usize);
        }
        for number in [0, 1, -1, 1 << 58, -(1 << 59)] {
            assert_eq!(Value::int(number).unwrap().small(), number);
        }
        assert!(Value::int(1 << 59).is_none() && Value::int(i64::MIN).is_none());
    }

    #[test]
    fn integers_of_any_size_are_read_or_said_to_be_beyond() {
        let of = |bytes: &[u8]| Wide::from_bytes(bytes);
        assert_eq!(of(&[]), Wide::Int(0));
        assert_eq!(of(&[0xff]), Wide::Int(-1));
        assert_eq!(of(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0]), Wide::Int(1 << 63));
        assert_eq!(of(&[0xff; 40]), Wide::Int(-1));
        assert_eq!(of(&[1; 17]), Wide::Beyond);
        let text = |text: &str| Wide::from_text(text.as_bytes());
        assert_eq!(text("-12L"), Some(Wide::Int(-12)));
        assert_eq!(text(&"9".repeat(60)), Some(Wide::Beyond));
        assert!(text("twelve").is_none() && text("").is_none() && text("-").is_none());
    }
}
