//! The steps: the requests, batches or iterations whose latency everything else is a part of. Which slices they are is
//! decided in `choose`, which of them stand for steady work in `steady`.

mod busiest;
mod called;
mod choose;
pub mod chosen;
pub mod groups;
mod periods;
mod recorded;
mod sequence;
pub mod spans;
mod steady;
pub mod windows;

use crate::stats::percentile;
use timeline::{Timeline, TrackIndex};

#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    pub name: String,
    pub source: StepSource,
    /// One sentence: why these.
    pub why: String,
    /// By start.
    pub steps: Vec<Step>,
    /// Steps that lie wholly outside the windows in which the GPU was recorded, by start: what the program does without us. In no
    /// number; they have no place in `steps`, and their index means nothing.
    pub apart: Vec<Step>,
    /// Begun but never ended: known of, and in no number.
    pub unfinished: u64,
    /// A name was asked for and is not there.
    pub not_found: Option<String>,
    /// That these are steps: 1 where they are marked, less where they were recognised.
    pub confidence: f64,
    /// Where the whole recording is looked at: which thread that is, as it follows "of" in a sentence.
    pub thread: Option<String>,
    /// Durations of the steps that count, shortest first.
    sorted: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepSource {
    /// The program marked its steps.
    Step,
    /// A scope that repeats.
    Scope,
    /// An NVTX range that repeats.
    Nvtx,
    /// The periods of a sequence of kernels that repeats.
    Sequence,
    /// Nothing repeats: the whole recording is one window.
    Whole,
}

impl StepSource {
    pub fn name(self) -> &'static str {
        match self {
            StepSource::Step => "step",
            StepSource::Scope => "scope",
            StepSource::Nvtx => "nvtx",
            StepSource::Sequence => "kernel_sequence",
            StepSource::Whole => "whole",
        }
    }

    /// Whether the program says where its steps are: then one is open in all the time that is looked at.
    pub fn is_marked(self) -> bool {
        matches!(self, StepSource::Step | StepSource::Scope | StepSource::Nvtx)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub track: TrackIndex,
    pub start: u64,
    pub end: u64,
    /// Its place in [`Steps::steps`].
    pub index: u32,
    /// One of the first of its process, and slow as only those are. Not part of any number.
    pub warmup: bool,
    /// Far longer than the others. Part of every number: a tail is real.
    pub outlier: bool,
}

impl Step {
    pub fn dur(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

impl Steps {
    pub fn find(timeline: &Timeline, wanted: Option<&str>) -> Steps {
        let mut steps = choose::choose(timeline, wanted);
        recorded::keep(timeline, &mut steps);
        steps.steps.sort_by_key(|step| (step.start, step.track, step.end));
        for (index, step) in steps.steps.iter_mut().enumerate() {
            step.index = index as u32;
        }
        if steps.source != StepSource::Whole {
            steady::mark(timeline, &mut steps.steps);
            steps.apart.sort_by_key(|step| (step.start, step.track, step.end));
            steady::mark(timeline, &mut steps.apart);
        }
        steps.sorted = steps.measured().map(Step::dur).collect();
        steps.sorted.sort_unstable();
        steps
    }

    /// The steps that numbers are made of: all but the warm-up.
    pub fn measured(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !step.warmup)
    }

    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    pub fn warmups(&self) -> usize {
        self.steps.len() - self.sorted.len()
    }

    /// The smallest recorded duration that `percent` of the steps do not exceed.
    pub fn percentile(&self, percent: usize) -> u64 {
        percentile(&self.sorted, percent)
    }

    pub fn p50(&self) -> u64 {
        self.percentile(50)
    }

    pub fn p99(&self) -> u64 {
        self.percentile(99)
    }

    pub fn min(&self) -> u64 {
        self.sorted.first().copied().unwrap_or(0)
    }

    pub fn max(&self) -> u64 {
        self.sorted.last().copied().unwrap_or(0)
    }

    pub fn total(&self) -> u64 {
        self.sorted.iter().fold(0, |sum, dur| sum.saturating_add(*dur))
    }

    pub fn mean(&self) -> u64 {
        self.total().checked_div(self.sorted.len() as u64).unwrap_or(0)
    }

    /// What to call one of them: the recorded name, in words that fit a sentence.
    pub fn noun(&self) -> String {
        match self.source {
            StepSource::Whole => "the recording".into(),
            _ => self.name.clone(),
        }
    }
}
