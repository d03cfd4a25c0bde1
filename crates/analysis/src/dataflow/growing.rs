//! Buffers that grow by concatenation: every time all that is there is copied, to add a little. Where a look holds one round only, an
//! earlier one is not in it: then what is copied was at least on the device before the turn began.

use super::OpSet;
use crate::operators::{Op, sizes};
use std::collections::{BTreeMap, HashMap, HashSet};
use timeline::Timeline;

#[derive(Clone, PartialEq, Debug)]
pub struct Growing<'a> {
    pub at: &'a str,
    pub ops: OpSet,
    /// Sizes of the last result.
    pub size: Vec<u64>,
    /// Of what is copied, the part that is new: all that would have to be.
    pub new_part: f64,
    pub growth: Growth,
}

/// What was seen of it, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Growth {
    /// The old part was there before the turn. That it is the result of an earlier concatenation was not seen.
    Kept,
    /// From one step to the next.
    BetweenSteps,
    WithinStep,
}

/// Of what was there before, only what is copied for little that is new: the first tokens put before a batch are not.
const MOST_NEW: f64 = 0.5;

const CONCATENATIONS: [&str; 6] =
    ["aten::cat", "aten::concat", "aten::concatenate", "aten::hstack", "aten::vstack", "aten::dstack"];

/// `looks` are the operators of each look.
pub fn find<'a: 'b, 'b>(looks: impl Iterator<Item = &'b [Op<'a>]>, timeline: &Timeline) -> Vec<Growing<'a>> {
    // By line and by whether growth was seen: what was only there before is not counted with what was.
    let mut found: BTreeMap<(&'a str, bool), (Growing<'a>, f64, f64)> = BTreeMap::new();
    for ops in looks {
        // What each concatenation gave: at which line, in which turn.
        let mut made: HashMap<u64, (&'a str, u64)> = HashMap::new();
        // What operators of this look gave or changed.
        let mut given: HashSet<u64> = HashSet::new();
        for op in ops {
            let name = timeline.names.text(op.name);
            if !op.is_view && CONCATENATIONS.contains(&name) {
                let earlier = |value: &u64| made.get(value).filter(|(at, _)| *at == op.at);
                let grown = op.reads.iter().position(|value| earlier(value).is_some());
                let before = |value: &u64| *value != 0 && !given.contains(value) && !op.params.contains(value);
                // What the host gives anew goes to a device by an operator of the turn; on the host nothing would tell.
                let is_on_device = !matches!(op.device(timeline), "" | "cpu");
                let kept = || op.reads.iter().position(before).filter(|_| is_on_device && !op.is_cut);
                if let Some(place) = grown.or_else(kept) {
                    let copied = Copied::of(op, place, timeline);
                    let growth = match grown.and_then(|place| earlier(&op.reads[place])) {
                        None => Growth::Kept,
                        Some((_, turn)) if *turn == op.turn => Growth::WithinStep,
                        Some(_) => Growth::BetweenSteps,
                    };
                    if growth > Growth::Kept || copied.new <= MOST_NEW * copied.all {
                        let empty =
                            Growing { at: op.at, ops: OpSet::default(), size: Vec::new(), new_part: 0.0, growth };
                        let entry = found.entry((op.at, growth > Growth::Kept)).or_insert((empty, 0.0, 0.0));
                        let (one, new_sum, all_sum) = entry;
                        one.ops.add(op);
                        one.growth = one.growth.max(growth);
                        one.size = sizes(op.args(timeline), "Output Dims").into_iter().next().unwrap_or_default();
                        *new_sum += copied.new;
                        *all_sum += copied.all;
                    }
                }
                made.extend(op.writes.iter().filter(|value| **value != 0).map(|value| (*value, (op.at, op.turn))));
            }
            given.extend(op.writes.iter().chain(&op.changes).filter(|value| !op.is_view || !op.reads.contains(value)));
        }
    }
    let seen: HashSet<&str> = found.keys().filter(|(_, seen)| *seen).map(|(at, _)| *at).collect();
    found.retain(|(at, growth_seen), _| *growth_seen || !seen.contains(at));
    let settled = found
        .into_values()
        .map(|(one, new, all)| Growing { new_part: if all > 0.0 { (new / all).clamp(0.0, 1.0) } else { 0.0 }, ..one });
    let mut all: Vec<Growing> = settled.collect();
    all.sort_by_key(|one| (u64::MAX - one.ops.ns(), one.at));
    all
}

/// Elements that one concatenation copies.
struct Copied {
    all: f64,
    new: f64,
}

impl Copied {
    /// `place` is that of the old part among the tensors it reads.
    fn of(op: &Op, place: usize, timeline: &Timeline) -> Copied {
        let given = sizes(op.args(timeline), "Input Dims");
        let elements = |sizes: &Vec<u64>| sizes.iter().map(|side| *side as f64).product::<f64>();
        // A list of tensors has one entry for each that is read; behind it stand scalars.
        let all: f64 = given.iter().take(op.reads.len()).map(elements).sum();
        Copied { all, new: all - given.get(place).map_or(0.0, elements) }
    }
}

#[cfg(test)]
mod tests {
    use super::Growth;
    use crate::dataflow::{Dataflow, testing::timeline};

    #[test]
    fn what_an_earlier_concatenation_gave_grows() {
        let timeline = timeline(
            "cat@3 in 1,2 out 3 dims [[6,4],[2,4]]
             cat@9 in 1,2 out 4 dims [[6,4],[2,4]]
             turn
             cat@3 in 3,5 out 6 dims [[8,4],[2,4]]
             cat@9 in 1,7 out 8 dims [[6,4],[2,4]]",
        );
        let found = Dataflow::find(&timeline).growing(&timeline);
        let said: Vec<_> = found.iter().map(|one| (one.at, one.new_part, one.growth)).collect();
        assert_eq!(said, [("m.py:3", 0.2, Growth::BetweenSteps)]);
    }

    #[test]
    fn in_a_step_too() {
        let timeline = timeline(
            "cat@3 in 1,2 out 3 dims [[2],[2]]\n cat@3 in 3,4 out 5 dims [[4],[2]]\n cat@3 in 5,6 out 7 dims [[6],[2]]",
        );
        let found = Dataflow::find(&timeline).growing(&timeline);
        assert_eq!(
            found.iter().map(|one| (one.at, one.ops.count(), one.growth)).collect::<Vec<_>>(),
            [("m.py:3", 2.0, Growth::WithinStep)]
        );
    }

    /// One round of a loop: what was there before is copied for a little that is new. Not so what an operator of the turn gave, what is
    /// mostly new, parameters, and what the host may have given.
    #[test]
    fn what_was_there_before_the_turn_is_kept() {
        let of = |text: &str| {
            let timeline = timeline(text);
            let found = Dataflow::find(&timeline).growing(&timeline);
            found.iter().map(|one| (one.at.to_owned(), one.growth, one.new_part)).collect::<Vec<_>>()
        };
        let kept = of("mm@2 in 1,9 out 2 dims [[4],[4]] on cuda:0\n cat@3 in 7,2 out 3 dims [[18],[2]] on cuda:0");
        assert_eq!(kept, [("m.py:3".to_owned(), Growth::Kept, 0.1)]);
        for other in [
            "mm@2 in 1,9 out 7 dims [[4],[4]] on cuda:0\n cat@3 in 7,7 out 3 dims [[18],[2]] on cuda:0",
            "mm@2 in 1,9 out 2 dims [[4],[4]] on cuda:0\n cat@3 in 7,2 out 3 dims [[2],[18]] on cuda:0",
            "mm@2 in 1,9 out 2 dims [[4],[4]] on cuda:0\n cat@3 in 7,2 out 3 params 7 dims [[18],[2]] on cuda:0",
            "mm@2 in 1,9 out 2 dims [[4],[4]]\n cat@3 in 7,2 out 3 dims [[18],[2]]",
        ] {
            assert_eq!(of(other), [], "{other}");
        }
    }
}
