//! How sure a finding is, from the data alone, factor by factor ([`Certainty`]). Its rule says how often the recording shows it and how surely it takes the
//! time that the rule looks for (`measures::confidence`). Here comes how far the recording can be trusted for it (steps that a replay does not explain, idle time that
//! nothing explains, records that were lost), what else explains the same time, whether the fix applies and is worth it, and whether the steps are the
//! program's. Each only grows with better data.

use crate::certainty::Certainty;
use crate::finding::Finding;
use crate::leading::{MIN_GAIN, leading};
use crate::relation::{Relation, Relations};
use crate::rule::Case;
use crate::rules;
use analysis::idle::{Cause, DeviceIdle};
use analysis::stats::share::Share;
use replay::gain::{Gain, GainBy};
use timeline::CollectorCode;

/// The findings as sure as the recording allows, each by itself: seen, fix and steps.
pub fn limited_by_recording(case: &Case, findings: Vec<Finding>) -> Vec<Finding> {
    let (trust, replay, recorded) =
        (explained_idle(case) * recorded_part(case), replayed_steps(case), reproduced(case));
    let steps = case.steps.confidence;
    let one = |finding: Finding| {
        let known = finding.certainty;
        let Some(gain) = finding.gain else {
            // What is said of the recording is true whatever its steps are; a share of the steps is not.
            let is_of_recording = rules::family(finding.code).is_some_and(|family| family.is_of_recording);
            let steps = if is_of_recording { 1.0 } else { steps };
            return Finding { certainty: Certainty { steps, ..known }, ..finding };
        };
        let by = if case.replayed(&gain) { replay } else { recorded };
        // A fix does what it promises if it can be made at all, and if that is worth it.
        let applies = finding.actions.first().map_or(1.0, |action| action.applies());
        let certainty =
            Certainty { seen: known.seen * trust * by, fix: applies * chance_to_be_worth_it(&gain), steps, ..known };
        Finding { certainty, ..finding }
    };
    findings.into_iter().map(one).collect()
}

/// The findings, each as sure to be the cause of its time as its rivals leave it.
pub fn among_rivals(findings: Vec<Finding>, relations: &Relations) -> Vec<Finding> {
    let doubts: Vec<f64> = (0..findings.len()).map(|at| doubt(&findings, relations, at)).collect();
    let one = |(finding, doubt): (Finding, f64)| {
        let certainty = Certainty { cause: finding.certainty.cause * (1.0 - doubt), ..finding.certainty };
        Finding { certainty, ..finding }
    };
    findings.into_iter().zip(doubts).map(one).collect()
}

/// How likely something else is the cause of its time: by the rival that takes most of it. A rival is believed as far as it was seen and can be fixed.
fn doubt(findings: &[Finding], relations: &Relations, at: usize) -> f64 {
    let believed = |finding: &Finding| finding.certainty.seen * finding.certainty.fix;
    let (own, gain) = (believed(&findings[at]), findings[at].expected_gain().unwrap_or(0.0));
    let by = |(other, rival): (usize, &Finding)| {
        let (belief, others) = (believed(rival), rival.expected_gain().unwrap_or(0.0));
        // The part of its time that the other would take as well.
        let shared = if gain > 0.0 { (others / gain).min(1.0) } else { 0.0 };
        match relations.get(at, other) {
            Relation::Explained => shared * belief,
            Relation::Rival if own + belief > 0.0 => shared * belief / (own + belief),
            Relation::Rival | Relation::Explains | Relation::Whole | Relation::Part | Relation::Apart => 0.0,
        }
    };
    findings.iter().enumerate().filter(|(other, _)| *other != at).map(by).fold(0.0, f64::max).min(1.0)
}

/// What is said to be the cause besides as sure as that no other gains more. The findings are in their order.
pub fn settled(case: &Case, findings: Vec<Finding>, relations: &Relations) -> Vec<Finding> {
    // A condition of the user holds or does not, whatever takes the time.
    let ours = |finding: &&Finding| rules::find(finding.code).is_some();
    let Some(leading) = leading(case, &findings).filter(ours) else { return findings };
    let place = findings.iter().position(|finding| std::ptr::eq(finding, leading)).unwrap_or(0);
    // The largest that speaks of another time.
    let apart = |other: &usize| relations.get(place, *other) == Relation::Apart;
    let others = (place + 1..findings.len()).filter(apart).filter_map(|other| findings[other].gain);
    let most = is_most(case, &findings[place], others);
    let settle = |(at, finding): (usize, Finding)| match at == place {
        true => {
            let certainty = Certainty { cause: finding.certainty.cause * most, ..finding.certainty };
            Finding { certainty, ..finding }
        }
        false => finding,
    };
    findings.into_iter().enumerate().map(settle).collect()
}

/// How sure it is that this one gains the most, of those that are ranked behind it.
fn is_most(case: &Case, cause: &Finding, mut others: impl Iterator<Item = Gain>) -> f64 {
    let examined = examined(case, cause.gain);
    let Some(gain) = cause.gain else { return examined };
    let other = others.find(|other| case.same_time(&gain, other) != Some(true));
    match other.filter(|other| other.mid < gain.mid) {
        Some(other) => examined * above(gain.share(), other.share()),
        None => examined,
    }
}

/// How likely a gain is worth a change. Where its bounds alone are known, half of the chance lies below its middle and half above, evenly. What was replayed or
/// recorded is there, however small it is.
fn chance_to_be_worth_it(gain: &Gain) -> f64 {
    let part = |from: f64, to: f64| match to > from {
        true => ((to - MIN_GAIN) / (to - from)).clamp(0.0, 1.0),
        false => f64::from(u8::from(to >= MIN_GAIN)),
    };
    match gain.by {
        GainBy::Replay | GainBy::Recorded => 1.0,
        GainBy::Bounded | GainBy::Prior => (part(gain.low, gain.mid) + part(gain.mid, gain.high)) / 2.0,
    }
}

/// The part of the devices' idle time that has a cause.
fn explained_idle(case: &Case) -> f64 {
    let unknown = case.idle().iter().map(|device| device.share(Cause::Unknown)).fold(0.0, f64::max);
    1.0 - unknown.min(1.0)
}

/// How likely the first finding is the most to gain where a handful of samples is all that tells what the host does while a device is idle: the
/// rules that would blame it have said nothing, and that time may be worth more.
fn examined(case: &Case, gain: Option<Gain>) -> f64 {
    if case.breakdown.by_calls || case.without_samples().is_none() {
        return 1.0;
    }
    let sampled = [Cause::Python, Cause::Native, Cause::Waiting, Cause::Gil];
    let unexamined = |device: &DeviceIdle| sampled.iter().map(|cause| device.share(*cause)).sum::<f64>();
    let unexamined = case.idle().iter().map(unexamined).fold(0.0, f64::max).min(1.0);
    let gain = gain.map_or(0.0, |gain| gain.share().mid);
    (1.0 - unexamined).max(gain / (gain + unexamined).max(f64::MIN_POSITIVE))
}

/// The part of the devices' work and launches that was not lost.
fn recorded_part(case: &Case) -> f64 {
    let of_device =
        |loss: &&timeline::Loss| loss.collector == CollectorCode::Gpu || loss.collector == CollectorCode::Launches;
    let lost: u64 = case.timeline.losses.iter().filter(of_device).map(|loss| loss.count).fold(0, u64::saturating_add);
    let work = case.timeline.gpu.work.len() as f64;
    if lost == 0 { 1.0 } else { work / (work + lost as f64) }
}

/// The part of the replayed steps that came out as recorded.
fn replayed_steps(case: &Case) -> f64 {
    // Nothing to replay: that says nothing against what was recorded.
    case.player().map_or(1.0, |player| player.check().explained as f64 / player.check().steps.max(1) as f64)
}

/// The part of the mean step that a replay accounts for: what it misses is not where it seems to be.
fn reproduced(case: &Case) -> f64 {
    let missed = case.player().map_or(0.0, |player| player.check().off);
    replayed_steps(case).max(1.0 - missed.min(1.0))
}

/// How likely the one is larger than the other, by their ranges.
fn above(one: Share, other: Share) -> f64 {
    let (half, width) = ((one.mid - other.mid) / 2.0, |share: Share| (share.high - share.low) / 2.0);
    let error = width(one).hypot(width(other));
    Share { low: half - error / 2.0, mid: half, high: half + error / 2.0 }.surely_above(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, Precondition};
    use crate::finding::Severity;
    use crate::relation::Changes;
    use crate::testing::finding;

    fn of(code: &'static str, gain: f64, seen: f64) -> Finding {
        let one = finding(code, Some(Gain::recorded(gain, gain, gain)), Severity::Medium);
        Finding { certainty: Certainty::seen(seen), ..one }
    }

    /// All of the same time, and none of everything.
    struct OneTime;

    impl Changes for OneTime {
        fn same_time(&self, _: &Gain, _: &Gain) -> Option<bool> {
            Some(true)
        }

        fn covered(&self, _: &Gain, _: &Gain) -> Option<f64> {
            None
        }

        fn is_of_everything(&self, _: &Gain) -> bool {
            false
        }
    }

    #[track_caller]
    fn causes(findings: Vec<Finding>) -> Vec<f64> {
        let relations = Relations::of(&findings, &OneTime);
        among_rivals(findings, &relations).iter().map(|one| (one.certainty.cause * 1e3).round() / 1e3).collect()
    }

    /// `host-wait` and `kernel-hotspot` explain neither each other nor are they explained.
    #[test]
    fn a_rival_for_the_same_time_leaves_doubt_by_what_it_takes_of_it_and_how_far_it_is_believed() {
        assert_eq!(causes(vec![of("host-wait", 40.0, 0.9), of("kernel-hotspot", 40.0, 0.9)]), [0.5, 0.5]);
        assert_eq!(causes(vec![of("host-wait", 40.0, 0.9), of("kernel-hotspot", 10.0, 0.9)]), [0.875, 0.5]);
        assert_eq!(causes(vec![of("host-wait", 40.0, 0.9), of("kernel-hotspot", 40.0, 0.3)]), [0.75, 0.25]);
        // The strongest rival counts: what it takes away is not taken twice.
        let three =
            vec![of("host-wait", 40.0, 0.9), of("kernel-hotspot", 10.0, 0.9), of("postprocess-tail", 20.0, 0.9)];
        assert_eq!(causes(three)[0], 0.75);
        assert_eq!(causes(vec![of("host-wait", 40.0, 0.9)]), [1.0]);
        let nothing = vec![of("host-wait", 0.0, 0.9), of("kernel-hotspot", 40.0, 0.0)];
        assert_eq!(causes(nothing), [1.0, 1.0]);
    }

    #[test]
    fn what_is_explained_is_the_cause_as_far_as_its_explanation_is_not_believed() {
        assert_eq!(causes(vec![of("gc-pauses", 40.0, 0.9), of("hot-line", 40.0, 0.8)]), [1.0, 0.1]);
        assert_eq!(causes(vec![of("gc-pauses", 20.0, 0.5), of("hot-line", 40.0, 0.8)]), [1.0, 0.75]);
    }

    const STEPS: &str = "track main\n repeat 20 every 50ms\n step request 0..40ms\n end";

    #[test]
    fn fix_and_steps_come_from_the_actions_and_from_how_the_steps_were_found() {
        let timeline = timeline::Timeline::from_text(STEPS).unwrap();
        let case = Case::new(&timeline, None);
        let unknown = || Precondition::Unknown("it fits".into());
        let act = |needs: Vec<Precondition>| {
            let one = of("host-wait", 40.0, 0.9);
            let actions = vec![Action::new("Do it.").needs(needs), Action::new("Or that.")];
            limited_by_recording(&case, vec![Finding { actions, ..one }])[0].certainty
        };
        let steps = case.steps.confidence;
        assert_eq!(act(Vec::new()), Certainty { steps, ..Certainty::seen(0.9) });
        assert_eq!((act(vec![unknown()]).fix, act(vec![unknown(), unknown()]).fix), (0.5, 0.25));
        // What is said of the recording itself is true whatever its steps are; what sets the pace is said of them.
        let without = |code| limited_by_recording(&case, vec![finding(code, None, Severity::Info)])[0].certainty;
        assert_eq!(without("dropped-records").steps, 1.0);
        assert_eq!(without("compute-bound").steps, steps);
        let bounded = Finding { gain: Some(Gain::up_to(6.0)), ..of("host-wait", 6.0, 0.9) };
        assert!((limited_by_recording(&case, vec![bounded])[0].certainty.fix - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ranges_that_overlap_leave_doubt() {
        let share = |low, mid, high| Share { low, mid, high };
        assert_eq!(above(Share::exactly(0.4), Share::exactly(0.1)), 1.0);
        assert!(above(share(0.35, 0.4, 0.45), share(0.05, 0.1, 0.15)) > 0.99);
        let close = above(share(0.1, 0.31, 0.5), share(0.1, 0.3, 0.5));
        assert!((0.5..0.6).contains(&close), "{close}");
    }

    #[test]
    fn bounds_that_reach_down_to_nothing_leave_doubt_and_less_of_it_the_more_there_is() {
        let bounded = |most: f64| chance_to_be_worth_it(&Gain::up_to(most));
        assert_eq!(bounded(2.0), 0.0);
        assert!((bounded(6.0) - 0.5).abs() < 1e-9 && bounded(6.0) < bounded(20.0) && bounded(20.0) < bounded(80.0));
        let prior =
            |low, mid, high| chance_to_be_worth_it(&Gain { by: GainBy::Prior, ..Gain::recorded(low, mid, high) });
        assert!(prior(0.0, 5.0, 90.0) < prior(0.0, 60.0, 90.0) && prior(0.0, 60.0, 90.0) < prior(10.0, 60.0, 90.0));
        assert_eq!((prior(10.0, 60.0, 90.0), chance_to_be_worth_it(&Gain::recorded(0.0, 1.0, 2.0))), (1.0, 1.0));
    }

    #[test]
    fn a_cause_is_as_sure_as_it_is_likely_to_gain_more_than_the_next() {
        let timeline = timeline::Timeline::from_text(STEPS).unwrap();
        let case = Case::new(&timeline, None);
        let cause =
            |low, mid, high| Finding { gain: Some(Gain::recorded(low, mid, high)), ..of("host-wait", 40.0, 0.9) };
        let sure = |others: &[Gain]| is_most(&case, &cause(20.0, 40.0, 60.0), others.iter().copied());
        let (near, far) = (sure(&[Gain::recorded(19.0, 39.0, 59.0)]), sure(&[Gain::recorded(4.0, 5.0, 6.0)]));
        assert!(near > 0.45 && near < 0.6 && far > 0.95 && far <= 1.0, "{near} {far}");
        assert_eq!((sure(&[]), sure(&[Gain::recorded(30.0, 50.0, 70.0)])), (1.0, 1.0));
    }

    #[test]
    fn records_of_a_device_that_were_lost_leave_doubt_by_their_part() {
        let recorded_part = |lost: &str| {
            let text = format!(
                "{lost}\n{STEPS}\n api cudaLaunchKernel 0..1ms\n stream 7\n repeat 3 every 1ms\n kernel k 1ms..1.5ms\n end"
            );
            recorded_part(&Case::new(&timeline::Timeline::from_text(&text).unwrap(), None))
        };
        assert_eq!((recorded_part(""), recorded_part("loss stacks 9 overwritten")), (1.0, 1.0));
        assert_eq!(recorded_part("loss gpu 1 overwritten"), 0.75);
    }

    #[test]
    fn time_of_which_a_handful_of_samples_tells_may_be_worth_more() {
        let text = |every: &str| {
            format!(
                "track main\n repeat 10 every 30ms\n step request 0..20ms\n samples 0..15ms every {every} active gil main>prepare:4\n \
                 api cudaLaunchKernel 15ms..15.1ms\n stream 7\n kernel k 15.1ms..20ms\n api cudaStreamSynchronize 15.2ms..20ms\n end"
            )
        };
        let of = |every: &str, gain: Option<Gain>| {
            let timeline = timeline::Timeline::from_text(&text(every)).unwrap();
            examined(&Case::new(&timeline, None), gain)
        };
        let small = Some(Gain::recorded(8.0, 10.0, 12.0));
        assert_eq!(of("1ms", small), 1.0);
        assert!(
            of("16ms", small) < 0.4 && of("16ms", None) < 0.4,
            "three quarters of the step were looked at ten times"
        );
        assert!(of("16ms", Some(Gain::recorded(70.0, 75.0, 80.0))) > of("16ms", small));
    }
}
