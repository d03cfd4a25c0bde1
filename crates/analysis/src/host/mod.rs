//! What the host did in the steps: which samples lie in them, where their time went, and what threads waited for.

pub mod blame;
pub mod breakdown;
pub mod full_queue;
pub mod gil;
pub mod layers;
pub mod model_calls;
pub mod series;
pub mod step_samples;
pub mod waits;

use crate::frames::Frames;
use crate::origin::Outside;
use crate::place::Place;
use crate::stats::share::{Share, Tally};
use crate::steps::windows::StepSpans;
use crate::steps::{StepSource, Steps};
use blame::Blame;
use breakdown::Breakdown;
use full_queue::FullQueue;
use series::{Growth, Nature, Readings};
use std::sync::OnceLock;
use step_samples::{StepSample, StepSamples};
use timeline::{Sample, StackIndex, Timeline, TrackIndex, counters};

/// The steps of a recording, and what their threads did in them.
pub struct StepContext<'a> {
    pub timeline: &'a Timeline,
    pub steps: Steps,
    pub windows: StepSpans,
    pub frames: Frames,
    pub full_queue: FullQueue<'a>,
    pub readings: Readings<'a>,
    pub samples: StepSamples,
    /// How long the steps' threads were ready but had no core. None: not recorded.
    pub run_queue: Option<Growth>,
    pub breakdown: Breakdown,
    blame: OnceLock<Blame>,
}

impl<'a> StepContext<'a> {
    pub fn new(timeline: &'a Timeline, step: Option<&str>) -> StepContext<'a> {
        let mut steps = Steps::find(timeline, step);
        if let Some(outside) = Outside::of(timeline).filter(|_| steps.source == StepSource::Whole && steps.count() > 0)
        {
            steps.reason.outside = Some(outside);
        }
        let windows = StepSpans::of_steps(&steps);
        let frames = Frames::new(timeline);
        let readings = Readings::new(timeline, &windows);
        let full_queue = FullQueue::new(timeline);
        let mut samples = StepSamples::find(timeline, &windows, &frames, &full_queue);
        gil::settle(timeline, &windows, &frames, &readings, &mut samples);
        let run_queue = run_queue(timeline, &windows, &readings);
        let descheduled = run_queue.as_ref().map(|growth| growth.tally.part);
        let breakdown = Breakdown::new(timeline, &steps, &windows, &frames, &samples, &full_queue, descheduled);
        StepContext {
            timeline,
            steps,
            windows,
            frames,
            full_queue,
            readings,
            samples,
            run_queue,
            breakdown,
            blame: OnceLock::new(),
        }
    }

    /// The share of the steps' time in which a sample fits, from the samples inside the steps.
    pub fn share(&self, fits: impl Fn(&StepSample) -> bool) -> (Share, Tally) {
        let mut tally = Tally::default();
        for stretch in self.samples.all.chunk_by(|a, b| a.window == b.window) {
            tally.add(stretch.iter().filter(|one| fits(one)).count() as f64, stretch.len() as f64);
        }
        (tally.sampled().scaled(self.coverage()), tally)
    }

    /// The part of the steps' time that samples stand for.
    pub fn coverage(&self) -> f64 {
        match self.windows.total() {
            0 => 0.0,
            total => 1.0 - self.samples.unseen_ns.min(total) as f64 / total as f64,
        }
    }

    /// Which frame to name for a sample.
    pub fn blame(&self) -> &Blame {
        self.blame.get_or_init(|| Blame::new(self))
    }

    /// Whether a sample shows only that the program starts: without steps the recording begins with its imports, and no step has these.
    pub fn starts_up(&self, seen: &StepSample) -> bool {
        self.steps.source == StepSource::Whole && self.frames.imports(self.sample(seen).stack)
    }

    pub fn sample(&self, seen: &StepSample) -> Sample {
        self.timeline.samples.get(seen.sample as usize)
    }

    pub fn track(&self, seen: &StepSample) -> TrackIndex {
        self.windows.all()[seen.window as usize].track
    }

    /// The function and the line being executed of a frame.
    pub fn place(&self, frame: StackIndex) -> Place {
        place_of(self.timeline, frame)
    }

    /// How the step is called in a sentence: "the step", "a request".
    pub fn the_step(&self) -> &'static str {
        self.said("the step")
    }

    /// All of them, after "in" or "inside".
    pub fn the_steps(&self) -> &'static str {
        self.said("the steps")
    }

    /// Their time, after "of".
    pub fn steps_time(&self) -> &'static str {
        self.said("the steps' time")
    }

    fn said(&self, steps: &'static str) -> &'static str {
        match (self.steps.source, self.steps.startup) {
            (StepSource::Whole, None) => "the recording",
            (StepSource::Whole, Some(_)) => "the recording after start-up",
            _ => steps,
        }
    }
}

/// The function and the line being executed of a frame.
pub fn place_of(timeline: &Timeline, frame: StackIndex) -> Place {
    let frame = timeline.stacks.frame(frame);
    let name = timeline.names.get(frame.name);
    Place {
        file: Some(name.file.to_string()).filter(|file| !file.is_empty()),
        line: Some(frame.line).filter(|line| *line > 0),
        function: Some(name.text.to_string()),
        ..Place::default()
    }
}

/// Waiting for a core happens only to a thread that is ready to run, and samples say when it was: growth between two
/// readings falls into the steps as the active samples do.
pub fn run_queue(timeline: &Timeline, windows: &StepSpans, readings: &Readings) -> Option<Growth> {
    let mut sum: Option<Growth> = None;
    for (track, _) in windows.tracks() {
        let Some(counter) = readings.thread(track, counters::RUNQUEUE_WAIT_NS) else { continue };
        let range = timeline.tracks[track.0 as usize].samples.clone();
        let times = &timeline.samples.time[range.clone()];
        let weight = |start: u64, end: u64| {
            let from = range.start + times.partition_point(|time| *time < start);
            let to = range.start + times.partition_point(|time| *time < end);
            let active = || (from..to).filter(|index| timeline.samples.get(*index).active);
            let inside = active().filter(|index| windows.at(track, timeline.samples.time[*index]).is_some()).count();
            let all = active().count();
            (all > 0).then(|| inside as f64 / all as f64)
        };
        if let Some(growth) = readings.inside(counter, windows, track, &Nature::Time(&weight)) {
            match &mut sum {
                Some(sum) => sum.join(&growth),
                None => sum = Some(growth),
            }
        }
    }
    sum
}
