//! What stands in front of a record in its ring: its text and its numbers.

use crate::device::{MOST_RECORDS, Numbers, payload};
use crate::event::{EVENT_WORDS, Event, Kind, MAX_TEXT, TEXT_BYTES, TextRole};

/// Gathers the `Text` and `Numbers` records that precede an owner. One per ring, reused for every record.
#[derive(Default, Debug)]
pub struct TextGatherer {
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    Text(TextRole, [u8; TEXT_BYTES], usize),
    Numbers(Numbers),
}

impl TextGatherer {
    /// Takes one `Text` or `Numbers` record. More than any owner can have means damage: the oldest are let go.
    pub fn add(&mut self, words: [u64; EVENT_WORDS]) {
        if self.pieces.len() >= 2 * MAX_TEXT / TEXT_BYTES + 2 + MOST_RECORDS {
            self.pieces.clear();
        }
        if words[3] as u16 == Kind::Numbers as u16 {
            return self.pieces.push(Piece::Numbers(payload(words)));
        }
        let mut bytes = [0u8; TEXT_BYTES];
        for (i, word) in words[..3].iter().enumerate() {
            bytes[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        let length = ((words[3] >> 16) as u16 as usize).min(TEXT_BYTES);
        let role = if (words[3] >> 32) as u32 == 1 { TextRole::Args } else { TextRole::Name };
        self.pieces.push(Piece::Text(role, bytes, length));
    }

    /// The owner has come: what belongs to it, if all of it is there.
    pub fn take(&mut self, event: &Event) -> Gathered {
        let wanted = event.flags as usize;
        let mut gathered = Gathered::default();
        if wanted > 0 && self.pieces.len() >= wanted {
            let pieces = &self.pieces[self.pieces.len() - wanted..];
            let text = |wanted| {
                let bytes = pieces.iter().flat_map(|piece| match piece {
                    Piece::Text(role, bytes, length) if *role == wanted => &bytes[..*length],
                    _ => &[],
                });
                let bytes: Vec<u8> = bytes.copied().collect();
                (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
            };
            (gathered.name, gathered.args) = (text(TextRole::Name), text(TextRole::Args));
            for piece in pieces {
                if let (Piece::Numbers(numbers), Some(slot)) = (piece, gathered.numbers.get_mut(gathered.count)) {
                    *slot = *numbers;
                    gathered.count += 1;
                }
            }
        }
        self.pieces.clear();
        gathered
    }
}

/// What stood in front of an owner.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gathered {
    pub name: Option<String>,
    pub args: Option<String>,
    numbers: [Numbers; MOST_RECORDS - 1],
    count: usize,
}

impl Gathered {
    pub fn numbers(&self) -> &[Numbers] {
        &self.numbers[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NameId, cut, text_records};

    #[test]
    fn text_is_cut_at_a_character_and_comes_back_whole() {
        assert_eq!(cut("aé", 2), "a");
        let name = "naïve ".repeat(9);
        let args = r#"{"key":3}"#;
        let mut gatherer = TextGatherer::default();
        let mut count = 0;
        for words in text_records(TextRole::Name, &name).chain(text_records(TextRole::Args, args)) {
            gatherer.add(words);
            count += 1;
        }
        let owner = Event { time: 0, value: 0, thread: 0, name: NameId::INLINE, kind: 5, flags: count, extra: 0 };
        let gathered = gatherer.take(&owner);
        assert_eq!((gathered.name, gathered.args), (Some(name), Some(args.to_owned())));
    }

    #[test]
    fn an_owner_whose_text_was_overwritten_has_none() {
        let mut gatherer = TextGatherer::default();
        text_records(TextRole::Args, &"x".repeat(50)).skip(1).for_each(|words| gatherer.add(words));
        let owner = Event { time: 0, value: 0, thread: 0, name: NameId(1), kind: 5, flags: 3, extra: 0 };
        assert_eq!(gatherer.take(&owner), Gathered::default());
    }

    #[test]
    fn numbers_and_text_of_one_owner_come_together() {
        let work = crate::device::Work { graph: 3, node: 9, device: 1, ..Default::default() };
        let (records, count) = work.records(Kind::Kernel);
        let mut gatherer = TextGatherer::default();
        let texts: Vec<_> = text_records(TextRole::Name, "gemm").collect();
        records[..count - 1].iter().chain(&texts).for_each(|words| gatherer.add(*words));
        let owner = Event::from_words(records[count - 1]);
        let gathered = gatherer.take(&Event { flags: owner.flags + 1, ..owner });
        assert_eq!(gathered.name.as_deref(), Some("gemm"));
        assert_eq!(crate::device::Work::from_records(&owner, gathered.numbers()), Some(work));
        // One of three is gone: nothing is believed.
        records[1..count - 1].iter().chain(&texts).for_each(|words| gatherer.add(*words));
        assert_eq!(gatherer.take(&Event { flags: owner.flags + 1, ..owner }), Gathered::default());
    }
}
