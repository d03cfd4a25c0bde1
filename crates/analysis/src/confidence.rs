//! How sure a finding is: what its rule says, times how far the recording can be trusted for it, and for the first one how
//! likely it is that no other gains more. All of it comes from the data: steps that a replay does not explain, idle time that
//! nothing explains, records that were lost, gains whose ranges overlap.

use crate::finding::Finding;
use crate::idle::Cause;
use crate::rule::Case;
use crate::share::Share;

/// Where the steps could be replayed and did not come out as recorded, time is not where it seems to be.
const NOT_EXPLAINED: f64 = 0.7;

pub fn settle(case: &Case, findings: &mut [Finding]) {
    let (trust, replay) = (seen(case) * kept(case), explained(case));
    for finding in findings.iter_mut() {
        let Some(gain) = finding.gain else { continue };
        let by = if case.replayed(&gain) { replay } else { replay.max(NOT_EXPLAINED) };
        finding.confidence = (finding.confidence * trust * by).clamp(0.0, 1.0);
    }
    let Some((first, others)) = findings.split_first_mut() else { return };
    let Some(gain) = first.gain else { return };
    // The largest that speaks of another time.
    let other = others.iter().filter_map(|finding| finding.gain).find(|other| !case.same_time(&gain, other));
    if let Some(other) = other.filter(|other| other.mid < gain.mid) {
        first.confidence *= above(gain.share(), other.share());
    }
}

/// The part of the devices' idle time that has a cause.
fn seen(case: &Case) -> f64 {
    let unknown = case.idle().iter().map(|device| device.share(Cause::Unknown)).fold(0.0, f64::max);
    1.0 - unknown.min(1.0)
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
    match case.player() {
        Ok(player) if player.check().tells() => {
            let check = player.check();
            check.explained as f64 / check.steps.max(1) as f64
        }
        Ok(_) => NOT_EXPLAINED,
        // Nothing to replay: that says nothing against what was recorded.
        Err(_) => 1.0,
    }
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
}
