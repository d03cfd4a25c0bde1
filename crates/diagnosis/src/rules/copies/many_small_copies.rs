//! `many-small-copies`: a step copies many small pieces between host and device, one by one.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::gap;
use crate::measures::proof;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::{copies_exposed, pageable_async_copy};
use crate::rules::launch::{host_wait, launch_bound};
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::moved::{Copy, Moved};
use analysis::device::to_host::SMALL_BYTES;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use replay::Change;
use std::collections::HashSet;
use timeline::gpu::detail;
use timeline::{SliceKind, TrackIndex};

pub const CODE: RuleCode = RuleCode::new("many-small-copies");

pub struct ManySmallCopies;

const MIN_SHARE: Threshold = Threshold::new(CODE, "min_share", 0.03, Unit::Share, "merging copies is a small change");
const MIN_COPIES: Threshold =
    Threshold::new(CODE, "min_copies", 8.0, Unit::Count, "ids, positions, lengths and a mask are normal");

const SMALL_COPY: Threshold = Threshold::new(
    CODE,
    "small_bytes",
    SMALL_BYTES as f64,
    Unit::Bytes,
    "up to there a copy takes as long as it takes to start",
);

impl Rule for ManySmallCopies {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_COPIES]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[SMALL_COPY]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A step makes {min_copies} or more copies of up to {small_bytes} in one direction, which take {min_share} of it or more exposed.",
            why: "A small copy costs its start-up time, whatever its size: one merged copy takes hardly longer than one of the pieces. Counted are their exposed time and the time the GPU waited for the calls; the gain is all of that except one copy per step, plus the CPU time between their calls.",
            needs: "GPU copies.",
            example: "64 copies of 2.00 KiB to the GPU per step take 11 % of it",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[pageable_async_copy::CODE, copies_exposed::CODE, launch_bound::CODE, host_wait::CODE]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Memory)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Merge them on the host, in one pinned buffer, and copy once.",
            "Create on the GPU what can be created there: indices, masks, positions.",
        ]
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit { what: "merge the small tensors into one and copy that", whatif: Some("scale copy:h2d 0.1") })
    }

    fn look(&self, case: &Case) -> Verdict {
        let both = case.moved().iter().flat_map(|moved| [(moved, detail::H2D), (moved, detail::D2H)]);
        let found = both.filter_map(|(moved, direction)| look(case, moved, direction));
        let most = found.max_by(|a, b| a.0.mid.total_cmp(&b.0.mid));
        most.map_or(Verdict::Silent, |(_, finding)| finding.into())
    }
}

fn look(case: &Case, moved: &Moved, direction: u8) -> Option<(Share, Finding)> {
    let fits = |copy: &Copy| copy.is(direction) && copy.piece.bytes <= SMALL_BYTES;
    let those = || moved.all.iter().filter(|copy| fits(copy));
    let count = those().count() as f64;
    let each = count / case.steps.count().max(1) as f64;
    if each < case.threshold(MIN_COPIES) {
        return None;
    }
    // A copy call that the device waits for ends with its copy: from the end of the work before it on.
    let held = |copy: &Copy| {
        let launch = copy.piece.launch?;
        let slices = &case.timeline.slices;
        let in_call = copy.piece.start.min(slices.start[launch].saturating_add(slices.dur[launch]));
        Some(in_call.saturating_sub(slices.start[launch]))
    };
    let idle = case.idle().iter().find(|one| (one.process, one.ordinal) == (moved.process, moved.ordinal))?;
    let waits = idle.share(analysis::idle::Cause::Copy);
    let tally = moved.tally(|copy| fits(copy).then_some(copy.exposed_ns));
    let calls = moved.tally(|copy| fits(copy).then(|| held(copy).unwrap_or(0)));
    let calls = calls.mid().min(waits);
    let share = tally.measured();
    if share.mid + calls < case.threshold(MIN_SHARE) {
        return None;
    }
    // One copy of all of them stays.
    let saved = (each - 1.0) / each;
    let plus = |part: f64| ((part + calls) * saved).min(1.0);
    let gain = Share { low: plus(share.low), mid: plus(share.mid), high: plus(share.high) };
    let bytes: u64 = those().map(|copy| copy.piece.bytes).fold(0, u64::saturating_add);
    let to = if direction == detail::H2D { "to the GPU" } else { "to the host" };
    let mut title = format!(
        "{} copies of {} {to} per step take {} of it",
        gap::each(each),
        phrase::bytes((bytes as f64 / count) as u64),
        phrase::percent(share.mid + calls)
    );
    let first = those().next();
    let text = format!(
        "{} copies, {} of exposed time in total",
        phrase::count(count as u64),
        phrase::duration(tally.part as u64)
    );
    let mut evidence = vec![Evidence::new(text).number("ns", tally.part)];
    evidence.extend(first.map(|copy| Evidence::at("the first such copy", None, copy.piece.start, copy.piece.end())));
    let api = first.and_then(|copy| copy.piece.launch).map(|launch| case.timeline.slices.get(launch).name);
    let recorded = gain;
    let changes = [Change::Work(but_the_first(case, those()), 0.0), Change::Stretches(between(case, those()), 0.0)];
    let gain = case.gain(&changes, recorded);
    if gain.mid / 100.0 >= share.mid + calls + 0.02 {
        title += &format!(", {} including the CPU time between them", phrase::percent(gain.mid / 100.0));
    }
    let finding = Finding {
        code: CODE,
        title,
        place: Place { api: api.map(|api| case.timeline.names.text(api).to_owned()), ..Place::default() },
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(tally.repeats()),
        evidence,
        actions: vec![
            Action::torch(
                "Merge them on the host, copy once, and take views: torch.cat(parts).pin_memory().to(device, non_blocking=True).split(sizes).",
            ),
            Action::torch(
                "Create on the GPU what can be created there: torch.arange(n, device=\"cuda\"), masks, positions.",
            ),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    };
    Some((recorded, finding))
}

/// What the host does from one copy to the next, where it calls nothing else between: that is making them one by one.
fn between<'a>(case: &Case, copies: impl Iterator<Item = &'a Copy>) -> Vec<(TrackIndex, u64, u64)> {
    let slices = &case.timeline.slices;
    let chosen = |copy: &&Copy| case.chosen().is_some_and(|chosen| chosen.has(copy.piece.start));
    let mut calls: Vec<(usize, u32)> =
        copies.filter(chosen).filter_map(|copy| Some((copy.piece.launch?, copy.window))).collect();
    calls.sort_unstable();
    calls.dedup();
    let until_next = |place: usize| {
        let (a, window) = calls[place];
        let track = case.timeline.tracks.partition_point(|track| track.slices.end <= a);
        let rest = a + 1..case.timeline.tracks[track].slices.end;
        let next = rest.into_iter().find(|index| slices.kind(*index) == SliceKind::ApiCall)?;
        let is_copy = calls.get(place + 1) == Some(&(next, window));
        Some((window, is_copy, (TrackIndex(track as u32), slices.get(a).end(), slices.start[next])))
    };
    let all: Vec<_> = (0..calls.len()).filter_map(until_next).filter(|(_, _, one)| one.1 < one.2).collect();
    let mut stretches = Vec::new();
    for step in all.chunk_by(|a, b| a.0 == b.0) {
        let copying: u64 = step.iter().filter(|one| one.1).map(|one| one.2.2 - one.2.1).sum();
        stretches.extend(step.iter().filter(|one| one.1).map(|one| one.2));
        // Also from the last to what takes them up, unless that is longer than all of it: then it is something else.
        let last = step.last().filter(|one| !one.1 && one.2.2 - one.2.1 <= copying);
        stretches.extend(last.map(|one| one.2));
    }
    stretches
}

/// All but one of every step that is replayed.
fn but_the_first<'a>(case: &Case, copies: impl Iterator<Item = &'a Copy>) -> Vec<u32> {
    let mut seen = HashSet::new();
    let chosen = |copy: &&Copy| case.chosen().is_some_and(|chosen| chosen.has(copy.piece.start));
    let others = copies.filter(chosen).filter(|copy| !seen.insert(copy.window));
    others.map(|copy| copy.work).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(copies: u64, bytes: u64) -> String {
        let mut text = String::from("track main\n repeat 20 every 2ms\n step r 0..1ms\n stream 7\n");
        for number in 0..copies {
            let at = number * 10;
            text += &format!(
                "api cudaMemcpyAsync {at}us..{}us\n copy h2d {}us..{}us {bytes} pinned\n",
                at + 4,
                at + 5,
                at + 7
            );
        }
        text + "api cudaLaunchKernel 600us..605us\n kernel k 610us..990us\n api cudaStreamSynchronize 610us..995us\n end"
    }

    #[test]
    fn many_copies_one_by_one() {
        let found = found(&ManySmallCopies, &steps(32, 2048));
        assert_eq!(
            found[0].title,
            "32 copies of 2.00 KiB to the GPU per step take 19 % of it, 31 % including the CPU time between them"
        );
        let gain = found[0].gain.unwrap();
        // 31 of the copies, and 6 µs of host code from each call to the next.
        assert!((gain.mid - 31.0).abs() < 0.2 && gain.high >= gain.mid, "{gain:?}");
    }

    #[test]
    fn silent_with_few_copies_with_large_ones_and_without_a_gpu() {
        silent(&ManySmallCopies, &steps(4, 2048));
        silent(&ManySmallCopies, &steps(32, 1 << 20));
        silent(&ManySmallCopies, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
