//! How sure what was seen step by step makes a finding. How far the recording can be trusted for it comes later.

use analysis::stats::share::Tally;

/// The chance to see it again, by the number of steps that show it, times the chance that it takes more than half of the part of the steps that its
/// rule asks for, by how much the steps differ.
pub fn of(tally: &Tally, level: f64) -> f64 {
    tally.repeats() * tally.measured().surely_above(level / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_steps_that_agree_make_it_surer() {
        let of = |parts: &[f64]| {
            let mut tally = Tally::default();
            parts.iter().for_each(|part| tally.add(*part, 100.0));
            super::of(&tally, 0.05)
        };
        assert!(of(&[10.0; 3]) < of(&[10.0; 30]) && of(&[10.0; 30]) < of(&[10.0; 300]));
        let mut uneven = [0.0; 30];
        uneven[0] = 300.0;
        assert!(of(&uneven) < 0.6, "{}", of(&uneven));
    }

    #[test]
    fn what_takes_more_than_half_of_the_level_is_sure_and_what_takes_less_is_not() {
        let of = |part: f64| {
            let mut tally = Tally::default();
            (0..100).for_each(|at| tally.add(part + f64::from(at % 2) * 0.1, 100.0));
            super::of(&tally, 0.05)
        };
        assert!(of(4.0) > 0.95 && of(1.0) < 0.05, "{} {}", of(4.0), of(1.0));
    }
}
