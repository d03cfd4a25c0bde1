//! The kinds of slices and of device work, by the numbers that stand in the tables.

/// `slices.kind`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(i32)]
pub enum SliceKind {
    Scope = 1,
    Step = 2,
    /// A moment; its duration is 0.
    Mark = 3,
    Call = 4,
    CCall = 5,
    /// A pause of the garbage collector.
    Gc = 6,
    /// A CUDA API call; its id is the correlation of the work that it asked for.
    ApiCall = 7,
    /// An NVTX range; a mark of NVTX lasts 0. Domain and category are in the args.
    Nvtx = 8,
    /// An `nn.Module`'s forward (`--layers`).
    Layer = 9,
    /// What CUPTI calls an overhead; its id is an [`crate::codes::OverheadKind`].
    Overhead = 10,
    /// A turn of recording in windows, a moment; its id is a [`crate::codes::RecordingWindow`].
    RecordingWindow = 11,
    /// An outermost call into a known entry point of a program: a model's, or a request handler.
    Entry = 12,
    /// An operator of a framework, with shapes and data flow in its args; only in steps that were looked at.
    Op = 13,
    /// What became of a fix that is tried, a moment; its id is a [`crate::codes::FixMoment`].
    Fix = 14,
}

impl SliceKind {
    pub fn from_i32(number: i32) -> Option<SliceKind> {
        Some(match number {
            1 => SliceKind::Scope,
            2 => SliceKind::Step,
            3 => SliceKind::Mark,
            4 => SliceKind::Call,
            5 => SliceKind::CCall,
            6 => SliceKind::Gc,
            7 => SliceKind::ApiCall,
            8 => SliceKind::Nvtx,
            9 => SliceKind::Layer,
            10 => SliceKind::Overhead,
            11 => SliceKind::RecordingWindow,
            12 => SliceKind::Entry,
            13 => SliceKind::Op,
            14 => SliceKind::Fix,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            SliceKind::Scope => "scope",
            SliceKind::Step => "step",
            SliceKind::Mark => "mark",
            SliceKind::Call => "call",
            SliceKind::CCall => "c-call",
            SliceKind::Gc => "gc",
            SliceKind::ApiCall => "api",
            SliceKind::Nvtx => "nvtx",
            SliceKind::Layer => "layer",
            SliceKind::Overhead => "overhead",
            SliceKind::RecordingWindow => "recording-window",
            SliceKind::Entry => "entry",
            SliceKind::Op => "op",
            SliceKind::Fix => "fix",
        }
    }
}

/// `gpu.kind`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(i32)]
pub enum WorkKind {
    Kernel = 1,
    Memcpy = 2,
    Memset = 3,
    /// A wait, on the host's time: it keeps no device busy.
    Sync = 4,
    /// Pages moved by unified memory.
    Migration = 5,
}

impl WorkKind {
    pub fn from_i32(number: i32) -> Option<WorkKind> {
        Some(match number {
            1 => WorkKind::Kernel,
            2 => WorkKind::Memcpy,
            3 => WorkKind::Memset,
            4 => WorkKind::Sync,
            5 => WorkKind::Migration,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Kernel => "kernel",
            WorkKind::Memcpy => "memcpy",
            WorkKind::Memset => "memset",
            WorkKind::Sync => "sync",
            WorkKind::Migration => "migration",
        }
    }

    /// Whether the device is at work meanwhile.
    pub fn is_busy(self) -> bool {
        self != WorkKind::Sync
    }
}
