//! What the operators that were looked at say about the program's data: work that gives the same every step, buffers that grow by copying,
//! conversions there and back, tensors made on the wrong device, and loops whose rounds depend on each other or not. Which of it matters is
//! left to the rules.

mod batch;
mod conversions;
mod created;
mod growing;
mod inputs;
mod padding;
mod repeated;
mod rounds;

pub use batch::Batch;
pub use conversions::{Conversions, Why, converts};
pub use created::Created;
pub use growing::{Growing, Growth};
pub use padding::Padding;
pub use repeated::Repeated;
pub use rounds::{HostReads, LEAST_ROUNDS, Rounds};

use crate::operators::{self, Look, Op};
use crate::place::Place;
use std::collections::BTreeMap;
use timeline::Timeline;

pub struct Dataflow<'a> {
    pub looks: Vec<Look<'a>>,
}

/// Operators of the looks, by their slices, and what they took in each turn that was looked at.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OpSet {
    pub slices: Vec<usize>,
    /// By track, look and turn: how long they took, and how many they are.
    turns: BTreeMap<(u32, u64, u64), (u64, u64)>,
}

impl OpSet {
    pub fn add(&mut self, op: &Op) {
        self.slices.push(op.slice);
        let (ns, count) = self.turns.entry((op.track.0, op.look, op.turn)).or_default();
        (*ns, *count) = (ns.saturating_add(op.ns()), *count + 1);
    }

    pub fn join(&mut self, other: &OpSet) {
        self.slices.extend(&other.slices);
        for (turn, (ns, count)) in &other.turns {
            let sum = self.turns.entry(*turn).or_default();
            *sum = (sum.0.saturating_add(*ns), sum.1 + count);
        }
    }

    /// Whether some of these run in the turn that this operator is in.
    pub fn has_turn_of(&self, op: &Op) -> bool {
        self.turns.contains_key(&(op.track.0, op.look, op.turn))
    }

    /// The time of each turn that has any.
    pub fn turns(&self) -> impl Iterator<Item = u64> {
        self.turns.values().map(|(ns, _)| *ns)
    }

    /// In a turn, on average.
    pub fn ns(&self) -> u64 {
        let sum: u64 = self.turns().fold(0, u64::saturating_add);
        sum / (self.turns.len() as u64).max(1)
    }

    /// In the turn that took least: what else runs on a machine only adds to it.
    pub fn least_ns(&self) -> u64 {
        self.turns().min().unwrap_or(0)
    }

    /// Operators in the turn that has most: a look may end in the middle of another.
    pub fn most(&self) -> u64 {
        self.turns.values().map(|(_, count)| *count).max().unwrap_or(0)
    }

    /// Operators in a turn, on average.
    pub fn count(&self) -> f64 {
        self.slices.len() as f64 / self.turns.len().max(1) as f64
    }
}

impl<'a> Dataflow<'a> {
    pub fn find(timeline: &'a Timeline) -> Dataflow<'a> {
        Dataflow { looks: operators::looks(timeline) }
    }

    pub fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    /// Every two turns of a look that follow each other.
    fn pairs(&self) -> impl Iterator<Item = (&[Op<'a>], &[Op<'a>])> {
        self.looks.iter().flat_map(|look| {
            let turns: Vec<&[Op]> = look.turns().collect();
            (1..turns.len()).map(move |at| (turns[at - 1], turns[at])).collect::<Vec<_>>()
        })
    }

    fn turns(&self) -> impl Iterator<Item = &[Op<'a>]> {
        self.looks.iter().flat_map(Look::turns)
    }

    /// How many items a step works on at once. None: the shapes do not say.
    pub fn batch(&self, timeline: &Timeline) -> Option<Batch> {
        batch::find(&self.looks, timeline)
    }

    /// What gives the same every step, by the lines that make it, most time first.
    pub fn repeated(&self) -> Vec<Repeated<'a>> {
        repeated::find(self.pairs())
    }

    /// Concatenations of what an earlier one gave, or of what was there before, by line.
    pub fn growing(&self, timeline: &Timeline) -> Vec<Growing<'a>> {
        growing::find(self.looks.iter().map(|look| look.ops.as_slice()), timeline)
    }

    /// Conversions that undo or repeat another, by line.
    pub fn conversions(&self, timeline: &'a Timeline) -> Vec<Conversions<'a>> {
        conversions::find(self.turns(), timeline)
    }

    /// Tensors that are made on the CPU and moved to a device in the same turn, by line.
    pub fn created(&self, timeline: &'a Timeline) -> Vec<Created<'a>> {
        created::find(self.turns(), timeline)
    }

    /// Ids that are partly padding, by the line that they were first seen at, and what computes on them.
    pub fn padding(&self, timeline: &'a Timeline) -> Vec<Padding<'a>> {
        padding::find(self.turns(), timeline)
    }

    /// Loops: the same operators on the same sizes, again and again.
    pub fn rounds(&self, timeline: &Timeline) -> Vec<Rounds<'a>> {
        let turns = self.looks.iter().flat_map(|look| {
            let last = look.turns().count().saturating_sub(1);
            look.turns().enumerate().map(move |(at, turn)| (turn, at == last))
        });
        rounds::find(turns, timeline)
    }

    /// Whether what operators inside this function read is something else in every turn. None: there are none, or they do not say.
    pub fn inputs_differ(&self, timeline: &Timeline, file: &str, function: &str) -> Option<bool> {
        inputs::differ(&self.looks, timeline, file, function)
    }
}

/// The place that "model.py:12 Net.forward" names.
pub fn place(at: &str) -> Place {
    let (file, rest) = at.rsplit_once(':').unwrap_or((at, ""));
    let (line, function) = rest.split_once(' ').unwrap_or((rest, ""));
    let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Place { file: said(file), line: line.parse().ok(), function: said(function), ..Place::default() }
}

#[cfg(test)]
mod testing {
    use super::*;

    /// Turns of operators in short: `mm@7 in 1,2 out 3 [params 2] [into 1] [over 1] [view] [random] [on cuda:0]`, 10 µs each; `turn` begins the next.
    pub fn timeline(text: &str) -> Timeline {
        let (mut lines, mut at, mut turn) = (String::from("track main\n"), 0, 0);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line == "turn" {
                turn += 1;
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, place) = words[0].split_once('@').unwrap();
            let word = |key: &str| words.iter().position(|word| *word == key).map(|at| words[at + 1]);
            let list = |key: &str| format!("\"{key}\":[{}]", word(key).unwrap_or(""));
            let flag = |key: &str| if words.contains(&key) { format!(",\"{key}\":1") } else { String::new() };
            let dims = word("dims").unwrap_or("[4,4]");
            let device = word("on").unwrap_or("cpu");
            let (from, to) = (word("from").unwrap_or("float"), word("to").unwrap_or("float"));
            lines += &format!(
                "op aten::{name} {at}us..{}us args {{\"Input~Dims\":[{dims}],\"Input~type\":[\"{from}\"],\"Output~type\":[\"{to}\"],\"device\":\"{device}\",{},{},{},{},{}{}{},\"at\":\"m.py:{place}\",\"turn\":[0,{turn}]}}\n",
                at + 10,
                list("in"),
                list("out"),
                list("params"),
                list("into"),
                list("over"),
                flag("view"),
                flag("random"),
            );
            at += 20;
        }
        Timeline::from_text(&lines).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_as_a_place() {
        let said = place("/app/my dir/model.py:12 Net.forward");
        assert_eq!(
            (said.file.as_deref(), said.line, said.function.as_deref()),
            (Some("/app/my dir/model.py"), Some(12), Some("Net.forward"))
        );
        assert_eq!((place("x").line, place(":").file), (None, None));
    }
}
