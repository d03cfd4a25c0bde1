//! A `str` as CPython keeps it, read where it lies: characters of one, two or four bytes behind a head that says how many.

use super::frames::mix_bytes;
use super::layout::Layout;
use super::memory::Memory;

const LENGTH: usize = 16;
const HASH: usize = 24;
const STATE: usize = 32;

/// Longest that is looked at: of a name that goes on, the rest is not told.
const MOST_BYTES: usize = 4096;

#[derive(Clone, Copy)]
pub struct Text {
    /// Of the string; -1 until somebody has asked for it.
    hash: usize,
    at: usize,
    length: usize,
    /// Bytes of a character: 1, 2 or 4.
    width: usize,
}

/// The string at this address. None: it is none, or one that an old extension made and nobody has used yet.
#[inline(always)]
pub fn find(memory: &impl Memory, layout: &Layout, at: usize) -> Option<Text> {
    let state = memory.number(at.checked_add(STATE)?)?;
    let (width, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    if !matches!(width, 1 | 2 | 4) || !is_compact {
        return None;
    }
    let characters = if is_ascii { layout.ascii } else { layout.characters };
    let (length, hash) = (memory.word(at + LENGTH)?, memory.word(at + HASH)?);
    Some(Text { hash, at: at + characters, length, width: width as usize })
}

impl Text {
    /// Equal for equal texts. One that gets its hash between two readings may have two: it is then told of twice, in the same words.
    #[inline(always)]
    pub fn identity(&self, memory: &impl Memory) -> Option<u64> {
        if self.hash != usize::MAX {
            return Some(self.hash as u64);
        }
        Some(mix_bytes(self.length as u64, self.bytes(memory)?))
    }

    fn bytes<'a>(&self, memory: &impl Memory) -> Option<&'a [u8]> {
        memory.bytes(self.at, self.length.min(MOST_BYTES / self.width) * self.width)
    }

    /// Puts as much of it as there is room for into `into`, in UTF-8, and gives how much that is. What separates the parts of a name, and what
    /// is no character, become others.
    pub fn write(&self, memory: &impl Memory, into: &mut [u8]) -> Option<usize> {
        let mut used = 0;
        for unit in self.bytes(memory)?.chunks_exact(self.width) {
            let number = unit.iter().rev().fold(0u32, |all, byte| all << 8 | u32::from(*byte));
            let character = match char::from_u32(number) {
                Some(control @ '\0'..'\u{20}') => char::from_u32('\u{2400}' as u32 + control as u32),
                other => other,
            };
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            let Some(room) = into.get_mut(used..used + character.len_utf8()) else { break };
            used += character.encode_utf8(room).len();
        }
        Some(used)
    }
}
