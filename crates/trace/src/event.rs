//! The record: 32 bytes, fixed for ever. Everything the workload says goes through this one shape;
//! longer text follows as `Text` records in front of the record that owns it.

/// A name written once into the segment's name table and referred to by number. Numbers start at 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct NameId(pub u32);

impl NameId {
    pub const NONE: NameId = NameId(0);
    /// The name did not fit into the table: its text precedes the record as `Text` records.
    pub const INLINE: NameId = NameId(u32::MAX);
}

/// What a record says. The numbers are on disk and in shared memory: never renumbered, never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u16)]
pub enum Kind {
    /// `time` begin, `extra` id, `value` id of the enclosing scope (0: none).
    ScopeBegin = 1,
    /// `time` end, `extra` id, `value` begin time. Complete by itself, should its begin be overwritten.
    ScopeEnd = 2,
    /// As `ScopeBegin`, for a step (one request, batch or iteration).
    StepBegin = 3,
    StepEnd = 4,
    /// A moment: `time`, `value` id of the enclosing scope.
    Mark = 5,
    /// A whole Python call, written when it ends: `time` begin, `value` duration, `extra` depth.
    Call = 6,
    /// A whole call of a C function, as `Call`.
    CCall = 7,
    /// 24 bytes of text that belong to the next record of the same ring that is not `Text`.
    Text = 8,
    /// A whole pause of the garbage collector, as `Call`; `extra` is a [`crate::gc_pause::GcPause`].
    Gc = 9,
    /// A whole CUDA API call on the host, as `Call`; `extra` is its correlation.
    ApiCall = 10,
    /// Work of a device, with its [`Kind::Numbers`] in front of it: see [`crate::device`].
    Kernel = 11,
    Memcpy = 12,
    Memset = 13,
    /// A wait for a device: `time`, `value` and `thread` (the stream) as for work.
    Sync = 14,
    /// Memory of a device was taken or given back; `time`, and `Numbers`.
    Allocation = 15,
    /// A whole NVTX range (a mark if it lasts 0), as `Call`; `extra` is 1 for a range that may end in another thread.
    Nvtx = 16,
    /// What CUPTI calls an overhead, as `Call`; `extra` is CUPTI's number of what it is.
    Overhead = 17,
    /// Pages moved between host and device; as work.
    Migration = 18,
    /// 28 bytes of numbers that belong to the next record of the same ring that is neither `Text` nor `Numbers`.
    Numbers = 19,
    /// One line that the report must show; the text is the name.
    Note = 20,
    /// A device of this process, as libraries before `DeviceFacts` wrote it: the name is a JSON object, `extra` the ordinal.
    Device = 21,
    /// As `ScopeBegin`, for the forward of an `nn.Module`.
    LayerBegin = 22,
    LayerEnd = 23,
    /// A turn of recording in windows: `time`, `value` is a [`crate::codes::RecordingWindow`].
    RecordingWindow = 24,
    /// A device of this process: see [`crate::device_facts`].
    DeviceFacts = 25,
    /// As `ScopeBegin`, for an outermost call into a known entry point: of a model, or of a request handler.
    EntryBegin = 26,
    EntryEnd = 27,
    /// A whole operator of a framework, seen in a step that is looked at, as `Call`; its args are shapes and data flow.
    Op = 28,
    /// A block of a framework's allocator: see [`crate::block`].
    Block = 29,
    /// A moment of a fix that is tried: `time`, `extra` is a [`crate::codes::FixMoment`], the name says more.
    Fix = 30,
}

impl Kind {
    /// Times of the device's own work come from CUPTI and are `CLOCK_MONOTONIC` nanoseconds, whatever the segment's clock is.
    pub fn is_in_nanos(self) -> bool {
        matches!(self, Kind::Kernel | Kind::Memcpy | Kind::Memset | Kind::Migration | Kind::Overhead)
    }

    pub fn from_u16(number: u16) -> Option<Kind> {
        Some(match number {
            1 => Kind::ScopeBegin,
            2 => Kind::ScopeEnd,
            3 => Kind::StepBegin,
            4 => Kind::StepEnd,
            5 => Kind::Mark,
            6 => Kind::Call,
            7 => Kind::CCall,
            8 => Kind::Text,
            9 => Kind::Gc,
            10 => Kind::ApiCall,
            11 => Kind::Kernel,
            12 => Kind::Memcpy,
            13 => Kind::Memset,
            14 => Kind::Sync,
            15 => Kind::Allocation,
            16 => Kind::Nvtx,
            17 => Kind::Overhead,
            18 => Kind::Migration,
            19 => Kind::Numbers,
            20 => Kind::Note,
            21 => Kind::Device,
            22 => Kind::LayerBegin,
            23 => Kind::LayerEnd,
            24 => Kind::RecordingWindow,
            25 => Kind::DeviceFacts,
            26 => Kind::EntryBegin,
            27 => Kind::EntryEnd,
            28 => Kind::Op,
            29 => Kind::Block,
            30 => Kind::Fix,
            _ => return None,
        })
    }
}

/// One record. `time` and durations are in the segment's clock (see [`crate::clock`]).
/// `flags` holds how many `Text` and `Numbers` records stand before this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Event {
    pub time: u64,
    pub value: u64,
    pub thread: u32,
    pub name: NameId,
    pub kind: u16,
    pub flags: u16,
    pub extra: u32,
}

pub const EVENT_SIZE: usize = 32;
pub const EVENT_WORDS: usize = EVENT_SIZE / 8;
const _: () = assert!(size_of::<Event>() == EVENT_SIZE && align_of::<Event>() == 8);

impl Event {
    #[inline(always)]
    pub fn to_words(self) -> [u64; EVENT_WORDS] {
        [
            self.time,
            self.value,
            u64::from(self.thread) | u64::from(self.name.0) << 32,
            u64::from(self.kind) | u64::from(self.flags) << 16 | u64::from(self.extra) << 32,
        ]
    }

    #[inline(always)]
    pub fn from_words(words: [u64; EVENT_WORDS]) -> Event {
        Event {
            time: words[0],
            value: words[1],
            thread: words[2] as u32,
            name: NameId((words[2] >> 32) as u32),
            kind: words[3] as u16,
            flags: (words[3] >> 16) as u16,
            extra: (words[3] >> 32) as u32,
        }
    }
}

/// Which text a `Text` record carries a piece of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextRole {
    /// The owner's name, when it did not fit into the name table.
    Name,
    /// The owner's tags or metadata: a JSON object.
    Args,
}

pub const TEXT_BYTES: usize = 24;
/// Longest name or JSON object carried by one record; longer text is cut at a character and counted.
pub const MAX_TEXT: usize = 4096;

/// Cuts `text` to at most `limit` bytes without splitting a character.
pub fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// How many records [`text_records`] makes of a text.
pub fn text_count(text: &str) -> usize {
    cut(text, MAX_TEXT).len().div_ceil(TEXT_BYTES)
}

/// Splits text into `Text` records, ready to be pushed in front of their owner.
pub fn text_records(role: TextRole, text: &str) -> impl Iterator<Item = [u64; EVENT_WORDS]> + '_ {
    let role = u64::from(role == TextRole::Args);
    cut(text, MAX_TEXT).as_bytes().chunks(TEXT_BYTES).map(move |chunk| {
        let mut bytes = [0u8; TEXT_BYTES];
        bytes[..chunk.len()].copy_from_slice(chunk);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or([0; 8]));
        [word(0), word(8), word(16), Kind::Text as u64 | (chunk.len() as u64) << 16 | role << 32]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_its_words() {
        let event = Event { time: 1, value: u64::MAX, thread: 7, name: NameId(9), kind: 6, flags: 3, extra: u32::MAX };
        assert_eq!(Event::from_words(event.to_words()), event);
    }
}
