//! Why these are the steps, as codes and numbers: `diagnosis` has the sentences.

use super::sequence::Repeats;
use crate::origin::Outside;

#[derive(Clone, PartialEq, Debug)]
pub struct Reason {
    pub chosen: ChosenBy,
    /// The program marks nothing.
    pub unmarked: bool,
    /// What the steps hold of the recording. None: nothing was recorded that could lie outside.
    pub holds: Option<Holds>,
    /// [`super::Steps::runner_up`] is worth telling.
    pub has_rival: bool,
    /// Nothing was recorded inside the program, so that the whole recording is looked at.
    pub outside: Option<Outside>,
    /// No step lies in a recording window: parts of them are looked at.
    pub cut_by_windows: bool,
    pub outside_windows: Option<Excluded>,
    pub with_operators: Option<Excluded>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ChosenBy {
    /// By its name.
    Request(String),
    RequestedSequence(Repeats),
    /// Of so many kinds of steps, the one that explains most.
    KindOfStep(usize),
    EngineMarkers,
    /// `step()` of our package, or another's.
    StepMarkers {
        ours: bool,
    },
    Scope,
    Nvtx,
    /// Calls into an entry point of the program.
    Entry,
    /// From one such call to the next.
    Turn,
    Sequence(Repeats),
    /// Nothing stands for the program: the whole recording is looked at.
    Whole(Whole),
}

impl ChosenBy {
    pub fn is_step(&self) -> bool {
        matches!(self, ChosenBy::KindOfStep(_) | ChosenBy::EngineMarkers | ChosenBy::StepMarkers { .. })
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Whole {
    /// What repeats, and holds too little.
    pub little: Option<(String, Holds)>,
    /// Sequences of kernels were looked for.
    pub kernels: bool,
    /// The part that the thread has of all threads' running time, where that leaves a doubt.
    pub share: Option<f64>,
}

/// The parts of a recording that lie in something that repeats.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Holds {
    pub kernels: Option<f64>,
    pub running: Option<f64>,
    /// Of the threads' time.
    pub time: f64,
}

/// So many of the steps are in no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Excluded {
    pub count: u64,
    pub of: u64,
}

impl Reason {
    pub(super) fn new(chosen: ChosenBy) -> Reason {
        Reason {
            chosen,
            unmarked: false,
            holds: None,
            has_rival: false,
            outside: None,
            cut_by_windows: false,
            outside_windows: None,
            with_operators: None,
        }
    }
}
