//! Tensors that are made on the CPU out of nothing that a device would have to be given, and then moved to one: constants, ranges and random
//! numbers, and what is computed from such alone. They could have been made where they are needed.

use super::OpSet;
use crate::operators::{Op, sizes};
use std::collections::{BTreeMap, HashMap, HashSet};
use timeline::Timeline;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Created<'a> {
    /// The line that makes it, and the one that moves it.
    pub at: &'a str,
    pub moved_at: &'a str,
    /// All that makes it, in order.
    pub makers: OpSet,
    /// The operators that move it, by their slices.
    pub moves: Vec<usize>,
    /// Every line of them, each once.
    pub lines: Vec<&'a str>,
    /// What makes it first, and its sizes when it is moved.
    pub name: &'a str,
    pub size: Vec<u64>,
}

/// What takes more operators to make is computed, and not just created.
const MOST_MAKERS: usize = 64;

const MOVES: [&str; 4] = ["aten::to", "aten::_to_copy", "aten::copy_", "aten::cuda"];

/// What of a line was found already: its makers and their lines.
type Known<'a> = (HashSet<usize>, HashSet<&'a str>);

/// What a value is made by: operators of the turn by their places. A blank one has no content yet that an operator gave it.
struct Made {
    by: Vec<usize>,
    is_blank: bool,
}

pub fn find<'a: 'b, 'b>(turns: impl Iterator<Item = &'b [Op<'a>]>, timeline: &'a Timeline) -> Vec<Created<'a>> {
    let mut found: BTreeMap<(&'a str, &'a str), Created<'a>> = BTreeMap::new();
    let mut known: HashMap<(&'a str, &'a str), Known<'a>> = HashMap::new();
    for ops in turns {
        let mut made: HashMap<u64, Made> = HashMap::new();
        for (place, op) in ops.iter().enumerate().filter(|(_, op)| op.is_known()) {
            let name = timeline.names.text(op.name);
            let on_cpu = op.device(timeline) == "cpu";
            if on_cpu {
                let Some(by) = makes(op, name, &made) else { continue };
                let by: Vec<usize> = if op.is_view { by } else { by.into_iter().chain([place]).collect() };
                let blank = |value: &u64| made.get(value).is_some_and(|one| one.is_blank);
                let is_blank = leaves_blank(name) || op.is_view && op.reads.iter().any(blank);
                for value in &op.writes {
                    made.insert(*value, Made { by: by.clone(), is_blank });
                }
            } else if MOVES.contains(&name) && !op.device(timeline).is_empty() {
                // Of what `copy_` reads, one is the tensor that it writes to.
                let Some(moved) = op.reads.iter().filter_map(|value| made.get(value)).find(|one| !one.is_blank) else {
                    continue;
                };
                let Some(first) = moved.by.first().map(|first| &ops[*first]) else { continue };
                let one = found.entry((first.at, op.at)).or_default();
                (one.at, one.moved_at, one.name) = (first.at, op.at, timeline.names.text(first.name));
                let (makers, lines) = known.entry((first.at, op.at)).or_default();
                for maker in moved.by.iter().map(|maker| &ops[*maker]).filter(|op| makers.insert(op.slice)) {
                    one.makers.add(maker);
                }
                for line in moved.by.iter().map(|maker| ops[*maker].at).chain([op.at]) {
                    if lines.insert(line) {
                        one.lines.push(line);
                    }
                }
                one.moves.push(op.slice);
                one.size = sizes(op.args(timeline), "Output Dims").into_iter().next().unwrap_or_default();
            }
        }
    }
    let mut all: Vec<Created> = found.into_values().collect();
    all.sort_by_key(|one| (u64::MAX - one.makers.ns(), one.at));
    all
}

/// The operators that made all that it reads, if it makes its result from nothing else. None: it needs something that was there before.
fn makes(op: &Op, name: &str, made: &HashMap<u64, Made>) -> Option<Vec<usize>> {
    // Of another tensor it takes the sizes and no more.
    let like = name.ends_with("_like") || name.starts_with("aten::new_");
    let needs: Vec<u64> = op.reads.iter().chain(&op.overwrites).copied().collect();
    if like || needs.is_empty() {
        // What other libraries make of nothing they may read from a file.
        return (name.starts_with("aten::") && name != "aten::from_file" && !op.writes.is_empty()).then(Vec::new);
    }
    let mut by: Vec<usize> = Vec::new();
    for value in needs {
        by.extend(&made.get(&value)?.by);
        if by.len() > MOST_MAKERS * MOST_MAKERS {
            return None;
        }
    }
    // The program may have written into memory that no operator filled: only one that writes all of it tells what is in it.
    let reads_blank = op.reads.iter().any(|value| made.get(value).is_some_and(|one| one.is_blank));
    by.sort_unstable();
    by.dedup();
    ((!reads_blank || op.is_view) && by.len() < MOST_MAKERS).then_some(by)
}

fn leaves_blank(name: &str) -> bool {
    name.split("::").nth(1).is_some_and(|plain| plain.starts_with("empty") || plain.starts_with("new_empty"))
}

#[cfg(test)]
mod tests {
    use crate::dataflow::{Dataflow, testing::timeline};

    fn said(text: &str) -> Vec<String> {
        let timeline = timeline(text);
        let found = Dataflow::find(&timeline).created(&timeline);
        let one =
            |one: &super::Created| format!("{} {} {} {}", one.name, one.at, one.moved_at, one.makers.slices.len());
        found.iter().map(one).collect()
    }

    #[test]
    fn made_of_nothing_and_moved() {
        assert_eq!(said("full@3 out 1\n to@4 in 1 out 2 on cuda:0"), ["aten::full m.py:3 m.py:4 1"]);
        // What is computed from such is such.
        assert_eq!(
            said(
                "ones@3 out 1\n arange@4 out 2\n mul@5 in 1,2 out 3\n view@5 in 3 out 3 view\n _to_copy@6 in 3 out 4 on cuda:0"
            ),
            ["aten::ones m.py:3 m.py:6 3"]
        );
        assert_eq!(
            said("empty@3 out 1\n uniform_@3 over 1 into 1 out 2 random\n to@4 in 2 out 3 on cuda:1"),
            ["aten::empty m.py:3 m.py:4 2"]
        );
    }

    #[test]
    fn not_what_holds_data_and_not_what_stays() {
        // Data that was there before, alone or in what is computed.
        assert!(said("to@4 in 1 out 2 on cuda:0").is_empty());
        assert!(said("ones@3 out 1\n mul@5 in 1,9 out 3\n to@6 in 3 out 4 on cuda:0").is_empty());
        // The program itself may have written into it.
        assert!(said("empty@3 out 1\n to@4 in 1 out 2 on cuda:0").is_empty());
        assert!(said("full@3 out 1\n to@4 in 1 out 2").is_empty());
        assert!(said("full@3 out 1 on cuda:0\n to@4 in 1 out 2 on cuda:0").is_empty());
        // Not in the same step.
        assert!(said("full@3 out 1\n turn\n to@4 in 1 out 2 on cuda:0").is_empty());
    }
}
