//! What a thread waits for.

use crate::frames::{Frames, WAITS, is};
use timeline::{StackIndex, Timeline};

/// What a thread waits for, by the frame on top.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    Lock,
    Io,
    /// A child process.
    Child,
    /// The event loop has nothing to run: all that it serves awaits something, or there is nothing to serve.
    Nothing,
    Unknown,
}

pub fn waits_for(timeline: &Timeline, frames: &Frames, stack: StackIndex) -> For {
    let top = frames.on_top(stack);
    match top {
        _ if top & (is::WAITS_FOR_IO | is::WAITS_FOR_LOCK) != 0 && for_a_child(timeline, frames, stack) => For::Child,
        _ if top & is::WAITS_FOR_IO != 0 && frames.on_path(stack, is::EVENT_LOOP) => {
            let parent = timeline.stacks.frame(stack).parent;
            let under_loop = frames.bits(timeline.stacks.frame(parent).name) & is::EVENT_LOOP != 0;
            if under_loop { For::Nothing } else { For::Io }
        }
        _ if top & is::WAITS_FOR_IO != 0 => For::Io,
        _ if top & is::WAITS_FOR_LOCK != 0 => For::Lock,
        _ => For::Unknown,
    }
}

/// Whether what waits was called to wait for a child: by frames that do nothing but wait, up to the one that asks for it.
fn for_a_child(timeline: &Timeline, frames: &Frames, mut stack: StackIndex) -> bool {
    for _ in 0..DEEPEST_WAIT {
        let frame = timeline.stacks.frame(stack);
        let bits = frames.bits(frame.name);
        if bits & is::CHILD != 0 {
            return true;
        }
        if bits & (WAITS | is::NATIVE) == 0 || frame.parent == stack {
            return false;
        }
        stack = frame.parent;
    }
    false
}

/// No wait of the standard library has more frames of its own.
pub const DEEPEST_WAIT: usize = 8;
