//! A gate: how much a metric may change, or where it may stand, as `--fail-on` takes it: `step_p50 > +5%`, `kernels > +0`,
//! `gpu_busy < 60%`. A sign makes it a change against A; without one it is a limit for B.

use super::{Comparison, relative};
use crate::named::noise::Noise;
use crate::named::{self, METRICS, Unit};
use analysis::phrase;

#[derive(Clone, PartialEq, Debug)]
pub struct Gate {
    pub text: String,
    /// Place in the table of metrics.
    pub metric: usize,
    more: bool,
    or_equal: bool,
    limit: Limit,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    /// The value of B.
    Value(f64),
    /// B less A, in the unit of the metric.
    Change(f64),
    /// B less A, as a share of A.
    Share(f64),
}

#[derive(Clone, PartialEq, Debug)]
pub struct GateResult {
    pub text: String,
    pub state: GateState,
    /// One sentence with the measured values.
    pub said: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateState {
    Holds,
    Failed,
    /// A metric is missing, or nothing can be said of it: an error, never a pass.
    Undecided,
}

const FORM: &str = "write METRIC > +5%, as in `step_p50 > +5%`";

impl Gate {
    pub fn parse(text: &str) -> Result<Gate, String> {
        let text: String = text.trim().chars().take(200).collect();
        let wrong = |why: String| format!("--fail-on {text:?}: {why}");
        let at = text.find(['<', '>']).ok_or_else(|| wrong(format!("no < or >; {FORM}")))?;
        let name = text[..at].trim();
        let metric = named::find(name).ok_or_else(|| {
            let hint = named::nearest(name)
                .map_or(format!("{FORM}; `inferscope rules list` shows all"), |near| format!("did you mean {near}?"));
            wrong(format!("there is no metric {name}: {hint}"))
        })?;
        let more = text[at..].starts_with('>');
        let rest = &text[at + 1..];
        let or_equal = rest.starts_with('=');
        let rest = rest.strip_prefix('=').unwrap_or(rest).trim();
        let signed = rest.starts_with(['+', '-', '−']);
        let digits = rest.replace('−', "-");
        let percent = digits.ends_with('%');
        let digits = digits.trim_end_matches('%').trim();
        let plain = digits.trim_start_matches(['+', '-']);
        let number: f64 = digits
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite() && plain.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
            .ok_or_else(|| wrong(format!("{rest:?} is no number; {FORM}")))?;
        let limit = match (signed, percent) {
            (true, true) => Limit::Share(number / 100.0),
            (true, false) => Limit::Change(number),
            (false, true) if METRICS[metric].unit == Unit::Share => Limit::Value(number / 100.0),
            (false, true) => {
                return Err(wrong(format!("{plain}% of what? +{plain}% is a change against A")));
            }
            (false, false) => Limit::Value(number),
        };
        Ok(Gate { text, metric, more, or_equal, limit })
    }

    pub fn judge(&self, comparison: &Comparison) -> GateResult {
        let (state, said) = self.decide(comparison);
        GateResult { text: self.text.clone(), state, said }
    }

    fn decide(&self, comparison: &Comparison) -> (GateState, String) {
        let change = &comparison.metrics[self.metric];
        let metric = &METRICS[self.metric];
        let missing = |which: &str, why: &str| (GateState::Undecided, format!("{} of {which}: {why}", metric.name));
        let b = match &change.b {
            Ok(b) => b.value,
            Err(why) => return missing("B", why),
        };
        if let Limit::Value(limit) = self.limit {
            let state = if self.over(b, limit) { GateState::Failed } else { GateState::Holds };
            return (state, format!("{} is {} in B", metric.name, metric.unit.say(b)));
        }
        let a = match &change.a {
            Ok(a) => a.value,
            Err(why) => return missing("A", why),
        };
        let mut said = format!("{} went from {} to {}", metric.name, metric.unit.say(a), metric.unit.say(b));
        let over = match self.limit {
            Limit::Share(limit) => match relative(a, b) {
                Some(share) => {
                    said += &format!(" ({})", phrase::change(share));
                    self.over(share, limit)
                }
                // From nothing to something is more than any share.
                None => self.more == (b > a),
            },
            Limit::Change(limit) | Limit::Value(limit) => self.over(b - a, limit),
        };
        match (over, change.noise) {
            (false, _) => (GateState::Holds, said),
            (true, Some(Noise::Within)) if a != b => {
                (GateState::Holds, said + ": over the limit, but within the noise of the steps; record more steps")
            }
            (true, Some(Noise::Unknown)) => (GateState::Failed, said + " (too few steps to know its noise)"),
            (true, _) => (GateState::Failed, said),
        }
    }

    fn over(&self, value: f64, limit: f64) -> bool {
        match (self.more, self.or_equal) {
            (true, false) => value > limit,
            (true, true) => value >= limit,
            (false, false) => value < limit,
            (false, true) => value <= limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_and_slips_are_named() {
        let limit = |text: &str| Gate::parse(text).map(|gate| (METRICS[gate.metric].name, gate.more, gate.limit));
        assert_eq!(limit("step_p50 > +5%"), Ok(("step_p50", true, Limit::Share(0.05))));
        assert_eq!(limit("gpu_busy<-10%"), Ok(("gpu_busy", false, Limit::Share(-0.1))));
        assert_eq!(limit("gpu_busy < 60%"), Ok(("gpu_busy", false, Limit::Value(0.6))));
        assert_eq!(limit(" kernels_per_step >= +1 "), Ok(("kernels_per_step", true, Limit::Change(1.0))));
        assert_eq!(limit("step_p99 > 20"), Ok(("step_p99", true, Limit::Value(20.0))));
        for (text, why) in [
            ("step_p5 > +5%", "did you mean step_p50?"),
            ("quux_quux_quux_quux > 1", "there is no metric"),
            ("step_p50", "no < or >"),
            ("step_p50 > much", "is no number"),
            ("step_p50 > +nan", "is no number"),
            ("step_p50 > +inf%", "is no number"),
            ("step_p50 > 5%", "+5% is a change"),
            ("step_p50 > ", "is no number"),
            ("", "no < or >"),
            ("> +5%", "there is no metric"),
        ] {
            let error = limit(text).unwrap_err();
            assert!(error.contains(why) && error.starts_with("--fail-on"), "{text}: {error}");
        }
    }
}
