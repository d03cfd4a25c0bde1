//! The line of an instruction, from the line table of a code object as CPython keeps it (`co_linetable`): of 3.10 in pairs of bytes, from 3.11 on
//! in entries of variable length. A table that is cut off or makes no sense gives no line.

/// How an interpreter writes its tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineFormat {
    /// 3.10, PEP 626.
    Pairs,
    /// 3.11 and later: `Objects/locations.md`.
    Entries,
}

/// The line of an instruction, which is counted in units of two bytes; -1 is before the first. None: it has none.
pub fn line(format: LineFormat, table: &[u8], first_line: i32, instruction: i32) -> Option<u32> {
    match format {
        // As CPython has it: before its first instruction a function is where it begins.
        _ if instruction < 0 => Some(first_line),
        LineFormat::Pairs => of_pairs(table, first_line, i64::from(instruction) * 2),
        LineFormat::Entries => of_entries(table, first_line, i64::from(instruction)),
    }
    .and_then(|line| u32::try_from(line).ok())
}

/// Each pair is a number of bytes and by how many lines the next differs; -128: these bytes have no line.
fn of_pairs(table: &[u8], first_line: i32, offset: i64) -> Option<i32> {
    let (mut end, mut line) = (0i64, first_line);
    for pair in table.as_chunks::<2>().0 {
        let (bytes, change) = (pair[0], pair[1] as i8);
        end += i64::from(bytes);
        let has_line = change != i8::MIN;
        if has_line {
            line = line.wrapping_add(i32::from(change));
        }
        if offset < end {
            return has_line.then_some(line);
        }
    }
    None
}

/// Kinds of entries, in bits 3 to 6 of their first byte.
const NO_LOCATION: u8 = 15;
const LONG: u8 = 14;
const NO_COLUMNS: u8 = 13;
const ONE_LINE: std::ops::RangeInclusive<u8> = 10..=12;

/// Each begins with a byte whose highest bit is set, and says how many units it is of.
fn of_entries(table: &[u8], first_line: i32, unit: i64) -> Option<i32> {
    let (mut end, mut line, mut at) = (0i64, first_line, 0);
    while let Some(&first) = table.get(at) {
        let kind = first >> 3 & 15;
        let rest = table.get(at + 1..).unwrap_or_default();
        let change = match kind {
            LONG | NO_COLUMNS => signed(rest),
            _ if ONE_LINE.contains(&kind) => i32::from(kind - ONE_LINE.start()),
            _ => 0,
        };
        line = line.wrapping_add(change);
        end += i64::from(first & 7) + 1;
        if unit < end {
            return (kind != NO_LOCATION).then_some(line);
        }
        at += 1 + rest.iter().take_while(|byte| **byte & 0x80 == 0).count();
    }
    None
}

/// Six bits a byte, lowest first; bit 6 says that more follow. The lowest bit of the whole is the sign.
fn signed(bytes: &[u8]) -> i32 {
    let mut all = 0u32;
    for (place, byte) in bytes.iter().take(6).enumerate() {
        all |= u32::from(byte & 63).wrapping_shl(6 * place as u32);
        if byte & 64 == 0 {
            break;
        }
    }
    let size = (all >> 1) as i32;
    if all & 1 == 1 { size.wrapping_neg() } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_tell_the_line_of_every_instruction() {
        // 4 bytes on line 11, 2 without a line, 4 on line 8.
        let table = [4, 1, 2, 0x80, 4, 253];
        let lines: Vec<_> = (-1..6).map(|at| line(LineFormat::Pairs, &table, 10, at)).collect();
        assert_eq!(lines, [Some(10), Some(11), Some(11), None, Some(8), Some(8), None]);
        assert_eq!(line(LineFormat::Pairs, &[], 10, 0), None);
    }

    #[test]
    fn entries_tell_the_line_of_every_instruction() {
        let table = [
            0x80 | 11 << 3,
            0,
            5, // one unit, a line further
            0x80 | 1 << 3 | 1,
            0x12, // two units, the same line
            0x80 | 14 << 3,
            64 | 7,
            1,
            0,
            0,
            0,              // one unit, 35 lines back
            0x80 | 15 << 3, // none
            0x80 | 13 << 3,
            8, // four lines further
        ];
        let lines: Vec<_> = (-1..7).map(|at| line(LineFormat::Entries, &table, 100, at)).collect();
        let expected = [Some(100), Some(101), Some(101), Some(101), Some(66), None, Some(70), None];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_is_no_table_gives_no_panic() {
        let mut random = 7u64;
        for size in 0..400 {
            let table: Vec<u8> = (0..size)
                .map(|_| {
                    random = super::super::mix(random, size);
                    random as u8
                })
                .collect();
            for at in [-1, 0, 5, 300, i32::MAX] {
                line(LineFormat::Pairs, &table, i32::MAX, at);
                line(LineFormat::Entries, &table, i32::MIN, at);
            }
        }
    }
}
