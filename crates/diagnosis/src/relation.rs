//! How two findings stand to each other: apart, or of the same time, and then which of them says why. That they are of the same time comes from what
//! their changes touch in the recording. Which one says why comes from there as well, where one change names what it touches and the other is of the
//! whole step; else the rule says it (`Rule::explains`): that a garbage collection is why a line is slow, and not the other way round, is in no recording.

use crate::finding::Finding;
use crate::rules;
use replay::gain::Gain;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// Other time, or not known to be the same.
    Apart,
    /// Of the same time, and the first says why.
    Explains,
    /// Of the same time, and the other says why.
    Explained,
    /// Of the same time and the same code, and the first has more of it; the other has more of it.
    Whole,
    Part,
    /// Of the same time, and nothing tells which one says why.
    Rival,
}

/// Where what they change says that it is the same time, a cause weighs as much as what it explains if it gains no less than this part of it: less
/// is a detail.
const MIN_CAUSE_PART: f64 = 0.2;
/// Where one of them names no change, nothing but their size can tell: the one is no less than this part of the other.
const MIN_EQUAL_PART: f64 = 0.5;
/// More than this of what the one changes is changed by the other, too: it is a part of that.
const MAJORITY: f64 = 0.5;
/// As many with the most to gain are compared with each other whatever their rules say: every pair is a replay of its own.
const MAX_COMPARED: usize = 6;

/// What a recording says of two changes.
pub trait Changes {
    /// Whether they are of the same time. None: what one of them changes is not known.
    fn same_time(&self, one: &Gain, other: &Gain) -> Option<bool>;
    /// The part of what the one changes that the other changes, too. None: not known.
    fn covered(&self, one: &Gain, other: &Gain) -> Option<f64>;
    /// Whether it is of the whole step (all launches, all gaps) and names nothing in it.
    fn is_of_everything(&self, one: &Gain) -> bool;
}

impl Changes for replay::ReplayedSteps<'_> {
    fn same_time(&self, one: &Gain, other: &Gain) -> Option<bool> {
        replay::ReplayedSteps::same_time(self, one, other)
    }

    fn covered(&self, one: &Gain, other: &Gain) -> Option<f64> {
        replay::ReplayedSteps::covered(self, one, other)
    }

    fn is_of_everything(&self, one: &Gain) -> bool {
        self.changes_everything(one)
    }
}

/// Of every two findings, by their places.
pub struct Relations {
    count: usize,
    all: Vec<Relation>,
}

impl Relations {
    pub fn of(findings: &[Finding], changes: &impl Changes) -> Relations {
        let count = findings.len();
        let mut relations = Relations { count, all: vec![Relation::Apart; count * count] };
        let mut largest: Vec<usize> =
            (0..count).filter(|at| findings[*at].gain.is_some_and(|gain| gain.mid > 0.0)).collect();
        largest.sort_by(|a, b| gained(&findings[*b]).total_cmp(&gained(&findings[*a])));
        for (place, one) in largest.iter().enumerate() {
            for (other_place, other) in largest.iter().enumerate().skip(place + 1) {
                let relation = between(&findings[*one], &findings[*other], other_place < MAX_COMPARED, changes);
                relations.all[one * count + other] = relation;
                relations.all[other * count + one] = relation.reversed();
            }
        }
        relations
    }

    /// Of the same findings in this order.
    pub fn reordered(&self, order: &[usize]) -> Relations {
        let all = order.iter().flat_map(|one| order.iter().map(|other| self.get(*one, *other))).collect();
        Relations { count: order.len(), all }
    }

    pub fn get(&self, one: usize, other: usize) -> Relation {
        self.all[one * self.count + other]
    }
}

impl Relation {
    fn reversed(self) -> Relation {
        match self {
            Relation::Explains => Relation::Explained,
            Relation::Explained => Relation::Explains,
            Relation::Whole => Relation::Part,
            Relation::Part => Relation::Whole,
            Relation::Apart | Relation::Rival => self,
        }
    }
}

fn gained(finding: &Finding) -> f64 {
    finding.expected_gain().unwrap_or(0.0)
}

/// Whether the rule of the one says that it explains what the other's finds.
fn listed(one: &Finding, other: &Finding) -> bool {
    rules::find(one.code).is_some_and(|rule| rule.explains().contains(&other.code))
}

fn between(one: &Finding, other: &Finding, compared: bool, changes: &impl Changes) -> Relation {
    let (Some(gain), Some(others)) = (one.gain, other.gain) else { return Relation::Apart };
    let (first, second) = (listed(one, other), listed(other, one));
    if !(compared || first || second) {
        return Relation::Apart;
    }
    let large = |cause: &Gain, effect: &Gain, part: f64| cause.mid >= part * effect.mid;
    let inside = |one: &Gain, other: &Gain| changes.covered(one, other).is_some_and(|part| part > MAJORITY);
    let as_sure = |one: &Finding, other: &Finding| one.certainty.fix >= other.certainty.fix;
    match changes.same_time(&gain, &others) {
        Some(false) => Relation::Apart,
        Some(true) if first && large(&gain, &others, MIN_CAUSE_PART) => Relation::Explains,
        Some(true) if second && large(&others, &gain, MIN_CAUSE_PART) => Relation::Explained,
        Some(true) if first || second => Relation::Apart,
        // What is named in the step says why the whole of it is slow, if it can be changed as surely.
        Some(true) => match (changes.is_of_everything(&gain), changes.is_of_everything(&others)) {
            (false, true) if as_sure(one, other) && large(&gain, &others, MIN_CAUSE_PART) => Relation::Explains,
            (true, false) if as_sure(other, one) && large(&others, &gain, MIN_CAUSE_PART) => Relation::Explained,
            _ if same_place(one, other) && gain.mid >= others.mid && as_sure(one, other) => Relation::Whole,
            _ if same_place(one, other) && others.mid >= gain.mid && as_sure(other, one) => Relation::Part,
            // A line inside a longer stretch, a kernel among several: both are true.
            _ if inside(&gain, &others) || inside(&others, &gain) => Relation::Apart,
            _ => Relation::Rival,
        },
        None if first && large(&gain, &others, MIN_EQUAL_PART) => Relation::Explains,
        None if second && large(&others, &gain, MIN_EQUAL_PART) => Relation::Explained,
        None => Relation::Apart,
    }
}

/// Two rules that name one function agree: neither speaks against the other.
fn same_place(one: &Finding, other: &Finding) -> bool {
    let (one, other) = (&one.place, &other.place);
    one.file.is_some() && (&one.file, &one.function) == (&other.file, &other.function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certainty::Certainty;
    use crate::finding::Severity;
    use crate::testing::finding;

    /// What a recording would say of the two changes: the one with the gain `everything` is of the whole step.
    struct Recording {
        same_time: Option<bool>,
        everything: f64,
        covered: Option<f64>,
    }

    impl Changes for Recording {
        fn same_time(&self, _: &Gain, _: &Gain) -> Option<bool> {
            self.same_time
        }

        fn covered(&self, _: &Gain, _: &Gain) -> Option<f64> {
            self.covered
        }

        fn is_of_everything(&self, one: &Gain) -> bool {
            one.mid == self.everything
        }
    }

    fn of(code: &'static str, gain: f64) -> Finding {
        finding(code, Some(Gain::recorded(gain, gain, gain)), Severity::Medium)
    }

    fn relation(one: Finding, other: Finding, same_time: Option<bool>, everything: f64) -> Relation {
        both([one, other], Recording { same_time, everything, covered: None })
    }

    fn both(findings: [Finding; 2], recording: Recording) -> Relation {
        let relations = Relations::of(&findings, &recording);
        assert_eq!(relations.reordered(&[1, 0]).get(0, 1), relations.get(1, 0));
        assert_eq!(relations.get(0, 1), relations.get(1, 0).reversed());
        relations.get(0, 1)
    }

    #[test]
    fn a_rule_says_which_of_two_findings_of_one_time_is_the_cause() {
        let gc = |gain: f64, same| relation(of("gc-pauses", gain), of("hot-line", 50.0), same, 0.0);
        assert_eq!(gc(30.0, Some(true)), Relation::Explains);
        assert_eq!(gc(10.0, Some(true)), Relation::Explains);
        // A detail of it explains little of it, and is no rival either.
        assert_eq!(gc(9.0, Some(true)), Relation::Apart);
        assert_eq!(gc(30.0, Some(false)), Relation::Apart);
        assert_eq!((gc(25.0, None), gc(24.0, None)), (Relation::Explains, Relation::Apart));
        let back = relation(of("hot-line", 50.0), of("gc-pauses", 30.0), Some(true), 0.0);
        assert_eq!(back, Relation::Explained);
        assert_eq!(relation(of("hot-line", 50.0), of("gc-pauses", 26.0), None, 0.0), Relation::Explained);
    }

    /// No rule lists this pair: what the one changes is named in the step, what the other changes is all of it.
    #[test]
    fn what_is_named_in_the_step_explains_what_is_of_all_of_it() {
        let two = |unfused: Finding, same| relation(unfused, of("short-kernel-gaps", 40.0), same, 40.0);
        assert_eq!(two(of("unfused-elementwise", 30.0), Some(true)), Relation::Explains);
        assert_eq!(two(of("unfused-elementwise", 7.0), Some(true)), Relation::Rival);
        assert_eq!(two(of("unfused-elementwise", 30.0), None), Relation::Apart);
        let unsure =
            Finding { certainty: Certainty { fix: 0.5, ..Certainty::seen(0.9) }, ..of("unfused-elementwise", 30.0) };
        assert_eq!(two(unsure, Some(true)), Relation::Rival);
        let back = relation(of("short-kernel-gaps", 40.0), of("unfused-elementwise", 30.0), Some(true), 40.0);
        assert_eq!(back, Relation::Explained);
    }

    #[test]
    fn two_of_one_time_are_rivals_unless_they_name_one_function_or_one_is_inside_the_other() {
        let at = |code, line| {
            let mut one = of(code, 40.0);
            (one.place.api, one.place.line) = (Some("cudaLaunchKernel".into()), Some(line));
            one
        };
        let named = |function: &str| {
            let mut one = of("kernel-hotspot", 40.0);
            (one.place.file, one.place.function) = (Some("app.py".into()), Some(function.to_owned()));
            one
        };
        assert_eq!(relation(at("hot-line", 3), at("postprocess-tail", 8), Some(true), 0.0), Relation::Rival);
        assert_eq!(relation(named("a"), named("a"), Some(true), 0.0), Relation::Whole);
        let part = Finding { gain: Some(Gain::recorded(9.0, 9.0, 9.0)), ..named("a") };
        assert_eq!(relation(part, named("a"), Some(true), 0.0), Relation::Part);
        assert_eq!(relation(named("a"), named("b"), Some(true), 0.0), Relation::Rival);
        let inside = |part: f64| Recording { same_time: Some(true), everything: 0.0, covered: Some(part) };
        assert_eq!(both([named("a"), named("b")], inside(0.6)), Relation::Apart);
        assert_eq!(both([named("a"), named("b")], inside(0.4)), Relation::Rival);
        assert_eq!(relation(at("hot-line", 3), at("postprocess-tail", 8), None, 0.0), Relation::Apart);
        let nothing = finding("hot-line", None, Severity::Low);
        assert_eq!(relation(nothing, at("postprocess-tail", 8), Some(true), 0.0), Relation::Apart);
    }

    /// Each pair is a replay: those with little to gain are compared only where a rule asks for it.
    #[test]
    fn few_are_compared_with_each_other() {
        let mut many: Vec<Finding> = (0..MAX_COMPARED).map(|at| of("kernel-hotspot", 50.0 - at as f64)).collect();
        many.extend([of("host-wait", 4.0), of("gc-pauses", 3.0)]);
        let relations = Relations::of(&many, &Recording { same_time: Some(true), everything: 0.0, covered: None });
        assert_eq!(relations.get(0, MAX_COMPARED - 1), Relation::Rival);
        assert_eq!(relations.get(0, MAX_COMPARED), Relation::Apart);
        assert_eq!(relations.get(MAX_COMPARED + 1, MAX_COMPARED), Relation::Explains);
    }
}
