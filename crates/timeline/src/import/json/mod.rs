//! What the readers of JSON share: the bytes of a file, values one at a time, fields as text, decimal numbers to integers,
//! processes and threads as files name them. What a field means is left to each reader.

pub mod fields;
pub mod number;
pub mod places;
pub mod scan;
pub mod source;

use scan::Stop;

/// Later than any clock that a file can mean: nanoseconds since 1970 reach it in 2096.
pub const LATEST: i64 = 4_000_000_000_000_000_000;
/// An event, or a block of information, that is larger is not taken into memory.
pub const LARGEST: usize = 16 << 20;
/// Arguments are JSON, which cut is none. The recorder's own are at most `MAX_TEXT` before they are escaped.
pub const LONGEST_ARGS: usize = 8 * trace::event::MAX_TEXT;
/// Places in a timeline are 32 bits wide.
pub const MOST_EVENTS: usize = u32::MAX as usize - 1;

/// How far a reader came, in words.
pub fn place(packed: bool, offset: u64) -> String {
    if packed { format!("byte {offset} of what it unpacks to") } else { format!("byte {offset}") }
}

/// What is wrong with a file, as the rest of a sentence about it.
pub fn what(stop: &Stop) -> String {
    match stop {
        Stop::Cut => "ends too early,".into(),
        Stop::Unexpected(byte) => format!("is damaged (unexpected {:?})", char::from(*byte)),
        Stop::Input(error) => format!("cannot be read on ({error})"),
    }
}

/// The note of a file of which only the beginning could be read.
pub fn cut_note(stop: &Stop, place: &str, events: u64) -> String {
    let kept = format!("{events} events before that were read, the rest is missing");
    format!("The file {} at {place}: {kept}.", what(stop))
}
