//! Where a step's thread makes no call for long while another thread of its process makes many: it has handed over to that one and waits,
//! as a program does in `backward()` for autograd's thread. What that thread does then is what the step does.

use crate::steps::spans::Spans;
use crate::steps::windows::{StepSpans, Window};
use timeline::{SliceKind, Timeline, TrackIndex};

/// Between two calls of its own a thread runs code that was not recorded for less than this.
const LEAST_NS: u64 = 500_000;
/// Fewer calls are no answer: a loader that copies now and then makes fewer.
const LEAST_CALLS: usize = 8;
/// Looked into: enough for any program that is not damaged.
const MOST_THREADS: usize = 256;
/// Of what a thread does in the steps, less than a part in so many while the steps' own thread makes calls: it works for them.
const FEW: u128 = 5;

/// The stretches of a thread's steps that belong to others: by thread, then time. A thread that has steps of its own works for those,
/// and one that is as busy while the steps' thread makes calls works for itself.
pub fn find(timeline: &Timeline, windows: &StepSpans, track: TrackIndex) -> Vec<Window> {
    let own = &timeline.tracks[track.0 as usize];
    let with_steps: Vec<TrackIndex> = windows.tracks().map(|(track, _)| track).collect();
    let others: Vec<u32> = (0..timeline.tracks.len() as u32)
        .filter(|other| *other != track.0 && with_steps.binary_search(&TrackIndex(*other)).is_err())
        .filter(|other| {
            let other = &timeline.tracks[*other as usize];
            other.process == own.process && other.slices.len() >= LEAST_CALLS
        })
        .take(MOST_THREADS)
        .collect();
    let steps = windows.all().iter().filter(|window| window.track == track);
    let steps = Spans::union(steps.map(|window| (window.start, window.end)).collect());
    let Some(ends) = steps.ends().filter(|_| !others.is_empty()) else { return Vec::new() };
    let silent = steps.minus(&calls(timeline, track, ends));
    let long = silent.all().iter().filter(|(start, end)| end - start >= LEAST_NS);
    let silent = Spans::union(long.copied().collect());
    if silent.all().is_empty() {
        return Vec::new();
    }
    let others: Vec<u32> = others
        .into_iter()
        .filter(|other| works_for(&calls(timeline, TrackIndex(*other), ends), &steps, &silent))
        .collect();
    let mut found = Vec::new();
    for (start, end) in silent.all() {
        let made = |other: &u32| {
            let starts = &timeline.slices.start[timeline.tracks[*other as usize].slices.clone()];
            starts.partition_point(|one| one < end) - starts.partition_point(|one| one < start)
        };
        let most =
            others.iter().map(|other| (made(other), *other)).max_by_key(|(made, other)| (*made, u32::MAX - other));
        if let Some((_, other)) = most.filter(|(made, _)| *made >= LEAST_CALLS) {
            found.push(Window { track: TrackIndex(other), start: *start, end: *end, step: 0 });
        }
    }
    found.sort_by_key(|window| (window.track, window.start));
    found
}

/// When a thread makes calls.
fn calls(timeline: &Timeline, track: TrackIndex, (first, last): (u64, u64)) -> Spans {
    let calls = timeline.tracks[track.0 as usize].slices.clone().filter(|index| {
        matches!(timeline.slices.kind(*index), SliceKind::Call | SliceKind::CCall | SliceKind::Gc | SliceKind::ApiCall)
    });
    let calls = calls.map(|index| (timeline.slices.start[index], timeline.slices.get(index).end()));
    Spans::union(calls.filter(|(start, end)| *end > first && *start < last).collect())
}

/// Most of what the other thread does in the steps falls into their silences, and not only because they are silent for most of the time.
fn works_for(calls: &Spans, steps: &Spans, silent: &Spans) -> bool {
    let inside = |spans: &Spans| -> u128 { calls.all().iter().map(|(a, b)| u128::from(spans.overlap(*a, *b))).sum() };
    let length = |spans: &Spans| -> u128 { spans.all().iter().map(|(a, b)| u128::from(b - a)).sum() };
    let (done, meanwhile) = (inside(steps), inside(silent));
    let (besides, active) = (done - meanwhile, length(steps) - length(silent));
    let share = FEW.saturating_mul(besides) <= done;
    share && FEW.saturating_mul(besides).saturating_mul(length(silent)) <= meanwhile.saturating_mul(active)
}

#[cfg(test)]
mod tests {
    use crate::host::StepContext;
    use crate::host::breakdown::PartKind;
    use timeline::Timeline;

    /// The other thread makes `calls` calls of 1 ms in the 40 ms for which the step's own thread makes none.
    fn seen(calls: u64, step: &str) -> (f64, f64) {
        let mut text = format!(
            "track main\n {step}\n ccall aten::linear 0..10ms\n ccall aten::item 50ms..100ms\n track autograd\n"
        );
        for number in 0..calls {
            text += &format!(" ccall aten::mm {}ms..{}ms\n", 10 + number, 11 + number);
        }
        let timeline = Timeline::from_text(&text).unwrap();
        let breakdown = &StepContext::new(&timeline, None).breakdown;
        (breakdown.share(PartKind::Native), breakdown.share(PartKind::Unknown))
    }

    #[test]
    fn what_the_thread_does_that_it_waits_for_is_what_the_step_does() {
        let near = |(native, unknown): (f64, f64), expected: (f64, f64)| {
            (native - expected.0).abs() < 1e-9 && (unknown - expected.1).abs() < 1e-9
        };
        assert!(near(seen(30, "step r 0..100ms"), (0.9, 0.1)));
        // Too few calls to be an answer; and a recording without steps is of one thread.
        assert!(near(seen(5, "step r 0..100ms"), (0.6, 0.4)));
        assert!(near(seen(30, "mark m 100ms"), (0.3, 0.7)));
    }

    /// Of a step of 100 ms whose own thread makes calls in the first part of it, and of another thread that does.
    fn native(active: u64, other: &str) -> f64 {
        let text = format!("track main\n step r 0..100ms\n ccall aten::linear 0..{active}ms\n track other\n{other}");
        let timeline = Timeline::from_text(&text).unwrap();
        StepContext::new(&timeline, None).breakdown.share(PartKind::Native)
    }

    #[test]
    fn a_thread_that_works_for_itself_is_not_the_step() {
        let calls =
            |from: u64| (from..100).map(|at| format!(" ccall aten::normal_ {at}ms..{at}900us\n")).collect::<String>();
        assert!(native(20, &calls(20)) > 0.9);
        // Always busy, also where the step's thread is silent for nearly all of the time; and busy with steps of its own.
        assert!(native(20, &calls(0)) < 0.21);
        assert!(native(5, &calls(0)) < 0.06);
        let with_steps = format!(" step r 0..100ms\n{}", calls(20));
        assert!((native(20, &with_steps) - 0.46).abs() < 0.01);
    }
}
