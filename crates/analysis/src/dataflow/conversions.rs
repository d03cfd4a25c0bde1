//! Conversions between types that need not be: of a value that was just converted from the same type, or that was converted in the same way
//! before in the same step.

use super::OpSet;
use crate::operators::{Op, types};
use std::collections::{BTreeMap, HashMap};
use timeline::Timeline;

#[derive(Clone, PartialEq, Debug)]
pub struct Conversions<'a> {
    pub at: &'a str,
    pub ops: OpSet,
    pub from: &'a str,
    pub to: &'a str,
    pub why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// It was converted from this type right before.
    Back,
    /// The same value was converted to this type before.
    Again,
}

const CONVERSIONS: [&str; 4] = ["aten::to", "aten::_to_copy", "aten::type_as", "prims::convert_element_type"];

/// Whether an operator of this name gives the same values in another type.
pub fn converts(name: &str) -> bool {
    CONVERSIONS.contains(&name)
}

pub fn find<'a: 'b, 'b>(turns: impl Iterator<Item = &'b [Op<'a>]>, timeline: &'a Timeline) -> Vec<Conversions<'a>> {
    let mut found: BTreeMap<(&'a str, &'a str, &'a str, Why), OpSet> = BTreeMap::new();
    for ops in turns {
        // What each conversion gave, and what it was before; and what was converted to what.
        let mut made: HashMap<u64, (usize, &'a str)> = HashMap::new();
        let mut known: HashMap<(u64, &'a str), usize> = HashMap::new();
        let mut readers: HashMap<u64, u32> = HashMap::new();
        ops.iter()
            .filter(|op| !op.is_view)
            .flat_map(|op| &op.reads)
            .for_each(|value| *readers.entry(*value).or_default() += 1);
        for (at, op) in ops.iter().enumerate() {
            let Some((from, to)) = types_of(op, timeline) else { continue };
            let (Some(value), Some(result)) = (op.reads.first(), op.writes.first()) else { continue };
            if *value == 0 || *result == 0 {
                continue;
            }
            if let Some((first, _)) = made.get(value).filter(|(_, before)| *before == to) {
                let set = found.entry((op.at, from, to, Why::Back)).or_default();
                set.add(op);
                // Nobody else reads what lies between: neither conversion is needed.
                if readers.get(value) == Some(&1) {
                    set.add(&ops[*first]);
                }
            } else if known.contains_key(&(*value, to)) {
                found.entry((op.at, from, to, Why::Again)).or_default().add(op);
            }
            made.insert(*result, (at, from));
            known.insert((*value, to), at);
        }
    }
    let said = found.into_iter().map(|((at, from, to, why), ops)| Conversions { at, ops, from, to, why });
    let mut all: Vec<Conversions> = said.collect();
    all.sort_by_key(|one| (u64::MAX - one.ops.ns(), one.at));
    all
}

/// From and to, of an operator that converts.
fn types_of<'a>(op: &Op, timeline: &'a Timeline) -> Option<(&'a str, &'a str)> {
    if op.is_view || !converts(timeline.names.text(op.name)) {
        return None;
    }
    let args = op.args(timeline);
    let from = types(args, "Input type").first().copied()?;
    let to = types(args, "Output type").first().copied()?;
    (from != to && !from.is_empty() && !to.is_empty()).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::{Dataflow, testing::timeline};

    fn said(text: &str) -> Vec<(String, Why, f64)> {
        let timeline = timeline(text);
        let found = Dataflow::find(&timeline).conversions(&timeline);
        found.iter().map(|one| (one.at.to_owned(), one.why, one.ops.count())).collect()
    }

    #[test]
    fn there_and_back() {
        let there = "to@3 in 1 out 2 from half to float\n";
        assert_eq!(said(&format!("{there} to@4 in 2 out 3 from float to half")), [("m.py:4".into(), Why::Back, 2.0)]);
        // Somebody else needs what lies between.
        assert_eq!(
            said(&format!("{there} mm@5 in 2 out 9\n to@4 in 2 out 3 from float to half")),
            [("m.py:4".into(), Why::Back, 1.0)]
        );
        // Computed with in between, or on to a third type.
        assert_eq!(said(&format!("{there} exp@5 in 2 out 9\n to@4 in 9 out 3 from float to half")), []);
        assert_eq!(said(&format!("{there} to@4 in 2 out 3 from float to double")), []);
    }

    #[test]
    fn the_same_value_again() {
        assert_eq!(
            said("to@3 in 1 out 2 from half to float\n to@3 in 1 out 4 from half to float"),
            [("m.py:3".into(), Why::Again, 1.0)]
        );
        assert_eq!(said("to@3 in 1 out 2 from half to float\n to@3 in 5 out 4 from half to float"), []);
        // A turn later is `repeated-work`.
        assert_eq!(said("to@3 in 1 out 2 from half to float\n turn\n to@3 in 1 out 4 from half to float"), []);
    }
}
