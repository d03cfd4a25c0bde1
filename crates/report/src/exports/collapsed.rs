//! Collapsed stacks, as flamegraph.pl, inferno and speedscope read them: `process;thread;frame;frame count`, one line for
//! each different stack, counted in samples. The format has no escapes, so what would break a line is replaced.

use crate::escape::visible;
use crate::{provenance, sampled};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use timeline::{Frame, NameIndex, Timeline, Track};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Also samples in which the thread was waiting; they end in the frame `(idle)`.
    pub idle: bool,
    /// A frame for each executed line; otherwise one for each function, with the line of its `def`.
    pub lines: bool,
}

/// A frame as it counts: with the executed line, or with 0.
type Key = (NameIndex, u32);

/// The frame that idle samples end in: no recorded name has this index.
const IDLE: Key = (NameIndex(u32::MAX), 0);

pub fn write(timeline: &Timeline, options: Options, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut written = false;
    let mut line = String::new();
    for track in &timeline.tracks {
        for (stack, count) in &stacks(timeline, track, options) {
            line.clear();
            escape(&provenance::process(timeline.process(track)), &mut line);
            line.push(';');
            escape(&provenance::thread(track), &mut line);
            for key in stack {
                line.push(';');
                frame(timeline, *key, &mut line);
            }
            writeln!(out, "{line} {count}")?;
            written = true;
        }
    }
    if !written {
        // A count of 0 adds nothing to a flame graph; the line is there for the person who looks.
        let why = if timeline.samples.is_empty() { "no stack was sampled" } else { "no thread was seen running" };
        writeln!(out, "{why} in this recording 0")?;
    }
    out.flush()
}

/// The different stacks of a thread, with how often each was seen. Held for one thread at a time.
fn stacks(timeline: &Timeline, track: &Track, options: Options) -> BTreeMap<Vec<Key>, u64> {
    let mut seen: BTreeMap<(u32, bool), u64> = BTreeMap::new();
    for index in track.samples.clone() {
        let sample = timeline.samples.get(index);
        if sample.active || options.idle {
            *seen.entry((sample.stack.0, sample.active)).or_default() += 1;
        }
    }
    let mut frames: Vec<Frame> = Vec::new();
    let mut stacks = BTreeMap::new();
    for ((stack, active), count) in seen {
        sampled::root_first(timeline, timeline::StackIndex(stack), &mut frames);
        let line = |frame: &Frame| if options.lines { frame.line } else { 0 };
        let mut keys: Vec<Key> = frames.iter().map(|frame| (frame.name, line(frame))).collect();
        if keys.is_empty() {
            keys.push((NameIndex(0), 0));
        }
        if !active {
            keys.push(IDLE);
        }
        *stacks.entry(keys).or_default() += count;
    }
    stacks
}

/// `forward (model.py:12)`.
fn frame(timeline: &Timeline, key: Key, line: &mut String) {
    if key == IDLE {
        return line.push_str("(idle)");
    }
    let name = timeline.names.get(key.0);
    escape(&name.text, line);
    let number = if key.1 > 0 { key.1 } else { name.line };
    if !name.file.is_empty() {
        line.push_str(" (");
        escape(&name.file, line);
        match number {
            0 => line.push(')'),
            number => drop(write!(line, ":{number})")),
        }
    }
}

/// A semicolon would be another frame, and a line break another stack.
fn escape(text: &str, line: &mut String) {
    if text.is_empty() {
        line.push_str("(unnamed)");
    }
    line.extend(visible(text).chars().map(|letter| if letter == ';' { ':' } else { letter }));
}
