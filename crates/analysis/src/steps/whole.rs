//! The recording as one window, where nothing repeats: on the busiest thread, without the start-up of the program.

use super::choose::MOST;
use super::reason::{ChosenBy, Holds, Reason, Whole};
use super::{Step, StepSource, Steps, busiest, startup};
use timeline::Timeline;

/// One window on the busiest thread. `little` repeats and explains too little.
pub fn whole(timeline: &Timeline, little: Option<(String, Holds)>) -> Steps {
    let busiest = busiest::find(timeline).filter(|_| timeline.duration() > 0);
    let window = busiest.as_ref().map(|busiest| Step {
        track: busiest.track,
        start: timeline.start,
        end: timeline.end,
        index: 0,
        warmup: false,
        outlier: false,
    });
    let imports = window.and_then(|step| startup::of_imports(timeline, step.track));
    let startup = imports.filter(|startup| startup.end < timeline.end);
    let share = busiest.as_ref().and_then(|busiest| busiest.share);
    let thread = busiest.map(|busiest| busiest.thread);
    // As steps have to: one thread of many stands for the program as far as it is what the program does.
    let confidence = share.map_or(1.0, |share| (share / MOST).min(1.0));
    let whole = Whole { little, kernels: !timeline.gpu.is_empty(), share: share.filter(|_| confidence < 1.0) };
    let reason = Reason::new(ChosenBy::Whole(whole));
    let after = |step: Step| Step { start: startup.map_or(step.start, |startup| startup.end), ..step };
    let steps = window.into_iter().map(after).collect();
    Steps { thread, startup, confidence, ..Steps::new("recording".into(), StepSource::Whole, reason, steps) }
}

#[cfg(test)]
mod tests {
    use crate::steps::reason::ChosenBy;
    use crate::steps::{StepSource, Steps};
    use timeline::Timeline;

    fn of(threads: u32) -> Steps {
        let text: String =
            (0..threads).map(|at| format!("track worker-{at}\n samples 0..1s every 10ms active f{at}:1\n")).collect();
        Steps::find(&Timeline::from_text(&format!("rate 100\n{text}")).unwrap(), None)
    }

    #[test]
    fn one_thread_of_many_stands_for_the_program_by_what_it_runs_of_it() {
        for (threads, confidence) in [(1, 1.0), (2, 1.0), (4, 0.5), (8, 0.25)] {
            let steps = of(threads);
            assert_eq!(steps.source, StepSource::Whole);
            assert!((steps.confidence - confidence).abs() < 0.01, "{threads}: {:?}", steps.reason);
            let ChosenBy::Whole(whole) = steps.reason.chosen else { panic!("{:?}", steps.reason) };
            assert_eq!(whole.share.is_some(), confidence < 1.0);
            assert!(whole.share.is_none_or(|share| (share * f64::from(threads) - 1.0).abs() < 0.1), "{whole:?}");
        }
    }

    #[test]
    fn where_nothing_was_seen_to_run_nothing_speaks_against_the_window() {
        let idle = Timeline::from_text("track main\n mark m 0ms\n end 1s").unwrap();
        assert_eq!(Steps::find(&idle, None).confidence, 1.0);
    }
}
