//! Whether the operators inside one function read something else in every turn: only what reads the same can be kept from one call to the next.

use super::place;
use crate::operators::{Look, Op};
use std::collections::{HashMap, HashSet};
use timeline::Timeline;

/// Makes a tensor of numbers that the program holds: whether they are the same as before is not seen.
const FROM_PYTHON: [&str; 3] = ["aten::lift_fresh", "aten::lift_fresh_copy", "aten::lift"];

/// What the operators of the function read in one turn and did not write themselves.
#[derive(Default)]
struct Inputs {
    values: HashSet<u64>,
    /// One of them was written in this very turn, so that no earlier turn can have read it.
    is_new: bool,
    /// Some are not known, or come from the program's own numbers.
    is_unsure: bool,
}

pub fn differ(looks: &[Look], timeline: &Timeline, file: &str, function: &str) -> Option<bool> {
    let mut lines: HashMap<&str, bool> = HashMap::new();
    let mut answer = None;
    for look in looks {
        let mut inside = |at| *lines.entry(at).or_insert_with(|| is_in(at, file, function));
        let turns: Vec<Inputs> = look.turns().filter_map(|turn| of_turn(turn, timeline, &mut inside)).collect();
        if turns.iter().any(|turn| turn.is_new) || turns.windows(2).any(|pair| changed(&pair[0], &pair[1])) {
            return Some(true);
        }
        if turns.len() > 1 && turns.iter().all(|turn| !turn.is_unsure) {
            answer = Some(false);
        }
    }
    answer
}

fn changed(one: &Inputs, other: &Inputs) -> bool {
    !one.is_unsure && !other.is_unsure && one.values != other.values
}

/// None: the function has no operator in it.
fn of_turn<'a>(turn: &[Op<'a>], timeline: &Timeline, inside: &mut impl FnMut(&'a str) -> bool) -> Option<Inputs> {
    let (mut found, mut any) = (Inputs::default(), false);
    let (mut own, mut before): (HashSet<u64>, HashSet<u64>) = Default::default();
    for op in turn {
        let from_python = FROM_PYTHON.contains(&timeline.names.text(op.name));
        if !inside(op.at) {
            if !from_python {
                let reads: HashSet<&u64> = op.reads.iter().collect();
                before.extend(op.writes.iter().filter(|value| !reads.contains(value)));
            }
            continue;
        }
        any = true;
        found.is_unsure |= from_python || op.is_random || !op.is_known();
        for value in op.reads.iter().filter(|value| **value != 0 && !own.contains(value)) {
            found.is_new |= before.contains(value);
            found.values.insert(*value);
        }
        own.extend(op.writes.iter().filter(|value| !found.values.contains(value)));
    }
    any.then_some(found)
}

/// Whether a line is of this function: only the last part of its name is recorded everywhere.
fn is_in(at: &str, file: &str, function: &str) -> bool {
    let last = |name: &str| name.rsplit('.').next().unwrap_or("").to_owned();
    let said = place(at);
    said.file.as_deref() == Some(file) && said.function.is_some_and(|name| last(&name) == last(function))
}

#[cfg(test)]
mod tests {
    use crate::dataflow::{Dataflow, testing::timeline};

    fn asked(text: &str) -> Option<bool> {
        let timeline = timeline(text);
        Dataflow::find(&timeline).inputs_differ(&timeline, "m.py", "Net.decode")
    }

    #[test]
    fn what_is_read_from_outside_the_function_counts() {
        // A table that stays, and results of its own.
        let same = "exp@7~decode in 1 out 20\n mul@8~decode in 20,1 out 21\n turn\n exp@7~decode in 1 out 30\n mul@8~decode in 30,1 out 31\n";
        assert_eq!(asked(same), Some(false));
        assert_eq!(asked("exp@7~decode in 1 out 20\n turn\n exp@7~decode in 2 out 30\n"), Some(true));
        // Logits that the model computed in the same turn are new, even where the look ended with it.
        assert_eq!(asked("mm@3~forward in 1,2 out 9\n exp@7~decode in 9 out 20\n"), Some(true));
        // What only shows another form of what was there is not.
        let view = "t@3~forward in 1 out 1 view\n exp@7~decode in 1 out 2\n";
        assert_eq!(asked(&format!("{view} turn\n {view}")), Some(false));
    }

    #[test]
    fn what_is_not_seen_says_nothing() {
        for text in [
            "exp@7~other in 1 out 2\n turn\n exp@7~other in 3 out 4\n",
            "exp@7~decode in 1 out 2\n",
            "exp@7~decode in 0 out 2\n turn\n exp@7~decode in 0 out 3\n",
            "lift_fresh@7~decode in 5 out 5\n turn\n lift_fresh@7~decode in 6 out 6\n",
            "rand@7~decode out 5 random\n turn\n rand@7~decode out 6 random\n",
        ] {
            assert_eq!(asked(text), None, "{text}");
        }
    }
}
