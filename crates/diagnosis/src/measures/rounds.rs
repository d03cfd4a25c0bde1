//! Whether the rounds of a loop depend on each other: what batching them needs to know. Kernels and their launches do not tell: layers that feed each other
//! launch the same kernels again and again as a loop over rows does. The operators that launched them do, by what they read and wrote.

use crate::action::Precondition;
use crate::rule::Case;
use std::collections::HashMap;

/// What is known of the data that goes from round to round of the loop that some device work is of.
pub trait RoundDependence {
    /// None: not known.
    fn rounds_depend(&self, pieces: &[u32]) -> Option<bool>;
}

/// By the loops of the operators that launched the work: what holds for more than half of it holds for the loop. A recording without operators says
/// nothing of data.
impl RoundDependence for Case<'_> {
    fn rounds_depend(&self, pieces: &[u32]) -> Option<bool> {
        let launched = self.launched().all();
        if launched.is_empty() {
            return None;
        }
        let loops = self.rounds().iter().filter_map(|one| Some((one, one.depend?)));
        let depend: HashMap<usize, bool> =
            loops.flat_map(|(one, depend)| one.ops.slices.iter().map(move |op| (*op, depend))).collect();
        let of = |piece: &u32| {
            let at = launched.binary_search_by_key(piece, |one| one.piece).ok()?;
            depend.get(&(launched[at].op as usize)).copied()
        };
        let known: Vec<bool> = pieces.iter().filter_map(of).collect();
        let those = known.iter().filter(|depend| **depend).count();
        [(true, those), (false, known.len() - those)]
            .into_iter()
            .find_map(|(depend, count)| (2 * count > pieces.len()).then_some(depend))
    }
}

/// What doing all rounds at once needs.
pub fn independent(known: &impl RoundDependence, pieces: &[u32]) -> Precondition {
    match known.rounds_depend(pieces) {
        Some(false) => Precondition::Holds,
        Some(true) => Precondition::Fails("each round uses what the one before it computed".into()),
        None => Precondition::Unknown("the iterations are independent of each other".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known(Option<bool>);

    impl RoundDependence for Known {
        fn rounds_depend(&self, _: &[u32]) -> Option<bool> {
            self.0
        }
    }

    #[test]
    fn rounds_that_feed_each_other_cannot_be_one() {
        let of = |known| independent(&Known(known), &[]);
        assert_eq!(of(Some(false)), Precondition::Holds);
        assert!(matches!(of(Some(true)), Precondition::Fails(_)) && matches!(of(None), Precondition::Unknown(_)));
    }
}
