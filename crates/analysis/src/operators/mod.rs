//! Operators of a framework in the steps that were looked at: each with its line, its shapes, and the values that it read and wrote. They come
//! in looks, and a look in turns of the program's loop. What they say is as good as the recording: every list is bounded, and a number that
//! nobody wrote is a value that nobody knows.

mod fields;
mod padded;

pub use fields::{sizes, types};
pub use padded::Padded;

use fields::{LONGEST, flag, numbers, quoted};
use std::collections::BTreeMap;
use timeline::{NameIndex, SliceKind, Timeline, TrackIndex};

/// Far more than the recorder writes in an hour; what a trace has beyond is not read.
const MOST: usize = 400_000;

/// One call of an operator.
#[derive(Clone, PartialEq, Debug)]
pub struct Op<'a> {
    pub slice: usize,
    pub track: TrackIndex,
    pub start: u64,
    pub end: u64,
    pub name: NameIndex,
    /// Where the program called it: "model.py:12 forward". Empty: not known.
    pub at: &'a str,
    /// The innermost `nn.Module` around it, by its path. Empty: none, or not known.
    pub module: &'a str,
    /// Sizes and types of its arguments and its scalars: two calls with the same are the same work.
    pub signature: &'a str,
    pub look: u64,
    pub turn: u64,
    /// Values by number; 0 is a value that nothing is known of.
    pub reads: Vec<u64>,
    pub writes: Vec<u64>,
    /// The values that it changed, as they were before ...
    pub changes: Vec<u64>,
    /// ... and those of them that it did not read.
    pub overwrites: Vec<u64>,
    /// Those of `reads` that are parameters of a model.
    pub params: Vec<u64>,
    /// Gives what it was given in another form, and does no work.
    pub is_view: bool,
    /// Draws random numbers, or may for all that is known.
    pub is_random: bool,
    /// Of ids in the host's memory that it read, what is padding.
    pub padded: Option<Padded>,
    /// Lists were too long to be recorded: there are more values than these.
    pub is_cut: bool,
    /// The look ended with it: what its turn ran afterwards was not recorded.
    pub is_last: bool,
}

impl Op<'_> {
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// All text of its arguments.
    pub fn args<'a>(&self, timeline: &'a Timeline) -> &'a str {
        timeline.slices.args(self.slice).unwrap_or("")
    }

    /// Where its result is: "cpu", "cuda:0". Empty: not known.
    pub fn device<'a>(&self, timeline: &'a Timeline) -> &'a str {
        quoted(self.args(timeline), "device")
    }

    /// Whether everything that it read and wrote has a number.
    pub fn is_known(&self) -> bool {
        !self.is_cut && [&self.reads, &self.writes, &self.overwrites].iter().all(|list| !list.contains(&0))
    }
}

/// The operators of one look on one thread, in order.
#[derive(Clone, PartialEq, Debug)]
pub struct Look<'a> {
    pub track: TrackIndex,
    pub ops: Vec<Op<'a>>,
}

impl<'a> Look<'a> {
    /// Its turns, first to last.
    pub fn turns(&self) -> impl Iterator<Item = &[Op<'a>]> {
        self.ops.chunk_by(|a, b| a.turn == b.turn)
    }

    /// From the first operator to the last: how long it slowed the program.
    pub fn span(&self) -> (u64, u64) {
        let end = self.ops.iter().map(|op| op.end).max().unwrap_or(0);
        (self.ops.first().map_or(0, |op| op.start), end)
    }
}

/// All looks, by track and time.
pub fn looks(timeline: &Timeline) -> Vec<Look<'_>> {
    let mut looks: BTreeMap<(TrackIndex, u64), Vec<Op>> = BTreeMap::new();
    let mut left = MOST;
    for (place, track) in timeline.tracks.iter().enumerate() {
        let track_index = TrackIndex(place as u32);
        for index in track.slices.clone() {
            if timeline.slices.kind(index) == SliceKind::Op && left > 0 {
                left -= 1;
                let op = read(timeline, track_index, index);
                looks.entry((track_index, op.look)).or_default().push(op);
            }
        }
    }
    looks.into_iter().map(|((track, _), ops)| Look { track, ops }).collect()
}

/// Where the arguments' sizes, types and scalars end and what is different in every call begins.
const VALUES: &str = ",\"device\":";

/// The part of the arguments that two calls with the same sizes, types and scalars share: all of it where another tool wrote them.
pub fn signature(text: &str) -> &str {
    text.find(VALUES).map_or(text, |end| &text[..end])
}

fn read(timeline: &Timeline, track: TrackIndex, slice: usize) -> Op<'_> {
    let one = timeline.slices.get(slice);
    let text = timeline.slices.args(slice).unwrap_or("");
    let turn = numbers(text, "turn");
    let (reads, writes) = (numbers(text, "in"), numbers(text, "out"));
    let is_long = reads.len() >= LONGEST || writes.len() >= LONGEST;
    Op {
        slice,
        track,
        start: one.start,
        end: one.end(),
        name: one.name,
        at: quoted(text, "at"),
        module: quoted(text, "module"),
        signature: if text.contains(VALUES) { signature(text) } else { "" },
        look: turn.first().copied().unwrap_or(0),
        turn: turn.get(1).copied().unwrap_or(0),
        reads,
        writes,
        changes: numbers(text, "into"),
        overwrites: numbers(text, "over"),
        params: numbers(text, "params"),
        is_view: flag(text, "view"),
        is_random: flag(text, "random"),
        padded: Padded::read(&numbers(text, "padded")),
        is_cut: is_long || flag(text, "cut"),
        is_last: flag(text, "last"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_come_in_looks_and_turns() {
        let text = r#"track main
            op aten::mm 1us..3us args {"Input~Dims":[[2,2],[2,2]],"device":"cpu","in":[1,2],"out":[3],"params":[2],"at":"m.py:7","turn":[0,0]}
            op aten::t 4us..5us args {"Input~Dims":[[2,2]],"device":"cpu","in":[3],"out":[3],"view":1,"at":"m.py:8","turn":[0,0]}
            op aten::mm 6us..9us args {"Input~Dims":[[2,2],[2,2]],"device":"cpu","in":[4,2],"out":[0],"at":"m.py:7","turn":[0,1]}
            op aten::mm 20us..21us args {"turn":[1,0],"cut":1}"#;
        let timeline = Timeline::from_text(text).unwrap();
        let looks = looks(&timeline);
        assert_eq!(
            looks.iter().map(|look| look.turns().map(<[Op]>::len).collect()).collect::<Vec<Vec<_>>>(),
            [vec![2, 1], vec![1]]
        );
        let first = &looks[0].ops[0];
        assert_eq!(
            (first.at, first.reads.as_slice(), first.writes.as_slice(), first.ns()),
            ("m.py:7", &[1, 2][..], &[3][..], 2000)
        );
        assert_eq!(first.signature, looks[0].ops[2].signature);
        assert!(
            first.is_known() && looks[0].ops[1].is_view && !looks[0].ops[2].is_known() && !looks[1].ops[0].is_known()
        );
        assert_eq!(looks[0].span(), (first.start, first.start + 8000));
    }

    #[test]
    fn arguments_that_lie_are_values_that_nobody_knows() {
        for args in [
            "{",
            r#"{"in":[1,"#,
            r#"{"in":[99999999999999999999999],"out":[-1]}"#,
            r#"{"turn":7,"at":5}"#,
            r#"{"at":"x"#,
            "\u{1F600}",
        ] {
            let timeline = Timeline::from_text(&format!("track main\n op aten::mm 1us..3us args {args}")).unwrap();
            let looks = looks(&timeline);
            assert_eq!(looks.len(), 1, "{args}");
            assert!(looks[0].ops[0].reads.iter().all(|value| *value == 0), "{args}");
        }
    }
}
