//! Who recorded something, and whether it did: `losses.collector`, and the collectors of the manifest.

super::codes! {
    /// What records: the collectors inside a program, with their numbers on the status page, and what looks from outside.
    pub enum CollectorCode {
        Scopes = 0, "scopes";
        Calls = 1, "calls";
        Gc = 2, "gc";
        /// CUPTI's activity records: kernels, copies, allocations.
        Gpu = 3, "gpu";
        /// The host side of what a device does.
        Launches = 4, "launches";
        /// `nn.Module` names.
        Layers = 5, "layers";
        /// Ranges and marks of NVTX.
        Nvtx = 6, "nvtx";
        /// Operators of a framework, in the steps that are looked at.
        Ops = 7, "ops";
        /// Blocks of a framework's allocator.
        Blocks = 8, "blocks";
        /// Stack samples.
        Stacks = 32, "stacks";
        /// CPU time and state of threads.
        Threads = 33, "threads";
        Memory = 34, "memory";
        /// The devices of the machine: clocks, throttling, links.
        Devices = 35, "devices";
        /// The recorder itself, which writes what the others give it.
        Recorder = 36, "recorder";
        /// Who opened the trace.
        Reader = 37, "reader";
    }
}

impl CollectorCode {
    /// Whether it looks from outside, so that it says nothing about what is inside a program.
    pub fn is_outside(self) -> bool {
        self as i32 >= CollectorCode::Stacks as i32
    }
}

super::codes! {
    /// Whether a collector records.
    pub enum Condition {
        Off = 0, "off";
        On = 1, "on";
        /// Could not start, or stopped by itself.
        Failed = 2, "failed";
    }
}
