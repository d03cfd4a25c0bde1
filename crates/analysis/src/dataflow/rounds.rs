//! Loops: the same few operators, at the same lines and on the same sizes, one round after the other. Whether a round needs what an earlier one
//! gave decides what can be done about it: rounds that do not can be one batch.

use super::OpSet;
use crate::operators::{Op, sizes};
use std::collections::{BTreeMap, HashMap, HashSet};
use timeline::{NameIndex, Timeline};

#[derive(Clone, PartialEq, Debug)]
pub struct Rounds<'a> {
    /// The lines of its body, in order, each once.
    pub lines: Vec<&'a str>,
    /// Operators of a round.
    pub body: Vec<NameIndex>,
    /// Sizes of the first operator's tensors.
    pub sizes: Vec<Vec<u64>>,
    /// Of the longest run.
    pub rounds: usize,
    /// Runs in a turn, on average.
    pub runs: f64,
    /// Whether rounds need what earlier rounds gave. None: some do, or it is not known.
    pub depend: Option<bool>,
    /// What the program is given in each round: numbers in place of tensors.
    pub host_reads: HostReads,
    /// The look ended in every run of it: there may be more rounds.
    pub is_cut: bool,
    /// All its operators.
    pub ops: OpSet,
    /// All but those of each run's first round.
    pub again: OpSet,
}

/// Elements that rounds read to the host, one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostReads {
    /// In a round.
    pub count: usize,
    /// They are of tensors that were there before the loop: all could be read at once.
    pub of_earlier: bool,
    /// Whether the tensors of a round come from earlier rounds. What the program does with the numbers is not seen.
    pub depend: Option<bool>,
}

/// A shorter run says little about what follows from what, and saves little.
pub const LEAST_ROUNDS: usize = 8;
/// A longer body has enough work in a round.
const LONGEST_BODY: usize = 48;
/// A value is asked for by the program, which may decide by it what to do next.
const TO_HOST: [&str; 3] = ["aten::_local_scalar_dense", "aten::item", "aten::is_nonzero"];

/// `turns`: each with whether its look ended with it.
pub fn find<'a: 'b, 'b>(turns: impl Iterator<Item = (&'b [Op<'a>], bool)>, timeline: &Timeline) -> Vec<Rounds<'a>> {
    let mut found: BTreeMap<Vec<(&'a str, NameIndex)>, Vec<Rounds<'a>>> = BTreeMap::new();
    let mut count = 0;
    for (turn, is_last) in turns {
        count += 1;
        let work: Vec<&Op> = turn.iter().filter(|op| !op.is_view).collect();
        // Scalars (which row, which head) differ between rounds; sizes and types do not.
        let mut numbers: HashMap<(NameIndex, &str, &str), u32> = HashMap::new();
        let keys: Vec<u32> = work
            .iter()
            .map(|op| {
                let end = op.signature.find(",\"Concrete Inputs\"").unwrap_or(op.signature.len());
                let next = numbers.len() as u32;
                *numbers.entry((op.name, op.at, &op.signature[..end])).or_insert(next)
            })
            .collect();
        let mut at = 0;
        while at < work.len() {
            let Some((body, rounds)) = run(&keys[at..]) else {
                at += 1;
                continue;
            };
            let is_cut = is_last && at + body * rounds + body > work.len();
            let one = Rounds { is_cut, ..describe(&work[at..at + body * rounds], body, rounds, timeline) };
            let key = work[at..at + body].iter().map(|op| (op.at, op.name)).collect();
            found.entry(key).or_default().push(one);
            at += body * rounds;
        }
    }
    let mut all: Vec<Rounds> = found.into_values().map(|runs| joined(runs, count)).collect();
    all.sort_by_key(|one| (u64::MAX - one.ops.ns(), one.lines.first().copied()));
    all
}

/// The shortest body that repeats from here for long enough, and how often.
fn run(keys: &[u32]) -> Option<(usize, usize)> {
    (1..=LONGEST_BODY.min(keys.len() / LEAST_ROUNDS))
        .filter(|body| keys[0] == keys[*body])
        .map(|body| (body, keys.iter().zip(&keys[body..]).take_while(|(a, b)| a == b).count() / body + 1))
        .find(|(_, rounds)| *rounds >= LEAST_ROUNDS)
}

fn describe<'a>(ops: &[&Op<'a>], body: usize, rounds: usize, timeline: &Timeline) -> Rounds<'a> {
    let depend = depend(ops, body);
    let host_reads = host_reads(ops, body, depend, timeline);
    let mut one = Rounds {
        lines: Vec::new(),
        body: ops[..body].iter().map(|op| op.name).collect(),
        sizes: sizes(ops[0].args(timeline), "Input Dims").into_iter().filter(|sizes| !sizes.is_empty()).collect(),
        rounds,
        runs: 1.0,
        depend: depend.filter(|_| host_reads.count == 0),
        host_reads,
        is_cut: false,
        ops: OpSet::default(),
        again: OpSet::default(),
    };
    for op in &ops[..body] {
        if !one.lines.contains(&op.at) {
            one.lines.push(op.at);
        }
    }
    ops.iter().for_each(|op| one.ops.add(op));
    ops[body..].iter().for_each(|op| one.again.add(op));
    one
}

fn host_reads(ops: &[&Op], body: usize, depend: Option<bool>, timeline: &Timeline) -> HostReads {
    let is_read = |op: &&&Op| TO_HOST.contains(&timeline.names.text(op.name));
    let count = ops[..body].iter().filter(is_read).count();
    if count == 0 {
        return HostReads::default();
    }
    let written: HashSet<u64> = ops.iter().flat_map(|op| &op.writes).copied().collect();
    let earlier = |op: &&Op| op.is_known() && !op.reads.iter().any(|value| written.contains(value));
    HostReads { count, of_earlier: ops.iter().filter(is_read).all(earlier), depend }
}

/// Whether every round but the first reads what an earlier one wrote, or none does.
fn depend(ops: &[&Op], body: usize) -> Option<bool> {
    let mut written: HashSet<u64> = HashSet::new();
    let (mut with, mut without) = (0, 0);
    for (place, round) in ops.chunks(body).enumerate() {
        let own: HashSet<u64> = round.iter().flat_map(|op| &op.writes).copied().collect();
        let needs = |value: &u64| written.contains(value) && !own.contains(value);
        match round.iter().any(|op| op.reads.iter().any(needs)) {
            _ if place == 0 => {}
            true => with += 1,
            false => without += 1,
        }
        written.extend(own.iter().filter(|value| **value != 0));
    }
    match (with, without, ops.iter().all(|op| op.is_known())) {
        (1.., 0, _) => Some(true),
        (0, 1.., true) => Some(false),
        _ => None,
    }
}

fn joined(runs: Vec<Rounds>, turns: usize) -> Rounds {
    let count = runs.len();
    let mut runs = runs.into_iter();
    let mut all = runs.next().unwrap_or_else(|| Rounds {
        lines: Vec::new(),
        body: Vec::new(),
        sizes: Vec::new(),
        rounds: 0,
        runs: 0.0,
        depend: None,
        host_reads: HostReads::default(),
        is_cut: false,
        ops: OpSet::default(),
        again: OpSet::default(),
    });
    for one in runs {
        all.rounds = all.rounds.max(one.rounds);
        all.depend = all.depend.filter(|_| all.depend == one.depend);
        let (reads, others) = (&mut all.host_reads, one.host_reads);
        reads.of_earlier &= others.of_earlier;
        reads.depend = reads.depend.filter(|_| reads.depend == others.depend);
        all.is_cut &= one.is_cut;
        all.ops.join(&one.ops);
        all.again.join(&one.again);
    }
    all.runs = count as f64 / turns.max(1) as f64;
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::{Dataflow, testing::timeline};

    fn said(text: &str) -> Vec<(Vec<String>, usize, Option<bool>)> {
        let timeline = timeline(text);
        let found = Dataflow::find(&timeline).rounds(&timeline);
        let lines = |one: &Rounds| one.lines.iter().map(|at| at.to_string()).collect();
        found.iter().map(|one| (lines(one), one.rounds, one.depend)).collect()
    }

    /// Twelve rounds of two operators: `reads` makes what the first of each reads.
    fn rounds(reads: impl Fn(u32) -> String) -> String {
        let round = |at: u32| {
            format!(
                "mul@3 in {} out {}\n select@4 in 1 out 1 view\n sum@4 in {1} out {}\n",
                reads(at),
                100 + 2 * at,
                101 + 2 * at
            )
        };
        (0..12).map(round).collect()
    }

    fn lines(numbers: &[u32]) -> Vec<String> {
        numbers.iter().map(|line| format!("m.py:{line}")).collect()
    }

    #[test]
    fn rows_are_independent_and_layers_are_not() {
        assert_eq!(said(&rounds(|_| "1".into())), [(lines(&[3, 4]), 12, Some(false))]);
        assert_eq!(said(&rounds(|at| format!("{}", 99 + 2 * at))), [(lines(&[3, 4]), 12, Some(true))]);
        // Every other one does, or a value is not known.
        assert_eq!(
            said(&rounds(|at| format!("{}", if at % 2 == 0 { 1 } else { 99 + 2 * at }))),
            [(lines(&[3, 4]), 12, None)]
        );
        assert_eq!(said(&rounds(|_| "0".into())), [(lines(&[3, 4]), 12, None)]);
    }

    #[test]
    fn filling_rows_of_a_buffer_is_independent_and_adding_to_it_is_not() {
        let fill = |at: u32| {
            format!("exp@3 in 1 out {}\n copy_@4 in {0} out {} into {} over {2}\n", 100 + at, 201 + at, 200 + at)
        };
        assert_eq!(said(&(0..9).map(fill).collect::<String>()), [(lines(&[3, 4]), 9, Some(false))]);
        let add =
            |at: u32| format!("exp@3 in 1 out {}\n add_@4 in {},{0} out {} into {1}\n", 100 + at, 200 + at, 201 + at);
        assert_eq!(said(&(0..9).map(add).collect::<String>()), [(lines(&[3, 4]), 9, Some(true))]);
    }

    #[test]
    fn what_the_program_reads_in_between_may_decide_what_follows() {
        let round = |at: u32| format!("exp@3 in 1 out {}\n _local_scalar_dense@4 in {0}\n", 100 + at);
        assert_eq!(said(&(0..9).map(round).collect::<String>()), [(lines(&[3, 4]), 9, None)]);
    }

    /// Elements of a tensor that was there can be read at once; what each round computes first cannot, nor what it has from the last one.
    #[test]
    fn elements_that_are_read_one_by_one() {
        let of = |round: &dyn Fn(u32) -> String, last: &str| {
            let timeline = timeline(&((0..9).map(round).collect::<String>() + last));
            let found = Dataflow::find(&timeline).rounds(&timeline);
            (found[0].host_reads, found[0].is_cut)
        };
        let reads = |of_earlier, depend| HostReads { count: 1, of_earlier, depend };
        let element = |_: u32| "select@3 in 5 out 5 view\n item@3 in 5\n".to_string();
        assert_eq!(of(&element, ""), (reads(true, Some(false)), true));
        assert_eq!(of(&element, "exp@9 in 1 out 2\n"), (reads(true, Some(false)), false));
        // The first turn has all of it.
        let next: String = (0..9).map(element).collect();
        assert!(!of(&element, &format!("exp@9 in 1 out 2\n turn\n {next}")).1);
        let computed = |at: u32| format!("exp@3 in 1 out {}\n item@4 in {0}\n", 100 + at);
        assert_eq!(of(&computed, "").0, reads(false, Some(false)));
        let chain = |at: u32| format!("exp@3 in {} out {}\n item@4 in {1}\n", 99 + at, 100 + at);
        assert_eq!(of(&chain, "").0, reads(false, Some(true)));
        let unknown = |_: u32| "item@3 in 0\n".to_string();
        assert_eq!(of(&unknown, "").0, reads(false, None));
        assert_eq!(of(&|at| format!("exp@3 in 1 out {}\n", 100 + at), "").0, HostReads::default());
    }

    #[test]
    fn few_rounds_and_other_sizes_are_no_loop() {
        let round = |at: u32| format!("exp@3 in 1 out {} dims [{at}]\n", 100 + at);
        assert_eq!(said(&(0..20).map(round).collect::<String>()), []);
        assert_eq!(said(&"exp@3 in 1 out 2\n".repeat(LEAST_ROUNDS - 1)), []);
    }
}
