//! How sure a finding is, and of what: that it was seen, that it is the cause of the time, that its fix applies, that the steps stand for the
//! program. Each is a chance from 0 to 1; a finding is as sure as their product.

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Certainty {
    /// The recording shows it, and would show it again.
    pub seen: f64,
    /// No other finding explains the same time, and none gains more.
    pub cause: f64,
    /// What its first action needs holds in this program.
    pub fix: f64,
    /// The steps that everything is a share of are those of the program.
    pub steps: f64,
}

impl Certainty {
    /// What a rule knows: how surely it was seen. The rest is settled when all findings are there.
    pub fn seen(seen: f64) -> Certainty {
        Certainty { seen, cause: 1.0, fix: 1.0, steps: 1.0 }
    }

    pub fn confidence(&self) -> f64 {
        let part = |chance: f64| if chance.is_nan() { 0.0 } else { chance.clamp(0.0, 1.0) };
        calibrated(self.factors().iter().map(|(_, chance)| part(*chance)).product())
    }

    /// Each with its name, in the order in which reports say them.
    pub fn factors(&self) -> [(&'static str, f64); 4] {
        [("seen", self.seen), ("cause", self.cause), ("fix", self.fix), ("steps", self.steps)]
    }

    /// What leaves the most doubt, where that is more than rounding.
    pub fn weakest(&self) -> Option<(&'static str, f64)> {
        let weakest = self.factors().into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(weakest).filter(|(_, chance)| *chance < NO_DOUBT)
    }

    /// The factors in one line, where another than `seen` leaves doubt.
    pub fn factors_text(&self) -> Option<String> {
        let doubtful = self.factors().iter().skip(1).any(|(_, chance)| *chance < NO_DOUBT);
        let percent = |chance: f64| format!("{:.0} %", 100.0 * chance);
        let parts: Vec<String> =
            self.factors().iter().map(|(name, chance)| format!("{name} {}", percent(*chance))).collect();
        doubtful.then(|| parts.join(" × "))
    }
}

/// What rounds to 100 % says nothing.
const NO_DOUBT: f64 = 0.995;

/// How often findings of a confidence were right: (computed, measured), both rising. On the suite's recordings, whole and cut, verdicts are right at least as often as they say
/// (`tests/suite/reliability.py`), and a correction fitted without the program itself would only raise them. The rules were made with these programs, so that is not taken;
/// of programs that nothing was tuned on no results are kept. So computed and measured are the same.
const CALIBRATION: &[(f64, f64)] = &[(0.0, 0.0), (1.0, 1.0)];

/// The only place where a computed confidence becomes the one that is said.
fn calibrated(computed: f64) -> f64 {
    between(CALIBRATION, computed)
}

/// The line through the points, level before the first and after the last.
fn between(points: &[(f64, f64)], at: f64) -> f64 {
    let above = points.partition_point(|point| point.0 <= at);
    match (above.checked_sub(1).map(|below| points[below]), points.get(above)) {
        (Some(below), Some(above)) => below.1 + (above.1 - below.1) * (at - below.0) / (above.0 - below.0),
        (Some(only), None) => only.1,
        (None, Some(only)) => only.1,
        (None, None) => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_doubt_lowers_the_whole_and_nothing_leaves_the_range() {
        let sure = Certainty::seen(0.9);
        assert!((sure.confidence() - 0.9).abs() < 1e-12);
        let doubtful = Certainty { cause: 0.5, fix: 0.8, steps: 0.5, ..sure };
        assert!((doubtful.confidence() - 0.18).abs() < 1e-12);
        for wrong in [f64::NAN, -1.0] {
            assert_eq!(Certainty { fix: wrong, ..sure }.confidence(), 0.0);
        }
        assert_eq!(Certainty { seen: 7.0, ..sure }.confidence(), 1.0);
        assert_eq!(doubtful.factors().map(|(name, _)| name), ["seen", "cause", "fix", "steps"]);
    }

    #[test]
    fn what_leaves_the_most_doubt_is_named_and_what_rounds_to_all_is_not() {
        let sure = Certainty::seen(0.999);
        assert_eq!((sure.weakest(), sure.factors_text()), (None, None));
        let doubtful = Certainty { cause: 0.5, fix: 0.8, ..sure };
        assert_eq!(doubtful.weakest(), Some(("cause", 0.5)));
        assert_eq!(doubtful.factors_text().as_deref(), Some("seen 100 % × cause 50 % × fix 80 % × steps 100 %"));
        // How often it was seen is said elsewhere.
        let rare = Certainty::seen(0.6);
        assert_eq!((rare.weakest(), rare.factors_text()), (Some(("seen", 0.6)), None));
    }

    #[test]
    fn a_calibration_goes_through_its_points_and_rises_between_them() {
        let points = [(0.2, 0.1), (0.8, 0.7)];
        assert_eq!([0.0, 0.2, 0.8, 1.0].map(|at| between(&points, at)), [0.1, 0.1, 0.7, 0.7]);
        assert!((between(&points, 0.5) - 0.4).abs() < 1e-12);
        assert_eq!((between(&[], 0.3), calibrated(0.37)), (0.3, 0.37));
    }
}
