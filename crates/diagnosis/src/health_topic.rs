//! What a line of the health of a recording is about.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HealthTopic {
    Recording,
    /// Whether the allocator's start was recorded.
    Start,
    Losses,
    Clock,
    Steps,
    Samples,
    /// Whether step time is stable.
    Pace,
    Overhead,
    /// What recording takes of the machine.
    Recorder,
    /// What the user changed of our rules.
    Rules,
    GpuClock,
    GpuRecords,
    GpuWindow,
    Replay,
    Layers,
    NotRecorded,
    Note,
}

impl HealthTopic {
    pub fn label(self) -> &'static str {
        match self {
            HealthTopic::Recording => "recording",
            HealthTopic::Start => "start",
            HealthTopic::Losses => "losses",
            HealthTopic::Clock => "clock",
            HealthTopic::Steps => "steps",
            HealthTopic::Samples => "samples",
            HealthTopic::Pace => "pace",
            HealthTopic::Overhead => "overhead",
            HealthTopic::Recorder => "recorder",
            HealthTopic::Rules => "rules",
            HealthTopic::GpuClock => "GPU clock",
            HealthTopic::GpuRecords => "GPU records",
            HealthTopic::GpuWindow => "GPU window",
            HealthTopic::Replay => "replay",
            HealthTopic::Layers => "layers",
            HealthTopic::NotRecorded => "not recorded",
            HealthTopic::Note => "note",
        }
    }
}
