//! The words for what the steps are bound by. Which one fits is decided in `bottleneck`; a rule says which it stands for.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BottleneckKind {
    Cpu,
    Gpu,
    Memory,
    Launch,
    Sync,
    Input,
    Comm,
    Balanced,
    Unknown,
}

impl BottleneckKind {
    pub fn name(self) -> &'static str {
        match self {
            BottleneckKind::Cpu => "cpu_bound",
            BottleneckKind::Gpu => "gpu_bound",
            BottleneckKind::Memory => "memory_bound",
            BottleneckKind::Launch => "launch_bound",
            BottleneckKind::Sync => "sync_bound",
            BottleneckKind::Input => "input_bound",
            BottleneckKind::Comm => "comm_bound",
            BottleneckKind::Balanced => "balanced",
            BottleneckKind::Unknown => "unknown",
        }
    }
}
