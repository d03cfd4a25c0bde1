//! With an overhead budget the GPU is recorded in windows. A step that lies outside of them has no GPU work in the trace, which
//! is not the same as an idle GPU: such steps are set apart.

use super::reason::Excluded;
use super::{Step, StepSource, Steps};
use std::collections::HashMap;
use std::ops::Range;
use timeline::{ProcessIndex, RecordingWindow, Timeline};

/// Leaves the steps that lie in the windows, and hands on those that lie outside. Those of processes without windows all lie in them.
pub fn keep(timeline: &Timeline, steps: &mut Steps) {
    let windows = windows(timeline);
    if windows.is_empty() {
        return;
    }
    let of = |step: &Step| windows.get(&timeline.tracks[step.track.0 as usize].process);
    let parts = |step: &Step| match of(step) {
        Some(windows) => windows.iter().filter_map(|window| within(step, window)).collect(),
        None => vec![*step],
    };
    if steps.source == StepSource::Whole {
        steps.steps = steps.steps.iter().flat_map(parts).collect();
        return;
    }
    let all = steps.steps.len();
    let inside = |step: &Step, window: &Range<u64>| window.start <= step.start && step.end <= window.end;
    let kept: Vec<Step> = (steps.steps.iter())
        .filter(|step| of(step).is_none_or(|windows| windows.iter().any(|window| inside(step, window))))
        .copied()
        .collect();
    if kept.is_empty() && all > 0 {
        // Steps that are longer than the windows. Their unrecorded parts would look like an idle GPU.
        steps.reason.cut_by_windows = true;
        (steps.name, steps.source) = ("recording".into(), StepSource::Whole);
        steps.steps = steps.steps.iter().flat_map(parts).collect();
        return;
    }
    let outside = |step: &Step, window: &Range<u64>| step.end <= window.start || window.end <= step.start;
    // Steps that are recognised by their kernels cannot be where no kernel is recorded: what looks like one there is a pause.
    let seen_without = steps.source != StepSource::Sequence;
    steps.apart = (steps.steps.iter())
        .filter(|step| {
            seen_without && of(step).is_some_and(|windows| windows.iter().all(|window| outside(step, window)))
        })
        .copied()
        .collect();
    if kept.len() < all {
        steps.reason.outside_windows = Some(Excluded { count: (all - kept.len()) as u64, of: all as u64 });
    }
    steps.steps = kept;
}

/// The part of a step that lies in a window.
fn within(step: &Step, window: &Range<u64>) -> Option<Step> {
    let (start, end) = (step.start.max(window.start), step.end.min(window.end));
    (start < end).then_some(Step { start, end, ..*step })
}

/// When each process that has windows was recorded.
fn windows(timeline: &Timeline) -> HashMap<ProcessIndex, Vec<Range<u64>>> {
    let mut turns: HashMap<ProcessIndex, Vec<(u64, bool)>> = HashMap::new();
    for track in &timeline.tracks {
        for at in track.slices.clone() {
            if let Some(window) = timeline.slices.recording_window(at) {
                let on = window == RecordingWindow::On;
                turns.entry(track.process).or_default().push((timeline.slices.start[at], on));
            }
        }
    }
    turns.into_iter().map(|(process, turns)| (process, between(turns))).collect()
}

/// What is before the first turn is the opposite of it.
fn between(mut turns: Vec<(u64, bool)>) -> Vec<Range<u64>> {
    turns.sort_unstable();
    let mut windows = Vec::new();
    let mut since = turns.first().filter(|(_, on)| !on).map(|_| 0);
    for (time, on) in turns {
        match (since, on) {
            (None, true) => since = Some(time),
            (Some(start), false) => {
                windows.push(start..time);
                since = None;
            }
            _ => {}
        }
    }
    windows.extend(since.map(|start| start..u64::MAX));
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "
        end 60ms
        track main
        step request 0..10ms
        step request 10ms..20ms
        step request 20ms..30ms
        step request 30ms..40ms
        step request 40ms..50ms
        step request 50ms..60ms
        track inferscope-gpu
        window on 9ms
        window off 31ms
        window on 39ms
        window off 45ms";

    fn steps(text: &str) -> Steps {
        Steps::find(&Timeline::from_text(text).unwrap(), None)
    }

    #[test]
    fn steps_outside_the_windows_are_set_apart() {
        let found = steps(RUN);
        let starts: Vec<u64> = found.steps.iter().map(|step| step.start / 1_000_000).collect();
        assert_eq!(starts, [10, 20]);
        assert_eq!(found.reason.outside_windows, Some(Excluded { count: 4, of: 6 }));
        // Those that a window cuts are neither.
        assert_eq!(found.apart.iter().map(|step| step.start / 1_000_000).collect::<Vec<_>>(), [50]);
    }

    #[test]
    fn of_steps_that_are_longer_than_every_window_only_the_recorded_parts_count() {
        let text: String = RUN.lines().filter(|line| !line.contains("step")).map(|line| format!("{line}\n")).collect();
        let text = text.replace("track main", "track main\n step request 0..28ms\n step request 28ms..60ms");
        let found = steps(&text);
        let parts: Vec<(u64, u64)> = found.steps.iter().map(|s| (s.start / 1_000_000, s.end / 1_000_000)).collect();
        assert_eq!((found.source, &parts[..]), (StepSource::Whole, &[(9, 28), (28, 31), (39, 45)][..]));
        assert!(found.reason.cut_by_windows, "{:?}", found.reason);
    }

    #[test]
    fn without_windows_all_steps_count() {
        let text: String =
            RUN.lines().filter(|line| !line.contains("window")).map(|line| format!("{line}\n")).collect();
        let found = steps(&text);
        assert_eq!((found.steps.len(), found.apart.len()), (6, 0));
    }

    #[test]
    fn a_recording_without_steps_is_its_windows() {
        let text: String = RUN.lines().filter(|line| !line.contains("step")).map(|line| format!("{line}\n")).collect();
        let found = steps(&text);
        let parts: Vec<(u64, u64)> = found.steps.iter().map(|s| (s.start / 1_000_000, s.end / 1_000_000)).collect();
        assert_eq!(parts, [(9, 31), (39, 45)]);
    }

    #[test]
    fn one_that_begins_recorded_is_recorded_before_its_first_turn() {
        assert_eq!(between(vec![(7, false), (9, true)]), [0..7, 9..u64::MAX]);
        assert_eq!(between(vec![(7, true), (8, true), (9, false), (10, false)]), vec![Range { start: 7, end: 9 }]);
    }
}
