//! Start-up: what a program does before its first steady step, or, where nothing repeats, while it imports its modules. A part of
//! its own, and in no share of steady work.

use super::{StepSource, Steps};
use crate::frames::Frames;
use timeline::{Timeline, TrackIndex};

/// Less of a recording is not worth a word.
const NOTABLE: f64 = 0.05;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Startup {
    pub start: u64,
    pub end: u64,
    /// The part of it in which modules are imported. None: no stacks.
    pub imports_ns: Option<u64>,
}

impl Startup {
    pub fn dur(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it is worth a word.
    pub fn is_notable(&self, timeline: &Timeline) -> bool {
        self.dur() as f64 >= NOTABLE * timeline.duration() as f64
    }

    /// The part of it in which modules are imported, where that is worth a word.
    pub fn notable_imports_ns(&self) -> Option<u64> {
        self.imports_ns.filter(|ns| *ns as f64 >= NOTABLE * self.dur() as f64)
    }
}

/// What comes before the first steady step, in the process that has it.
pub fn before(timeline: &Timeline, steps: &Steps) -> Option<Startup> {
    let first = steps.measured().min_by_key(|step| step.start).filter(|_| steps.source != StepSource::Whole)?;
    let process = timeline.tracks[first.track.0 as usize].process;
    let began = timeline.processes[process.0 as usize].started_ns.unwrap_or(timeline.start);
    let (start, end) = (began.clamp(timeline.start, first.start), first.start);
    let imports_ns = imports(timeline, main(timeline, first.track), start, end);
    Some(Startup { start, end, imports_ns }).filter(|startup| startup.dur() > 0)
}

/// The imports that a recording begins with: up to the moment by which most has been importing modules, and after which most is not.
pub fn of_imports(timeline: &Timeline, track: TrackIndex) -> Option<Startup> {
    let samples = timeline.tracks[main(timeline, track).0 as usize].samples.clone();
    let frames = Frames::new(timeline);
    let (mut excess, mut most, mut end) = (0i64, 0, timeline.start);
    for index in samples.clone() {
        excess += if frames.imports(timeline.samples.get(index).stack) { 1 } else { -1 };
        if excess > most {
            let next = samples.contains(&(index + 1)).then(|| timeline.samples.time[index + 1]);
            (most, end) = (excess, next.unwrap_or(timeline.end));
        }
    }
    let start = timeline.start;
    let startup = Startup { start, end, imports_ns: imports(timeline, main(timeline, track), start, end) };
    Some(startup).filter(|one| !timeline.info.attached && one.is_notable(timeline))
}

/// The main thread of the same process.
fn main(timeline: &Timeline, track: TrackIndex) -> TrackIndex {
    let process = timeline.tracks[track.0 as usize].process;
    let first = timeline.tracks.iter().position(|track| track.process == process);
    first.map_or(track, |first| TrackIndex(first as u32))
}

fn imports(timeline: &Timeline, track: TrackIndex, start: u64, end: u64) -> Option<u64> {
    let samples = timeline.tracks[track.0 as usize].samples.clone();
    let times = &timeline.samples.time[samples.clone()];
    let place = |time: u64| samples.start + times.partition_point(|at| *at < time);
    let (from, to) = (place(start), place(end));
    if from >= to {
        return None;
    }
    let frames = Frames::new(timeline);
    let importing = (from..to).filter(|index| frames.imports(timeline.samples.get(*index).stack)).count();
    Some((importing as u128 * u128::from(end - start) / (to - from) as u128) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMPORT: &str = "_find_and_load@/usr/lib/python3.12/importlib/_bootstrap.py:9";

    fn find(text: &str) -> Steps {
        Steps::find(&Timeline::from_text(text).unwrap_or_else(|error| panic!("{error}")), None)
    }

    #[test]
    fn imports_at_the_beginning_are_no_part_of_a_recording_without_steps() {
        let text = format!(
            "end 1s\n track main\n samples 0..200ms every 10ms active gil main:1>{IMPORT}\n samples 200ms..220ms every 10ms active gil main:2\n \
             samples 220ms..300ms every 10ms active gil main:3>{IMPORT}\n samples 300ms..1s every 10ms active gil main:4>work:7\n \
             samples 700ms..720ms every 5ms active gil main:4>{IMPORT}"
        );
        let steps = find(&text);
        let startup = steps.startup.unwrap();
        assert_eq!((startup.start, startup.end), (0, 300_000_000));
        assert_eq!(startup.imports_ns, Some(280_000_000), "two of thirty samples are no imports");
        assert_eq!(
            (steps.source, steps.steps[0].start, steps.steps[0].end),
            (StepSource::Whole, 300_000_000, 1_000_000_000)
        );
    }

    #[test]
    fn the_main_thread_imports_for_the_others() {
        let text = format!(
            "end 1s\n track main\n samples 0..300ms every 10ms active gil main:1>{IMPORT}\n samples 300ms..1s every 10ms main:5\n \
             track worker\n samples 300ms..1s every 10ms active gil work:3"
        );
        let steps = find(&text);
        assert_eq!((steps.steps[0].track, steps.steps[0].start), (TrackIndex(1), 300_000_000), "{:?}", steps.reason);
    }

    #[test]
    fn without_imports_or_with_few_a_recording_is_whole() {
        let few = format!(
            "end 1s\n track main\n samples 0..40ms every 10ms active gil main:1>{IMPORT}\n samples 40ms..1s every 10ms active gil main:4>work:7"
        );
        let attached = format!(
            "attached\n end 1s\n track main\n samples 0..400ms every 10ms active gil main:1>{IMPORT}\n samples 400ms..1s every 10ms active gil work:7"
        );
        for text in [few, attached] {
            let steps = find(&text);
            assert_eq!((steps.startup, steps.steps[0].start), (None, 0), "{text}");
        }
        let nothing_else = find(&format!("end 1s\n track main\n samples 0..1s every 10ms active gil main:1>{IMPORT}"));
        assert_eq!(nothing_else.steps[0].start, 0, "nothing would be left");
    }

    #[test]
    fn start_up_ends_with_the_first_steady_step_of_its_process() {
        let text = format!(
            "end 3s\n process first of 1\n track main\n process second of 1\n track main\n samples 0..500ms every 10ms active gil main:1>{IMPORT}\n \
             samples 500ms..1s every 10ms active gil main:2>load:7\n step s 1s..1500ms\n repeat 12 every 100ms\n step s 1600ms..1650ms\n end"
        );
        let steps = find(&text);
        assert_eq!((steps.warmups(), steps.count()), (1, 12));
        let startup = steps.startup.unwrap();
        assert_eq!((startup.start, startup.end), (0, 1_600_000_000), "with the warm-up");
        assert_eq!((startup.imports_ns, startup.notable_imports_ns()), (Some(800_000_000), Some(800_000_000)));
        assert_eq!(Startup { imports_ns: Some(1000), ..startup }.notable_imports_ns(), None);
        let at_once = find("end 1s\n track main\n repeat 10 every 100ms\n step s 0..90ms\n end");
        assert_eq!(at_once.startup, None);
    }
}
