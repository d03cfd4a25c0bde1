//! Samples and the native functions above them, which come a moment later: at once where the thread runs, and where it waits for a
//! processor when it has got one. Until then the sample waits here, but not for long.

use crate::dictionary::{Dictionary, Frame};
use crate::messages::Sample;
use crate::native::{NativeFrame, NativeStacks, permission};
use std::collections::HashMap;
use trace::tables::sample_state;

pub(super) struct NativeRows {
    native: NativeStacks,
    /// By thread: all since it was last asked for. They have one native stack, for the thread has not run in between.
    waiting: HashMap<i32, Vec<Sample>>,
}

/// A sample that waits is lost if the recorder is killed meanwhile.
const LONGEST_WAIT_NS: i64 = 1_000_000_000;

impl NativeRows {
    pub fn new(native: NativeStacks) -> NativeRows {
        NativeRows { native, waiting: HashMap::new() }
    }

    /// Asks for the native stack of a thread whose Python stack is read next.
    pub fn request(&mut self, thread: i32) {
        self.native.request(thread);
    }

    /// Why the kernel gives no native stacks.
    pub fn failure(&self) -> Option<String> {
        self.native.failure().map(permission::explain)
    }

    /// Keeps the rows that native functions are to come for; the others are left.
    pub fn keep(&mut self, rows: &mut Vec<Sample>) {
        rows.retain(|row| {
            let waits = row.state & sample_state::ACTIVE != 0 && self.native.is_asked(row.thread);
            if waits {
                self.waiting.entry(row.thread).or_default().push(*row);
            }
            !waits
        });
    }

    /// The rows whose native functions have come, and those that have waited for too long.
    pub fn take(&mut self, now: i64, dictionary: &Dictionary) -> Vec<Sample> {
        let mut ready = Vec::new();
        for (thread, frames) in self.native.take() {
            for row in self.waiting.remove(&thread).unwrap_or_default() {
                ready.push(Sample { stack: above(dictionary, row.stack, &frames), ..row });
            }
        }
        let is_old = |rows: &[Sample]| rows.first().is_some_and(|row| now - row.time > LONGEST_WAIT_NS);
        let old: Vec<i32> = self.waiting.iter().filter(|(_, rows)| is_old(rows)).map(|(thread, _)| *thread).collect();
        ready.extend(old.into_iter().filter_map(|thread| self.waiting.remove(&thread)).flatten());
        ready
    }

    /// All that still wait.
    pub fn rest(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.waiting).into_values().flatten().collect()
    }
}

fn above(dictionary: &Dictionary, stack: i32, frames: &[NativeFrame]) -> i32 {
    let frames = frames.iter().rev();
    let frames = frames.map(|frame| Frame { function: &frame.function, file: &frame.library, line: 0 });
    dictionary.stack_above(stack, frames).unwrap_or(stack)
}
