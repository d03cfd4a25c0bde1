//! A frame of a stack, as a name of the segment: names are written once, are there as long as the segment is, and are read again by a recorder
//! that takes over. The frames of all stacks are a tree, so that a stack is its innermost frame.

use crate::event::NameId;
use std::fmt::Write;

/// What no other name begins with: libraries of ours take it out of what a program chooses.
pub const MARK: char = '\u{1e}';

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StackFrame {
    /// The frame that called it; [`NameId::NONE`] for the outermost.
    pub parent: NameId,
    /// The name of the function, with its file, as of a call.
    pub function: NameId,
    /// The line being executed; 0: not known.
    pub line: u32,
}

impl StackFrame {
    /// Writes the name into `text`, in place of what is there.
    pub fn write(&self, text: &mut String) {
        text.clear();
        let StackFrame { parent, function, line } = self;
        // Writing into a string does not fail.
        let _ = write!(text, "{MARK}{:x} {:x} {line:x}", parent.0, function.0);
    }

    /// The inverse. None: the name is no frame.
    pub fn read(text: &str) -> Option<StackFrame> {
        let mut numbers = text.strip_prefix(MARK)?.split(' ').map(|word| u32::from_str_radix(word, 16).ok());
        let mut next = || numbers.next().flatten();
        let frame = StackFrame { parent: NameId(next()?), function: NameId(next()?), line: next()? };
        numbers.next().is_none().then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_survives_its_name() {
        let mut text = "what was there".to_owned();
        for frame in [
            StackFrame { parent: NameId::NONE, function: NameId(1), line: 0 },
            StackFrame { parent: NameId(u32::MAX), function: NameId(99), line: u32::MAX },
        ] {
            frame.write(&mut text);
            assert_eq!(StackFrame::read(&text), Some(frame));
        }
        for other in ["", "1 2 3", "\u{1e}1 2", "\u{1e}1 2 x", "\u{1e}1 2 3 4", "\u{1e}1 2 fffffffff"] {
            assert_eq!(StackFrame::read(other), None, "{other:?}");
        }
    }
}
