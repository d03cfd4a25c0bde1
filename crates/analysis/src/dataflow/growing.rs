//! Buffers that grow by concatenation: every time all that is there is copied, to add a little.

use super::OpSet;
use crate::operators::{Op, sizes};
use std::collections::{BTreeMap, HashMap};
use timeline::Timeline;

#[derive(Clone, PartialEq, Debug)]
pub struct Growing<'a> {
    pub at: &'a str,
    pub ops: OpSet,
    /// Sizes of the last result.
    pub size: Vec<u64>,
    /// Of what is copied, the part that is new: all that would have to be.
    pub new_part: f64,
    /// It grows within a step, and not only from one to the next.
    pub in_step: bool,
}

const CONCATENATIONS: [&str; 6] =
    ["aten::cat", "aten::concat", "aten::concatenate", "aten::hstack", "aten::vstack", "aten::dstack"];

/// `looks` are the operators of each look.
pub fn find<'a: 'b, 'b>(looks: impl Iterator<Item = &'b [Op<'a>]>, timeline: &Timeline) -> Vec<Growing<'a>> {
    let mut found: BTreeMap<&'a str, (Growing<'a>, f64, f64)> = BTreeMap::new();
    for ops in looks {
        // What each concatenation gave: at which line, in which turn.
        let mut made: HashMap<u64, (&'a str, u64)> = HashMap::new();
        for op in ops.iter().filter(|op| !op.is_view && CONCATENATIONS.contains(&timeline.names.text(op.name))) {
            let grown =
                op.reads.iter().position(|value| *value != 0 && made.get(value).is_some_and(|(at, _)| *at == op.at));
            if let Some(place) = grown {
                let given = sizes(op.args(timeline), "Input Dims");
                let elements = |sizes: &Vec<u64>| sizes.iter().map(|side| *side as f64).product::<f64>();
                // A list of tensors has one entry for each that is read; behind it stand scalars.
                let all: f64 = given.iter().take(op.reads.len()).map(elements).sum();
                let old = given.get(place).map_or(0.0, elements);
                let empty =
                    Growing { at: op.at, ops: OpSet::default(), size: Vec::new(), new_part: 0.0, in_step: false };
                let (one, new_sum, all_sum) = found.entry(op.at).or_insert((empty, 0.0, 0.0));
                one.ops.add(op);
                one.in_step |= made.get(&op.reads[place]).is_some_and(|(_, turn)| *turn == op.turn);
                one.size = sizes(op.args(timeline), "Output Dims").into_iter().next().unwrap_or_default();
                *new_sum += all - old;
                *all_sum += all;
            }
            for value in op.writes.iter().filter(|value| **value != 0) {
                made.insert(*value, (op.at, op.turn));
            }
        }
    }
    let settled = found
        .into_values()
        .map(|(one, new, all)| Growing { new_part: if all > 0.0 { (new / all).clamp(0.0, 1.0) } else { 0.0 }, ..one });
    let mut all: Vec<Growing> = settled.collect();
    all.sort_by_key(|one| (u64::MAX - one.ops.ns(), one.at));
    all
}

#[cfg(test)]
mod tests {
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
        let said: Vec<_> = found.iter().map(|one| (one.at, one.new_part, one.in_step)).collect();
        assert_eq!(said, [("m.py:3", 0.2, false)]);
    }

    #[test]
    fn in_a_step_too() {
        let timeline = timeline(
            "cat@3 in 1,2 out 3 dims [[2],[2]]\n cat@3 in 3,4 out 5 dims [[4],[2]]\n cat@3 in 5,6 out 7 dims [[6],[2]]",
        );
        let found = Dataflow::find(&timeline).growing(&timeline);
        assert_eq!(
            found.iter().map(|one| (one.at, one.ops.count(), one.in_step)).collect::<Vec<_>>(),
            [("m.py:3", 2.0, true)]
        );
    }
}
