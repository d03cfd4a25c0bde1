//! Finds runs of kernels that were looked at in other rows of kernels. A row that is not the same as a whole mostly is in long runs: a tensor
//! that lies elsewhere gets another variant of one kernel, and a step has more or fewer turns than were looked at.

use std::collections::HashMap;

/// Kernels in a row by name, with the operator of each where one is known.
pub struct Sequence {
    pub names: Vec<u32>,
    pub ops: Vec<Option<u32>>,
}

/// Where every few kernels in a row stand in the sequences.
pub struct Runs<'a> {
    sequences: &'a [Sequence],
    places: HashMap<&'a [u32], Vec<(usize, usize)>>,
}

/// So many kernels in a row are looked up ...
const SEED: usize = 4;
/// ... and so many have to be the same, or a whole sequence: fewer are found by chance where other work launches them.
const LEAST: usize = 8;
/// Of the same few kernels: more layers than this are as good as their first ones.
const MOST_PLACES: usize = 256;

impl<'a> Runs<'a> {
    pub fn of(sequences: &'a [Sequence]) -> Runs<'a> {
        let mut places: HashMap<&[u32], Vec<(usize, usize)>> = HashMap::new();
        for (which, one) in sequences.iter().enumerate() {
            for (at, seed) in one.names.windows(SEED).enumerate() {
                let known = places.entry(seed).or_default();
                if known.len() < MOST_PLACES {
                    known.push((which, at));
                }
            }
        }
        Runs { sequences, places }
    }

    /// The operators of these kernels: from first to last, each time those of the longest run.
    pub fn operators(&self, names: &[u32]) -> Vec<Option<u32>> {
        let mut found = vec![None; names.len()];
        let mut at = 0;
        while at + SEED <= names.len() {
            let places = self.places.get(&names[at..at + SEED]).into_iter().flatten();
            let run = |(which, from): &(usize, usize)| {
                let one = &self.sequences[*which];
                let long = one.names[*from..].iter().zip(&names[at..]).take_while(|(a, b)| a == b).count();
                let usable = long >= LEAST || long == one.names.len();
                usable.then(|| (long, &one.ops[*from..*from + long]))
            };
            // The first of equally long ones.
            let longest = places.filter_map(run).reduce(|a, b| if b.0 > a.0 { b } else { a });
            match longest {
                Some((long, ops)) => {
                    found[at..at + long].copy_from_slice(ops);
                    at += long;
                }
                None => at += 1,
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operators by place, 0 for none, as found with sequences whose operators are numbered from 1.
    fn said(sequences: &[&[u32]], names: &[u32]) -> Vec<u32> {
        let numbered =
            |names: &&[u32]| Sequence { names: names.to_vec(), ops: (1..=names.len() as u32).map(Some).collect() };
        let sequences: Vec<Sequence> = sequences.iter().map(numbered).collect();
        Runs::of(&sequences).operators(names).iter().map(|op| op.unwrap_or(0)).collect()
    }

    #[test]
    fn whole_sequences_and_long_runs() {
        assert_eq!(said(&[&[1, 2, 3, 4]], &[9, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2]), [0, 1, 2, 3, 4, 1, 2, 3, 4, 0, 0]);
        let long: Vec<u32> = (1..=10).collect();
        assert_eq!(said(&[&long], &[1, 2, 3, 4, 5, 6, 7, 8, 77, 10]), [1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
        // The longest, and not the first: layers repeat.
        let layers = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(said(&[&layers], &[1, 2, 3, 4, 5, 6, 7, 8, 9]), [9, 10, 11, 12, 13, 14, 15, 16, 17]);
    }

    #[test]
    fn a_few_kernels_may_be_other_work() {
        let long: Vec<u32> = (1..=10).collect();
        assert_eq!(said(&[&long], &[1, 2, 3, 4, 5, 6, 7]), [0; 7]);
        assert_eq!(said(&[&[1, 2, 3]], &[1, 2, 3, 1, 2, 3]), [0; 6]);
        assert_eq!((said(&[], &[1, 2, 3, 4]), said(&[&[1, 2, 3, 4]], &[])), (vec![0; 4], vec![]));
    }
}
