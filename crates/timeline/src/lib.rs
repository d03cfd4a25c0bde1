//! Opens a trace into one [`Timeline`] on one clock: tracks per process and thread, slices sorted so that a parent comes
//! before its children, samples, counters, names, losses. Reads whatever is there and says what is not; what the
//! events mean is left to `analysis`.

mod before_codes;
mod builder;
pub mod cuda_calls;
pub mod driver_memory;
mod finish;
#[cfg(feature = "fixture")]
pub mod fixture;
pub mod gpu;
mod ids;
mod import;
mod link;
pub mod memory;
mod names;
mod open;
mod open_error;
pub mod parallel;
mod recorded_by;
mod segments;
mod slices;
mod sort;
mod stacks;
mod text;
mod timeline;

pub use builder::{Builder, SliceExtra};
pub use gpu::{Gpu, WorkKind};
pub use ids::{ProcessIndex, TrackIndex};
pub use import::markers::step as step_marker;
pub use import::native::{Follow, check_table};
pub use link::Around;
pub use memory::Memory;
pub use names::{Name, NameIndex, Names};
pub use open::{open, open_with};
pub use open_error::{Limits, OpenError};
pub use recorded_by::RecordedBy;
pub use slices::{Detail, Slice, Slices};
pub use stacks::{Frame, StackIndex, Stacks};
pub use timeline::{
    Clock, CollectorState, Counter, Exit, Host, Info, Loss, Process, Sample, Samples, Settings, State, Timeline, Track,
    WindowedRecording,
};
pub use trace::codes::{
    CollectorCode, Condition, EnginePhase, FixMoment, LossReason, Note, NoteCode, OverheadKind, RecordingWindow,
    Spelled,
};
pub use trace::counters;
pub use trace::quantity;
pub use trace::spelling::edits;
pub use trace::tables::SliceKind;
