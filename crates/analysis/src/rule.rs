//! What a rule is, and the [`Case`] that it looks at: the timeline, its steps, and what everything inside them was doing.

use crate::advice::Outside;
use crate::blame::Blame;
use crate::breakdown::{Breakdown, PartKind};
use crate::finding::{Finding, Place};
use crate::frames::Frames;
use crate::full_queue::FullQueue;
use crate::gain::Gains;
use crate::gil;
use crate::gpu::{GpuMetrics, Parts, moved::Moved};
use crate::health;
use crate::idle::{self, DeviceIdle};
use crate::ops::Ops;
use crate::seen::{LEAST_SAMPLES, Seen, SeenSamples};
use crate::series::{Growth, Nature, Readings};
use crate::share::{Share, Tally};

use crate::step_kernels::StepKernels;
use crate::steps::{StepSource, Steps};
use crate::too_short::Handful;
use crate::windows::Windows;
use std::sync::OnceLock;
use timeline::{Sample, StackIndex, Timeline, TrackIndex, side_by_side};

/// A rule looks at a case and says what it found. It never looks at what other rules said.
pub trait Rule: Sync {
    /// Its name everywhere, in kebab case.
    fn code(&self) -> &'static str;
    fn docs(&self) -> RuleDocs;
    fn look(&self, case: &Case) -> Verdict;

    /// What it finds is as it should be: the title is made by [`crate::finding::healthy_title`], and nothing is to be fixed.
    fn finds_health(&self) -> bool {
        false
    }
}

/// The documentation of a rule, from which docs/rules.md is made.
#[derive(Clone, Copy, Debug)]
pub struct RuleDocs {
    /// One sentence: what it finds.
    pub summary: &'static str,
    /// Why it costs time, and how the data shows it.
    pub why: &'static str,
    /// What has to be recorded for it to look.
    pub needs: &'static str,
    /// What it says, as it says it.
    pub example: &'static str,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    Found(Vec<Finding>),
    Silent,
    /// It could not look: why.
    Abstain(String),
}

impl From<Finding> for Verdict {
    fn from(finding: Finding) -> Verdict {
        Verdict::Found(vec![finding])
    }
}

pub struct Case<'a> {
    pub timeline: &'a Timeline,
    pub steps: Steps,
    pub windows: Windows,
    pub frames: Frames,
    pub full_queue: FullQueue<'a>,
    pub readings: Readings<'a>,
    pub seen: SeenSamples,
    /// How long the steps' threads were ready but had no core. None: not recorded.
    pub run_queue: Option<Growth>,
    pub breakdown: Breakdown,
    blame: OnceLock<Blame>,
    gpu: OnceLock<Option<GpuMetrics>>,
    idle: OnceLock<Vec<DeviceIdle>>,
    moved: OnceLock<Vec<Moved>>,
    kernels: OnceLock<Vec<StepKernels>>,
    ops: OnceLock<Ops>,
    pub(crate) gains: Gains<'a>,
}

impl<'a> Case<'a> {
    pub fn new(timeline: &'a Timeline, step: Option<&str>) -> Case<'a> {
        let mut steps = Steps::find(timeline, step);
        if let Some(outside) = Outside::of(timeline).filter(|_| steps.source == StepSource::Whole && steps.count() > 0)
        {
            let thread = steps.thread.as_deref().unwrap_or_default();
            steps.why = format!("{}; this is the whole recording of {thread}", outside.why());
        }
        let windows = Windows::of_steps(&steps);
        let frames = Frames::new(timeline);
        let readings = Readings::new(timeline, &windows);
        let full_queue = FullQueue::new(timeline);
        let mut seen = SeenSamples::find(timeline, &windows, &frames, &full_queue);
        gil::settle(timeline, &windows, &frames, &readings, &mut seen);
        let run_queue = run_queue(timeline, &windows, &readings);
        let descheduled = run_queue.as_ref().map(|growth| growth.tally.part);
        let breakdown = Breakdown::new(timeline, &steps, &windows, &frames, &seen, &full_queue, descheduled);
        Case {
            timeline,
            steps,
            windows,
            frames,
            full_queue,
            readings,
            seen,
            run_queue,
            breakdown,
            blame: OnceLock::new(),
            gpu: OnceLock::new(),
            idle: OnceLock::new(),
            moved: OnceLock::new(),
            kernels: OnceLock::new(),
            ops: OnceLock::new(),
            gains: Gains::default(),
        }
    }

    /// The share of the steps' time in which a sample fits, from the samples inside the steps.
    pub fn share(&self, fits: impl Fn(&Seen) -> bool) -> (Share, Tally) {
        let mut tally = Tally::default();
        for stretch in self.seen.all.chunk_by(|a, b| a.window == b.window) {
            tally.add(stretch.iter().filter(|one| fits(one)).count() as f64, stretch.len() as f64);
        }
        (tally.sampled().scaled(self.coverage()), tally)
    }

    /// The part of the steps' time that samples stand for.
    pub fn coverage(&self) -> f64 {
        match self.windows.total() {
            0 => 0.0,
            total => 1.0 - self.seen.unseen_ns.min(total) as f64 / total as f64,
        }
    }

    /// Which frame to name for a sample.
    pub fn blame(&self) -> &Blame {
        self.blame.get_or_init(|| Blame::new(self))
    }

    /// What the devices did. None: no work of a device was recorded.
    pub fn gpu(&self) -> Option<&GpuMetrics> {
        self.gpu.get_or_init(|| self.look_at_devices()).as_ref()
    }

    /// Everything that goes over all device work, at the same time.
    fn look_at_devices(&self) -> Option<GpuMetrics> {
        let size = self.timeline.gpu.work.len();
        if size == 0 {
            return None;
        }
        let mut parts = Parts::default();
        side_by_side::run(size, parts.jobs(self.ground()), || _ = self.idle());
        let (metrics, moved) = parts.join(&self.ground());
        let _ = self.moved.set(moved);
        Some(metrics)
    }

    pub(crate) fn take_gpu(&mut self) -> Option<GpuMetrics> {
        self.gpu();
        self.gpu.take().flatten()
    }

    /// Why the devices were idle inside the steps.
    pub fn idle(&self) -> &[DeviceIdle] {
        self.idle.get_or_init(|| idle::measure(self))
    }

    pub(crate) fn take_idle(&mut self) -> Vec<DeviceIdle> {
        self.idle();
        self.idle.take().unwrap_or_default()
    }

    /// The copies inside the steps, by device.
    pub(crate) fn moved(&self) -> &[Moved] {
        // Found with what is measured of the devices.
        self.gpu();
        self.moved.get_or_init(Vec::new)
    }

    /// The kernels inside the steps, by device.
    pub(crate) fn kernels(&self) -> &[StepKernels] {
        self.kernels.get_or_init(|| StepKernels::find(self))
    }

    /// The operators inside the steps whose arguments say what they cost. Empty: none were recorded.
    pub(crate) fn ops(&self) -> &Ops {
        self.ops.get_or_init(|| Ops::find(self))
    }

    /// Whether a sample shows only that the program starts: without steps the recording begins with its imports, and no step has these.
    pub fn starts_up(&self, seen: &Seen) -> bool {
        self.steps.source == StepSource::Whole && self.frames.imports(self.sample(seen).stack)
    }

    /// The part of a recording without steps in which modules are imported, where it is worth a word: as a share, and the time of it.
    pub fn imports(&self) -> Option<(Share, u64)> {
        let (share, _) = self.share(|one| self.starts_up(one));
        let enough = self.without_samples().is_none() && share.mid >= WORTH_A_WORD;
        enough.then(|| (share, (share.mid * self.windows.total() as f64) as u64))
    }

    pub fn sample(&self, seen: &Seen) -> Sample {
        self.timeline.samples.get(seen.sample as usize)
    }

    pub fn track(&self, seen: &Seen) -> TrackIndex {
        self.windows.all()[seen.window as usize].track
    }

    /// The function and the line being executed of a frame.
    pub fn place(&self, frame: StackIndex) -> Place {
        self.ground().place(frame)
    }

    /// How the step is called in a sentence: "the step", "a request".
    pub fn the_step(&self) -> &'static str {
        if self.steps.source == StepSource::Whole { "the recording" } else { "the step" }
    }

    /// All of them, after "in" or "inside".
    pub fn the_steps(&self) -> &'static str {
        if self.steps.source == StepSource::Whole { "the recording" } else { "the steps" }
    }

    /// Their time, after "of".
    pub fn steps_time(&self) -> &'static str {
        if self.steps.source == StepSource::Whole { "the recording" } else { "the steps' time" }
    }

    /// Whether the breakdown stands on more than a few samples: they are enough, or recorded calls took their place.
    pub fn breakdown_tells(&self) -> bool {
        // Waits for a device are measured: where they are most of the step, no sample is needed to say so.
        let measured = self.breakdown.share(PartKind::Gpu) > 0.5;
        self.breakdown.by_calls || measured || self.without_samples().is_none()
    }

    /// The samples, where they are too few to say anything by them.
    pub fn handful(&self) -> Option<Handful> {
        Handful::of(self)
    }

    /// Why a rule that lives on samples cannot look, where it cannot.
    pub fn without_samples(&self) -> Option<String> {
        if let Some(handful) = self.handful() {
            return Some(handful.said(self));
        }
        match self.seen.all.len() {
            _ if self.timeline.samples.is_empty() => {
                Some(not_recorded(self.timeline, "stacks", "stacks were not sampled"))
            }
            0 => Some(format!("no stack was sampled inside {}", self.the_steps())),
            few if few < LEAST_SAMPLES => {
                Some(format!("only {} sampled inside {}; {LEAST_SAMPLES} are the least", were(few), self.the_steps()))
            }
            _ if self.coverage() < 0.5 => {
                let seen = crate::phrase::percent(self.coverage());
                Some(format!("samples stand for only {seen} of {}", self.steps_time()))
            }
            _ => None,
        }
    }
}

/// Less changes no other share by as much as it is unsure.
const WORTH_A_WORD: f64 = 0.05;

pub fn were(stacks: usize) -> String {
    if stacks == 1 { "1 stack was".into() } else { format!("{stacks} stacks were") }
}

/// Why a collector has nothing, in its own words where it left any.
pub fn not_recorded(timeline: &Timeline, collector: &str, plain: &str) -> String {
    if collector == "stacks" && health::samples_damaged(timeline) {
        return "the sampled stacks cannot be read, their file is damaged".into();
    }
    let mut states = timeline.processes.iter().flat_map(|process| &process.collectors);
    let reason = states.find(|state| state.name == collector && state.state != "on" && !state.reason.is_empty());
    match reason {
        Some(state) => format!("{plain}: {}", state.reason),
        None => plain.to_owned(),
    }
}

/// Waiting for a core happens only to a thread that is ready to run, and samples say when it was: growth between two
/// readings falls into the steps as the active samples do.
pub(crate) fn run_queue(timeline: &Timeline, windows: &Windows, readings: &Readings) -> Option<Growth> {
    let mut sum: Option<Growth> = None;
    for (track, _) in windows.tracks() {
        let Some(counter) = readings.thread(track, "runqueue_wait_ns") else { continue };
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
