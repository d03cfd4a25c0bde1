//! Who made a recording. What can be done about what is missing in it differs by that.

use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecordedBy {
    #[default]
    InferScope,
    /// torch.profiler.
    Kineto,
    /// Nsight Systems.
    Nsight,
    /// A snapshot of PyTorch's allocator: of memory, and of nothing else.
    Snapshot,
}

impl RecordedBy {
    /// As people know it, and as the JSON of the analysis has it.
    pub fn name(self) -> &'static str {
        match self {
            RecordedBy::InferScope => "InferScope",
            RecordedBy::Kineto => "torch.profiler",
            RecordedBy::Nsight => "Nsight Systems",
            RecordedBy::Snapshot => "torch.cuda.memory",
        }
    }

    /// A file of another tool does not say how good its times are, what it lost or how it was recorded.
    pub fn is_ours(self) -> bool {
        self == RecordedBy::InferScope
    }

    /// What belongs to the one who made the recording. A snapshot has nothing to record more of: what goes with ours.
    pub fn choose<T>(self, ours: T, torch: T, nsight: T) -> T {
        match self {
            RecordedBy::InferScope | RecordedBy::Snapshot => ours,
            RecordedBy::Kineto => torch,
            RecordedBy::Nsight => nsight,
        }
    }
}

impl fmt::Display for RecordedBy {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.name())
    }
}
