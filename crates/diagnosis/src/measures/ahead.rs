//! Whether the next step's input could be prepared while this one runs: there is a next one already, and a core that could do it.

use crate::action::Precondition;
use crate::rule::Case;

/// A pause between two steps of less than this part of a step is the program's own: the next input was there.
const MAX_PAUSE: f64 = 0.1;
/// Fewer steps do not show how they follow each other.
const MIN_STEPS: usize = 4;

/// Whether steps follow each other at once, so that the next request is there while one runs.
pub fn next_is_there(case: &Case) -> Precondition {
    let mut steps: Vec<_> = case.steps.measured().map(|step| (step.track, step.start, step.end)).collect();
    steps.sort_unstable();
    let pause = |pair: &[(_, u64, u64)]| (pair[0].0 == pair[1].0).then(|| pair[1].1.saturating_sub(pair[0].2));
    let pauses: Vec<u64> = steps.windows(2).filter_map(pause).collect();
    let short = pauses.iter().filter(|pause| **pause as f64 <= MAX_PAUSE * case.steps.p50() as f64).count();
    match pauses.len() + 1 >= MIN_STEPS && 2 * short > pauses.len() {
        true => Precondition::Holds,
        false => Precondition::Unknown("the next request is there while this one runs".into()),
    }
}

/// Whether the machine has a core besides the one that launches.
pub fn second_core(case: &Case) -> Precondition {
    match case.timeline.info.host.cpu_count {
        Some(0 | 1) => Precondition::Fails("the machine has one core".into()),
        _ => Precondition::Holds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    fn of(text: &str) -> Precondition {
        next_is_there(&Case::new(&Timeline::from_text(text).unwrap(), None))
    }

    #[test]
    fn steps_that_follow_at_once_have_a_next_request() {
        assert_eq!(of("track main\n repeat 20 every 10ms\n step r 0..9.5ms\n end"), Precondition::Holds);
        let apart = of("track main\n repeat 20 every 10ms\n step r 0..5ms\n end");
        assert!(matches!(apart, Precondition::Unknown(_)), "{apart:?}");
        assert!(matches!(of("track main\n repeat 2 every 10ms\n step r 0..9.5ms\n end"), Precondition::Unknown(_)));
    }

    #[test]
    fn one_core_prepares_nothing_beside_its_work() {
        let mut timeline = Timeline::from_text("track main\n repeat 20 every 10ms\n step r 0..9ms\n end").unwrap();
        for (cores, holds) in [(None, true), (Some(1), false), (Some(2), true)] {
            timeline.info.host.cpu_count = cores;
            assert_eq!(second_core(&Case::new(&timeline, None)) == Precondition::Holds, holds, "{cores:?}");
        }
    }
}
