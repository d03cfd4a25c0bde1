//! The `Timeline`: everything a trace holds, in columns, on one clock. All times are `CLOCK_MONOTONIC` nanoseconds;
//! `start` is the moment that reports call zero.

use crate::cuda_calls::CudaCall;
use crate::gpu::Gpu;
use crate::ids::ProcessIndex;
use crate::memory::Memory;
use crate::names::{NameIndex, Names};
use crate::recorded_by::RecordedBy;
use crate::slices::Slices;
use crate::stacks::{StackIndex, Stacks};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use trace::codes::{CollectorCode, Condition, EnginePhase, LossReason, Note, Spelled};
use trace::tables::SliceKind;

#[derive(Debug, Default)]
pub struct Timeline {
    pub info: Info,
    pub start: u64,
    pub end: u64,
    pub processes: Vec<Process>,
    /// One per thread, ordered by process; the main thread first.
    pub tracks: Vec<Track>,
    pub names: Names,
    pub slices: Slices,
    pub samples: Samples,
    pub stacks: Stacks,
    pub counters: Vec<Counter>,
    pub gpu: Gpu,
    /// What frameworks' allocators did.
    pub memory: Memory,
    pub losses: Vec<Loss>,
    /// What is missing, and why.
    pub notes: Vec<Note>,
}

impl Timeline {
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The notes as sentences.
    pub fn notes_said(&self) -> Vec<String> {
        self.notes.iter().map(Note::said).collect()
    }

    /// What a slice does as a CUDA call, by its name.
    pub fn call(&self, slice: usize) -> CudaCall {
        self.names.call(NameIndex(self.slices.name[slice]))
    }

    /// What a serving engine does in a step, where its own marker says so. However a program names its own steps, it says nothing here.
    pub fn engine_phase(&self, slice: usize) -> Option<EnginePhase> {
        let is_step = self.slices.kind(slice) == SliceKind::Step;
        self.names.phase(NameIndex(self.slices.name[slice])).filter(|_| is_step)
    }

    pub fn process(&self, track: &Track) -> &Process {
        &self.processes[track.process.0 as usize]
    }

    pub fn tracks_of(&self, process: ProcessIndex) -> impl Iterator<Item = &Track> {
        self.tracks.iter().filter(move |track| track.process == process)
    }
}

/// What the manifest says of the recording as a whole.
#[derive(Clone, Debug, Default)]
pub struct Info {
    pub state: State,
    pub version: String,
    pub created_unix_ns: u64,
    /// When recording began, as the recorder says it.
    pub started_ns: Option<u64>,
    pub command: String,
    /// A number that tells whether the arguments of two recordings of one machine differ. Empty: not recorded.
    pub arguments: String,
    pub exit: Option<Exit>,
    pub clock: Clock,
    pub host: Host,
    pub settings: Settings,
    /// The process ran before it was recorded: nothing in it is from inside.
    pub attached: bool,
    pub recorded_by: RecordedBy,
    /// Versions of libraries and settings of the profiler, as a file of another tool names them; of ours, the CUPTI library in use.
    pub software: BTreeMap<String, String>,
    /// Files of a trace of ours that could not be read, or not to their end.
    pub damaged: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// The recorder had not finished: it is still at work, or was killed.
    Recording,
    Complete,
    /// The recorder was killed, and a later command saved what it had left.
    Recovered,
    /// A file of which only the beginning could be read: how many events that has. None: some of several files are so.
    Cut {
        events: Option<u64>,
    },
    #[default]
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

#[derive(Clone, Debug, Default)]
pub struct Clock {
    pub source: String,
    pub unix_minus_mono_ns: i64,
    /// The error bar of every time in the trace.
    pub residual_ns: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Host {
    pub hostname: String,
    pub kernel: String,
    pub cpu_model: String,
    pub cpu_count: Option<u64>,
    pub numa_nodes: Option<u64>,
    pub ram_bytes: Option<u64>,
}

/// The settings of the recording that change what its numbers mean. None: the manifest does not say.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub rate_hz: Option<f64>,
    pub calls: Option<bool>,
    /// Calls shorter than this were not recorded.
    pub min_us: Option<u64>,
    /// Whether the modules of PyTorch were to be recorded.
    pub layers: Option<bool>,
    /// Bytes of small blocks between two of which the stack was recorded, on average; 0: stacks of blocks were not recorded.
    pub memory_stack_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Process {
    /// 0 when the manifest does not know it.
    pub pid: i64,
    pub parent_pid: i64,
    pub program: String,
    /// The Python version; empty for a process that is not Python.
    pub python: String,
    pub started_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    /// Its number among the processes of a distributed program.
    pub rank: Option<u32>,
    pub collectors: Vec<CollectorState>,
}

#[derive(Clone, Debug, Default)]
pub struct CollectorState {
    pub name: Spelled<CollectorCode>,
    pub state: Spelled<Condition>,
    pub reason: String,
    /// Time spent in its own code, as it measured it. 0: not measured.
    pub own_ns: u64,
    /// Largest disagreement seen between its clock and ours. 0: not measured.
    pub residual_ns: u64,
    /// Where it recorded by turns, and knows what that costs.
    pub windows: Option<WindowedRecording>,
}

/// Recording by turns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowedRecording {
    /// The part of the time that was recorded.
    pub recorded: f64,
    /// How much longer the program takes in it, as a part of what it takes otherwise.
    pub cost: f64,
}

#[derive(Clone, Debug)]
pub struct Track {
    pub process: ProcessIndex,
    pub tid: i32,
    /// Empty when no name was recorded.
    pub name: Arc<str>,
    pub slices: Range<usize>,
    pub samples: Range<usize>,
}

/// Columns of samples, sorted by track and time.
#[derive(Debug, Default)]
pub struct Samples {
    pub time: Vec<u64>,
    /// Index into [`Stacks`]; 0 when the stack is unknown.
    pub stack: Vec<u32>,
    pub state: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    pub time: u64,
    pub stack: StackIndex,
    pub active: bool,
    pub gil: bool,
}

impl Samples {
    pub fn len(&self) -> usize {
        self.time.len()
    }

    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    pub fn get(&self, index: usize) -> Sample {
        let state = i32::from(self.state[index]);
        Sample {
            time: self.time[index],
            stack: StackIndex(self.stack[index]),
            active: state & trace::tables::sample_state::ACTIVE != 0,
            gil: state & trace::tables::sample_state::GIL != 0,
        }
    }
}

/// One recorded series, sorted by time.
#[derive(Debug, Default)]
pub struct Counter {
    /// None: the whole machine.
    pub process: Option<ProcessIndex>,
    /// None: the whole process.
    pub tid: Option<i32>,
    pub name: Arc<str>,
    pub time: Vec<u64>,
    pub value: Vec<i64>,
}

#[derive(Clone, Debug)]
pub struct Loss {
    pub time: u64,
    /// None: the recorder as a whole.
    pub process: Option<ProcessIndex>,
    pub collector: Spelled<CollectorCode>,
    pub reason: LossReason,
    pub count: u64,
}
