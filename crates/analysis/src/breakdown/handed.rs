//! Where a step's thread makes no call for long while another thread of its process makes many: it has handed over to that one and waits,
//! as a program does in `backward()` for autograd's thread. What that thread does then is what the step does.

use crate::spans::Spans;
use crate::windows::Window;
use timeline::{SliceKind, Timeline, TrackIndex};

/// Between two calls of its own a thread runs code that was not recorded for less than this.
const LEAST_NS: u64 = 500_000;
/// Fewer calls are no answer: a loader that copies now and then makes fewer.
const LEAST_CALLS: usize = 8;
/// Looked into: enough for any program that is not damaged.
const MOST_THREADS: usize = 256;

/// The stretches of a thread's windows that belong to others: by thread, then time.
pub fn find(timeline: &Timeline, track: TrackIndex, windows: &[Window]) -> Vec<Window> {
    let own = &timeline.tracks[track.0 as usize];
    let others: Vec<u32> = (0..timeline.tracks.len() as u32)
        .filter(|other| *other != track.0)
        .filter(|other| {
            let other = &timeline.tracks[*other as usize];
            other.process == own.process && other.slices.len() >= LEAST_CALLS
        })
        .take(MOST_THREADS)
        .collect();
    if others.is_empty() {
        return Vec::new();
    }
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else { return Vec::new() };
    let calls = own.slices.clone().filter(|index| {
        matches!(timeline.slices.kind(*index), SliceKind::Call | SliceKind::CCall | SliceKind::Gc | SliceKind::ApiCall)
    });
    let calls = calls.map(|index| (timeline.slices.start[index], timeline.slices.get(index).end()));
    let covered = Spans::union(calls.filter(|(start, end)| *end > first.start && *start < last.end).collect());
    let steps = Spans::union(windows.iter().map(|window| (window.start, window.end)).collect());
    let mut found = Vec::new();
    for (start, end) in steps.minus(&covered).all().iter().filter(|(start, end)| end - start >= LEAST_NS) {
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

#[cfg(test)]
mod tests {
    use crate::breakdown::PartKind;
    use crate::rule::Case;
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
        let breakdown = &Case::new(&timeline, None).breakdown;
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
}
