//! Just enough of Thrift's compact protocol to look at a Parquet footer and page headers before the parquet crate is
//! trusted with them. Every read is bounded by the bytes at hand.

/// The type numbers of the compact protocol.
pub const TRUE: u8 = 1;
pub const FALSE: u8 = 2;
pub const I8: u8 = 3;
pub const I16: u8 = 4;
pub const I32: u8 = 5;
pub const I64: u8 = 6;
pub const DOUBLE: u8 = 7;
pub const BINARY: u8 = 8;
pub const LIST: u8 = 9;
pub const SET: u8 = 10;
pub const MAP: u8 = 11;
pub const STRUCT: u8 = 12;

/// Nested deeper than this is not Parquet.
const DEEPEST: u8 = 16;

/// The bytes end too early, or are not Thrift. The caller tells which by how many bytes it gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

pub struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub fn new(bytes: &'a [u8]) -> Compact<'a> {
        Compact { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, Broken> {
        let byte = *self.bytes.get(self.at).ok_or(Broken)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, count: u64) -> Result<(), Broken> {
        let left = (self.bytes.len() - self.at) as u64;
        if count > left {
            return Err(Broken);
        }
        self.at += count as usize;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Broken> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Broken)
    }

    pub fn integer(&mut self) -> Result<i64, Broken> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Calls `each` for every field of a struct with its number and type; `each` says whether it read the field itself.
    pub fn fields(&mut self, mut each: impl FnMut(&mut Self, i64, u8) -> Result<bool, Broken>) -> Result<(), Broken> {
        self.fields_at(0, &mut |reader, number, kind| each(reader, number, kind))
    }

    fn fields_at(
        &mut self,
        depth: u8,
        each: &mut dyn FnMut(&mut Self, i64, u8) -> Result<bool, Broken>,
    ) -> Result<(), Broken> {
        let mut number = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            number = match head >> 4 {
                0 => self.integer()?,
                step => number.wrapping_add(i64::from(step)),
            };
            let kind = head & 0x0f;
            if !each(self, number, kind)? {
                self.skip(kind, depth + 1)?;
            }
        }
    }

    /// The head of a list: how many, of which type. No more than there are bytes.
    pub fn list(&mut self) -> Result<(u64, u8), Broken> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Broken);
        }
        Ok((count, head & 0x0f))
    }

    fn skip(&mut self, kind: u8, depth: u8) -> Result<(), Broken> {
        if depth > DEEPEST {
            return Err(Broken);
        }
        match kind {
            TRUE | FALSE => Ok(()),
            I8 => self.take(1),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.take(8),
            BINARY => {
                let length = self.varint()?;
                self.take(length)
            }
            LIST | SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth + 1))
            }
            MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth + 1)?;
                    self.skip_element(kinds & 0x0f, depth + 1)
                })
            }
            STRUCT => self.fields_at(depth, &mut |_, _, _| Ok(false)),
            _ => Err(Broken),
        }
    }

    /// Inside a list a truth value takes a byte; as a field it takes none.
    fn skip_element(&mut self, kind: u8, depth: u8) -> Result<(), Broken> {
        if matches!(kind, TRUE | FALSE) { self.take(1) } else { self.skip(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_fields_that_are_skipped() {
        // 1: i32 = 21, 3: binary "ab", 4: list of 2 i32, 5: struct { 1: true }, 20: i64 = -1.
        let bytes = [0x15, 42, 0x28, 2, b'a', b'b', 0x19, 0x25, 2, 4, 0x1c, 0x11, 0, 0x06, 40, 1, 0];
        let mut seen = Vec::new();
        let mut reader = Compact::new(&bytes);
        reader
            .fields(|reader, number, kind| {
                if kind == I32 || kind == I64 {
                    seen.push((number, reader.integer()?));
                    return Ok(true);
                }
                Ok(false)
            })
            .unwrap();
        assert_eq!(seen, [(1, 21), (20, -1)]);
        assert_eq!(reader.position(), bytes.len());
    }

    #[test]
    fn bytes_that_end_early_or_nest_without_end_are_broken() {
        assert_eq!(Compact::new(&[0x28, 200]).fields(|_, _, _| Ok(false)), Err(Broken));
        assert_eq!(Compact::new(&[0x1c; 100_000]).fields(|_, _, _| Ok(false)), Err(Broken));
        assert_eq!(Compact::new(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f]).fields(|_, _, _| Ok(false)), Err(Broken));
    }
}
