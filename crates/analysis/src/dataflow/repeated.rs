//! Operators that give in one turn what they gave in the turn before: the same operator at the same line with the same arguments, all of
//! whose inputs are the same values, or were themselves made the same way. What draws random numbers, or changes what lives on, is none.

use super::OpSet;
use crate::operators::Op;
use std::collections::{BTreeMap, HashMap, HashSet};
use timeline::NameIndex;

/// Work that could be done once.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Repeated<'a> {
    pub ops: OpSet,
    /// Those of them that read parameters.
    pub of_params: OpSet,
    /// The lines that make it, most time first.
    pub lines: Vec<(&'a str, u64)>,
    /// Its operators in order, each once, with its arguments.
    pub names: Vec<(NameIndex, &'a str)>,
    /// The program gave the same input in both turns: only what comes from parameters and from nothing is counted.
    pub same_input: bool,
}

/// So many operators that all give the same mean that the input was the same.
const ALL_ALIKE: f64 = 0.9;

pub fn find<'a, 'b>(pairs: impl Iterator<Item = (&'b [Op<'a>], &'b [Op<'a>])>) -> Vec<Repeated<'a>>
where
    'a: 'b,
{
    let mut lines = Lines::default();
    for (before, after) in pairs {
        let wide = Pair::new(before, after).repeated(|_| true);
        let work = || (0..after.len()).filter(|at| !after[*at].is_view);
        let alike = wide.len() as f64 / work().count().max(1) as f64;
        // The last thing that a step computes is its result.
        let same_input = alike >= ALL_ALIKE || work().next_back().is_some_and(|last| wide.contains_key(&last));
        let found = if same_input {
            let params: HashSet<u64> = before.iter().chain(after).flat_map(|op| &op.params).copied().collect();
            Pair::new(before, after).repeated(|value| params.contains(&value))
        } else {
            wide
        };
        let found = without_changed(after, found);
        lines.add(before, after, &found, same_input);
    }
    lines.groups()
}

/// What makes a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    /// It was there before.
    Value(u64),
    /// An operator that repeats, and which of its results it is.
    Made(usize, usize),
}

/// Two turns, with each operator of the second beside the same one of the first.
struct Pair<'a, 'b> {
    before: &'b [Op<'a>],
    after: &'b [Op<'a>],
    same: Vec<Option<usize>>,
}

impl<'a, 'b> Pair<'a, 'b> {
    fn new(before: &'b [Op<'a>], after: &'b [Op<'a>]) -> Pair<'a, 'b> {
        let key = |op: &Op<'a>| (op.name, op.at, op.signature);
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        // Last first, so that the next one is taken from the end.
        for (at, op) in before.iter().enumerate().rev() {
            places.entry(key(op)).or_default().push(at);
        }
        let same = after.iter().map(|op| places.get_mut(&key(op)).and_then(Vec::pop)).collect();
        Pair { before, after, same }
    }

    /// Those of the second turn that give what they gave in the first, with their places there. `seeds` says which values that were there
    /// before may be relied on.
    fn repeated(&self, seeds: impl Fn(u64) -> bool) -> BTreeMap<usize, usize> {
        let (mut then, mut now) = (HashMap::new(), HashMap::new());
        let mut found = BTreeMap::new();
        for (at, op) in self.after.iter().enumerate() {
            let Some(place) = self.same[at].filter(|_| !op.is_view) else { continue };
            let earlier = &self.before[place];
            let source =
                |made: &HashMap<u64, Source>, value: &u64| made.get(value).copied().unwrap_or(Source::Value(*value));
            let alike = |a: &[u64], b: &[u64]| {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| {
                        let (a, b) = (source(&then, a), source(&now, b));
                        a == b && !matches!(a, Source::Value(value) if !seeds(value))
                    })
            };
            let sure = |op: &Op| op.is_known() && !op.is_random && !op.writes.is_empty();
            if sure(earlier)
                && sure(op)
                && earlier.writes.len() == op.writes.len()
                && alike(&earlier.reads, &op.reads)
                && alike(&earlier.overwrites, &op.overwrites)
            {
                for (which, (a, b)) in earlier.writes.iter().zip(&op.writes).enumerate() {
                    then.insert(*a, Source::Made(at, which));
                    now.insert(*b, Source::Made(at, which));
                }
                found.insert(at, place);
            }
        }
        found
    }
}

/// Without what is changed afterwards by something that does not repeat: it is a new buffer every step, and has to be.
fn without_changed(after: &[Op], mut found: BTreeMap<usize, usize>) -> BTreeMap<usize, usize> {
    let others = after.iter().enumerate().filter(|(at, _)| !found.contains_key(at));
    let changed: HashSet<u64> = others.flat_map(|(_, op)| &op.changes).copied().collect();
    found.retain(|at, _| !after[*at].writes.iter().any(|value| changed.contains(value)));
    found
}

/// Repeated operators by line; lines whose results go into each other belong together.
#[derive(Default)]
struct Lines<'a> {
    by_line: BTreeMap<&'a str, Repeated<'a>>,
    /// The operators that a line has already.
    named: HashSet<(&'a str, NameIndex, &'a str)>,
    /// Each line with the one that stands for its group.
    group: HashMap<&'a str, &'a str>,
}

impl<'a> Lines<'a> {
    fn add(&mut self, before: &[Op<'a>], after: &[Op<'a>], found: &BTreeMap<usize, usize>, same_input: bool) {
        let mut maker: HashMap<u64, &'a str> = HashMap::new();
        for (at, place) in found {
            let op = &after[*at];
            let line = self.by_line.entry(op.at).or_default();
            line.ops.add(&before[*place]);
            line.ops.add(op);
            [&before[*place], op].into_iter().filter(|op| !op.params.is_empty()).for_each(|op| line.of_params.add(op));
            line.same_input |= same_input;
            if self.named.insert((op.at, op.name, op.signature)) {
                line.names.push((op.name, op.signature));
            }
            for value in op.reads.iter().chain(&op.overwrites) {
                if let Some(other) = maker.get(value) {
                    let (a, b) = (self.stands_for(op.at), self.stands_for(other));
                    self.group.insert(a.max(b), a.min(b));
                }
            }
            op.writes.iter().for_each(|value| _ = maker.insert(*value, op.at));
        }
    }

    fn stands_for(&mut self, line: &'a str) -> &'a str {
        let mut first = line;
        while let Some(next) = self.group.get(first).filter(|next| **next != first) {
            first = next;
        }
        // The next one who asks finds it at once.
        let mut at = line;
        while at != first
            && let Some(next) = self.group.insert(at, first)
        {
            at = next;
        }
        first
    }

    fn groups(mut self) -> Vec<Repeated<'a>> {
        let mut groups: BTreeMap<&str, Repeated> = BTreeMap::new();
        for (at, line) in std::mem::take(&mut self.by_line) {
            let group = groups.entry(self.stands_for(at)).or_default();
            group.ops.join(&line.ops);
            group.of_params.join(&line.of_params);
            group.lines.push((at, line.ops.ns()));
            group.names.extend(&line.names);
            group.same_input |= line.same_input;
        }
        let mut groups: Vec<Repeated> = groups.into_values().collect();
        groups.iter_mut().for_each(|group| group.lines.sort_by_key(|(at, ns)| (u64::MAX - ns, *at)));
        groups.sort_by_key(|group| (u64::MAX - group.ops.ns(), group.lines.first().copied()));
        groups
    }
}

#[cfg(test)]
mod tests {
    use crate::dataflow::{Dataflow, testing::timeline};

    /// "lines: operators" of each group.
    fn said(text: &str) -> Vec<String> {
        let timeline = timeline(text);
        let group = |one: &super::Repeated| {
            let lines: Vec<&str> = one.lines.iter().map(|(at, _)| *at).collect();
            format!("{}: {}{}", lines.join(" "), one.ops.count(), if one.same_input { " same input" } else { "" })
        };
        Dataflow::find(&timeline).repeated().iter().map(group).collect()
    }

    #[test]
    fn a_mask_and_converted_weights() {
        let turn = |x: u32, base: u32| {
            format!(
                "ones@3 out {}\n triu@4 in {0} out {}\n to@5 in 1 out {} params 1\n add@6 in {x},{1} out {}\n mm@7 in {3},{2} out {}",
                base,
                base + 1,
                base + 2,
                base + 3,
                base + 4
            )
        };
        assert_eq!(said(&format!("{}\n turn\n {}", turn(10, 20), turn(11, 30))), ["m.py:3 m.py:4: 2", "m.py:5: 1"]);
        // The same input in every step: its own work is no waste, what comes from parameters and constants is.
        assert_eq!(
            said(&format!("{}\n turn\n {}", turn(10, 20), turn(10, 30))),
            ["m.py:3 m.py:4: 2 same input", "m.py:5: 1 same input"]
        );
        // A turn alone says nothing.
        assert_eq!(said(&turn(10, 20)), [""; 0]);
    }

    #[test]
    fn random_numbers_changed_buffers_and_unknown_values_do_not_repeat() {
        let mm = |at: u32| format!("mm@9 in {at} out {}", at + 1);
        for op in ["rand@3 random out 5", "relu@3 in 0 out 5", "view@3 in 1 out 1 view"] {
            let other = op.replace("out 5", "out 6");
            assert_eq!(said(&format!("{op}\n {}\n turn\n {other}\n {}", mm(50), mm(60))), [""; 0], "{op}");
        }
        // State that lives on from step to step.
        let state = |base: u32, x: u32| format!("add_@3 in {base} out {} into {base}\n {}", base + 1, mm(x));
        assert_eq!(said(&format!("{}\n turn\n {}", state(20, 50), state(21, 60))), [""; 0]);
        // An accumulator is new every step because it is added to.
        let sums = |base: u32, x: u32| {
            format!("zeros@3 out {base}\n add_@4 in {base},{x} out {} into {base}\n {}", base + 1, mm(x))
        };
        assert_eq!(said(&format!("{}\n turn\n {}", sums(20, 50), sums(30, 60))), [""; 0]);
        // A mask that is made in place is not: the change repeats, too.
        let mask = |base: u32, x: u32| {
            format!("ones@3 out {base}\n triu_@4 in {base} out {} into {base}\n {}", base + 1, mm(x))
        };
        assert_eq!(said(&format!("{}\n turn\n {}", mask(20, 50), mask(30, 60))), ["m.py:3 m.py:4: 2"]);
    }

    #[test]
    fn other_arguments_are_other_work() {
        let text = "arange@3 out 5 dims [4]\n mm@9 in 50 out 51\n turn\n arange@3 out 6 dims [5]\n mm@9 in 60 out 61";
        assert_eq!(said(text), [""; 0]);
    }
}
