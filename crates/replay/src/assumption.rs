//! What a replay takes for granted beside what was recorded, as codes and numbers: `diagnosis` has the sentences.

use crate::recording::RecordingCost;
use analysis::device::link::Link;

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    HostToDevice,
    DeviceToHost,
}

impl Direction {
    pub const ALL: [Direction; 2] = [Direction::HostToDevice, Direction::DeviceToHost];
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Assumption {
    /// Of `remove sync-api`: a wait with no launch after it in its step collects the result.
    WaitsForResultsStay,
    /// Work is removed, and its launch calls with it.
    LaunchesRemoved,
    WorkScaled,
    CallsScaled,
    GapsShrink,
    HostCodeScaled,
    /// Outside of CUDA calls, where there are any.
    FunctionScaled {
        among_calls: bool,
    },
    LaunchesBecomeGraph,
    /// As fast as this recording's pinned copies of the nearest size.
    CopiesAsPinned,
    /// So many have no pinned copy to compare with: a part of the link's bandwidth.
    CopiesByLink {
        count: u64,
        link: Link,
    },
    CopiesUnchanged {
        count: u64,
        direction: Direction,
    },
    /// Launched work that started late for no recorded reason.
    LateAsRecorded,
    /// Everything that no change is about, among work of a device.
    RestWithWork,
    /// The same without any.
    RestAsRecorded,
    SpreadOverSteps,
    OneStep,
    SamplingError,
    WithoutRecording(RecordingCost),
}
