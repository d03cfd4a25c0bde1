//! How sure a finding is, from the data alone. Its rule says how often the recording shows it and how surely it takes the time that the rule looks
//! for (`measures::confidence`). On top comes how far the recording can be trusted for it: steps that a replay does not explain, idle time that nothing explains,
//! records that were lost; where only bounds of its gain are known, how likely it is worth a change; and for the one that is said to be the cause how likely it is
//! that no other gains more. Each of these is a factor from 0 to 1 that only grows with better data.

use crate::finding::Finding;
use crate::rule::Case;
use crate::telling::{LEAST, most_telling};
use analysis::idle::{Cause, DeviceIdle};
use analysis::stats::share::Share;
use replay::gain::{Gain, GainBy};

/// The findings as sure as the recording allows; what is said to be the cause besides as sure as that no other gains more.
pub fn settled(case: &Case, findings: Vec<Finding>) -> Vec<Finding> {
    let findings = trusted(case, findings);
    let Some(telling) = most_telling(case, &findings) else { return findings };
    let place = findings.iter().position(|finding| std::ptr::eq(finding, telling)).unwrap_or(0);
    let confidence = of_cause(case, &findings[place], &findings[place + 1..]);
    let settle = |(at, finding)| if at == place { Finding { confidence, ..finding } } else { finding };
    findings.into_iter().enumerate().map(settle).collect()
}

/// As sure as the recording can be trusted for them.
fn trusted(case: &Case, findings: Vec<Finding>) -> Vec<Finding> {
    let (trust, replay, recorded) = (seen(case) * kept(case), explained(case), reproduced(case));
    let one = |finding: Finding| {
        let Some(gain) = finding.gain else { return finding };
        let by = if case.replayed(&gain) { replay } else { recorded };
        let confidence = (finding.confidence * trust * by * worth(&gain)).clamp(0.0, 1.0);
        Finding { confidence, ..finding }
    };
    findings.into_iter().map(one).collect()
}

/// How sure it is that this one is the cause, of those that are ranked behind it.
fn of_cause(case: &Case, cause: &Finding, others: &[Finding]) -> f64 {
    let confidence = cause.confidence * examined(case, cause.gain);
    let Some(gain) = cause.gain else { return confidence };
    // The largest that speaks of another time.
    let other =
        others.iter().filter_map(|finding| finding.gain).find(|other| case.same_time(&gain, other) != Some(true));
    match other.filter(|other| other.mid < gain.mid) {
        Some(other) => confidence * above(gain.share(), other.share()),
        None => confidence,
    }
}

/// How likely a gain is worth a change. Where its bounds alone are known, half of the chance lies below its middle and half above, evenly. What was replayed or
/// recorded is there, however small it is.
fn worth(gain: &Gain) -> f64 {
    let part = |from: f64, to: f64| match to > from {
        true => ((to - LEAST) / (to - from)).clamp(0.0, 1.0),
        false => f64::from(u8::from(to >= LEAST)),
    };
    match gain.by {
        GainBy::Replay | GainBy::Recorded => 1.0,
        GainBy::Bounded | GainBy::Prior => (part(gain.low, gain.mid) + part(gain.mid, gain.high)) / 2.0,
    }
}

/// The part of the devices' idle time that has a cause.
fn seen(case: &Case) -> f64 {
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
fn kept(case: &Case) -> f64 {
    let of_device = |loss: &&timeline::Loss| ["gpu", "launches"].contains(&loss.collector.as_str());
    let lost: u64 = case.timeline.losses.iter().filter(of_device).map(|loss| loss.count).fold(0, u64::saturating_add);
    let work = case.timeline.gpu.work.len() as f64;
    if lost == 0 { 1.0 } else { work / (work + lost as f64) }
}

/// The part of the replayed steps that came out as recorded.
fn explained(case: &Case) -> f64 {
    // Nothing to replay: that says nothing against what was recorded.
    case.player().map_or(1.0, |player| player.check().explained as f64 / player.check().steps.max(1) as f64)
}

/// The part of the mean step that a replay accounts for: what it misses is not where it seems to be.
fn reproduced(case: &Case) -> f64 {
    let missed = case.player().map_or(0.0, |player| player.check().off);
    explained(case).max(1.0 - missed.min(1.0))
}

/// How likely the one is larger than the other, by their ranges.
fn above(one: Share, other: Share) -> f64 {
    let (half, room) = ((one.mid - other.mid) / 2.0, |share: Share| (share.high - share.low) / 2.0);
    let error = room(one).hypot(room(other));
    Share { low: half - error / 2.0, mid: half, high: half + error / 2.0 }.surely_above(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let bounded = |most: f64| worth(&Gain::up_to(most));
        assert_eq!(bounded(2.0), 0.0);
        assert!((bounded(6.0) - 0.5).abs() < 1e-9 && bounded(6.0) < bounded(20.0) && bounded(20.0) < bounded(80.0));
        let prior = |low, mid, high| worth(&Gain { by: GainBy::Prior, ..Gain::recorded(low, mid, high) });
        assert!(prior(0.0, 5.0, 90.0) < prior(0.0, 60.0, 90.0) && prior(0.0, 60.0, 90.0) < prior(10.0, 60.0, 90.0));
        assert_eq!((prior(10.0, 60.0, 90.0), worth(&Gain::recorded(0.0, 1.0, 2.0))), (1.0, 1.0));
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
