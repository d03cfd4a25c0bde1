//! The steps: the requests, batches or iterations whose latency everything else is a part of. Which slices they are is
//! decided in `choose` by what they explain (`score`), which of them stand for steady work in `steady`.

mod busiest;
mod called;
mod candidates;
mod choose;
pub mod chosen;
mod collect;
mod evidence;
pub mod groups;
mod held;
mod kinds;
mod library;
mod looked;
mod periods;
mod reading;
pub mod reason;
mod recorded;
mod score;
mod sequence;
pub mod spans;
pub mod startup;
pub mod steady;
mod turns;
mod whole;
pub mod windows;

pub use busiest::BusiestThread;
pub use candidates::is_request;
pub use sequence::{NAME as KERNEL_SEQUENCE, Repeats};

use crate::stats::percentile;
use reason::{Holds, Reason};
use startup::Startup;
use timeline::{Timeline, TrackIndex};

#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    pub name: String,
    pub source: StepSource,
    /// Why these.
    pub reason: Reason,
    /// By start.
    pub steps: Vec<Step>,
    /// Steps that lie wholly outside the windows in which the GPU was recorded, by start: what the program does without us. In no
    /// number; they have no place in `steps`, and their index means nothing.
    pub apart: Vec<Step>,
    /// Steps in which operators were recorded, which took longer for it, by start. In no number, as those above.
    pub looked_at: Vec<Step>,
    /// Begun but never ended: known of, and in no number.
    pub unfinished: u64,
    /// A name was asked for and is not there.
    pub not_found: Option<String>,
    /// That these are the steps that stand for the program, 0 to 1: less than 1 where they explain little of the recording, and where
    /// they were recognised rather than marked.
    pub confidence: f64,
    /// The part of the recorded kernels and of their threads' running time that lies in them. None: neither was recorded, or a name
    /// was asked for.
    pub share: Option<f64>,
    /// The next best reading of the recording.
    pub runner_up: Option<RunnerUp>,
    /// Marks that explain almost nothing, and were not used.
    pub passed_over: Option<PassedOver>,
    /// Other kinds of steps with a notable share, the largest first. In no number of these.
    pub kinds: Vec<StepKind>,
    /// What comes before the first steady step, or is left out of a recording without steps.
    pub startup: Option<Startup>,
    /// Where the whole recording is looked at: which thread that is.
    pub thread: Option<BusiestThread>,
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
    /// Calls into an entry point of the program: a model, a request handler.
    Entry,
    /// The turns of the loop around such calls.
    Turn,
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
            StepSource::Entry => "entry",
            StepSource::Turn => "loop",
            StepSource::Sequence => "kernel_sequence",
            StepSource::Whole => "whole",
        }
    }

    /// Whether the program says where its steps are: then one is open in all the time that is looked at.
    pub fn is_marked(self) -> bool {
        matches!(self, StepSource::Step | StepSource::Scope | StepSource::Nvtx | StepSource::Entry)
    }
}

/// What would have been the steps otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct RunnerUp {
    pub name: String,
    pub source: StepSource,
    pub count: u64,
    pub share: f64,
    pub differs: Differs,
}

/// How another reading of a recording cuts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Differs {
    /// It lies inside of something that repeats.
    Part,
    More,
    Fewer,
    /// As many, with other begins and ends.
    Borders,
}

impl Differs {
    pub fn name(self) -> &'static str {
        match self {
            Differs::Part => "part",
            Differs::More => "more",
            Differs::Fewer => "fewer",
            Differs::Borders => "borders",
        }
    }
}

/// Marks that hold too little of the recording to be its steps.
#[derive(Clone, PartialEq, Debug)]
pub struct PassedOver {
    pub name: String,
    pub source: StepSource,
    pub count: u64,
    pub share: f64,
    pub holds: Holds,
}

/// Another kind of steps.
#[derive(Clone, PartialEq, Debug)]
pub struct StepKind {
    pub name: String,
    pub count: u64,
    pub share: f64,
    pub p50_ns: u64,
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
    fn new(name: String, source: StepSource, reason: Reason, steps: Vec<Step>) -> Steps {
        Steps {
            name,
            source,
            reason,
            steps,
            apart: Vec::new(),
            unfinished: 0,
            not_found: None,
            confidence: 1.0,
            looked_at: Vec::new(),
            share: None,
            runner_up: None,
            passed_over: None,
            kinds: Vec::new(),
            startup: None,
            thread: None,
            sorted: Vec::new(),
        }
    }

    pub fn find(timeline: &Timeline, wanted: Option<&str>) -> Steps {
        let mut steps = choose::choose(timeline, wanted);
        recorded::keep(timeline, &mut steps);
        looked::set_apart(timeline, &mut steps);
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
        steps.startup = steps.startup.or_else(|| startup::before(timeline, &steps));
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
