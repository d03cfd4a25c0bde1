//! The status page of a segment: what each collector is doing, what it dropped, its own errors, its own cost.
//! The workload counts here and never prints.

use crate::codes::CollectorCode;
/// A collector that failed says why in its message.
pub use crate::codes::Condition as State;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Collectors by number. The numbers are in shared memory: never reused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Collector {
    Scopes = 0,
    Calls = 1,
    Gc = 2,
    /// CUPTI's activity records: kernels, copies, allocations.
    Gpu = 3,
    /// The host side of what a device does.
    Launches = 4,
    /// `nn.Module` names.
    Layers = 5,
    /// Ranges and marks of NVTX.
    Nvtx = 6,
    /// Operators of a framework, in the steps that are looked at.
    Ops = 7,
    /// Blocks of a framework's allocator.
    Blocks = 8,
}

impl Collector {
    pub const ALL: [Collector; 9] = [
        Collector::Scopes,
        Collector::Calls,
        Collector::Gc,
        Collector::Gpu,
        Collector::Launches,
        Collector::Layers,
        Collector::Nvtx,
        Collector::Ops,
        Collector::Blocks,
    ];

    pub fn code(self) -> CollectorCode {
        match self {
            Collector::Scopes => CollectorCode::Scopes,
            Collector::Calls => CollectorCode::Calls,
            Collector::Gc => CollectorCode::Gc,
            Collector::Gpu => CollectorCode::Gpu,
            Collector::Launches => CollectorCode::Launches,
            Collector::Layers => CollectorCode::Layers,
            Collector::Nvtx => CollectorCode::Nvtx,
            Collector::Ops => CollectorCode::Ops,
            Collector::Blocks => CollectorCode::Blocks,
        }
    }

    pub fn name(self) -> &'static str {
        self.code().name()
    }
}

pub const MESSAGE_BYTES: usize = 192;

/// One collector's line. 256 bytes, zero when never used.
#[repr(C)]
pub struct CollectorStatus {
    state: AtomicU32,
    /// See [`WindowCost`]: thousandths of the time, and hundredths of a per cent plus one.
    recorded: AtomicU16,
    cost: AtomicU16,
    /// Records that found no ring.
    pub dropped: AtomicU64,
    /// Own errors, caught and survived (panics included).
    pub errors: AtomicU64,
    /// Begins and ends that did not pair, or calls nested too deep to follow.
    pub unpaired: AtomicU64,
    /// Names or metadata longer than the limit, cut.
    pub cut: AtomicU64,
    /// Things let go because a table was full (functions beyond the limit).
    pub overflow: AtomicU64,
    /// Time spent in the collector's own code, in nanoseconds.
    pub own_ns: AtomicU64,
    /// Largest disagreement seen between the collector's clock and ours, plus the width of the bracket.
    pub residual_ns: AtomicU64,
    message: [AtomicU64; MESSAGE_BYTES / 8],
}

const _: () = assert!(size_of::<CollectorStatus>() == 256);

/// What recording in windows costs, as measured by holding them against the time between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowCost {
    /// The part of the time that was recorded, in millionths.
    pub recorded_ppm: u64,
    /// How much longer the program takes while it is, in millionths.
    pub cost_ppm: u64,
}

impl CollectorStatus {
    /// Costs beyond six times as long are given as that.
    pub fn set_windows(&self, windows: WindowCost) {
        let small = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        self.recorded.store(small(windows.recorded_ppm / 1000), Ordering::Relaxed);
        self.cost.store(small(windows.cost_ppm / 100).saturating_add(1), Ordering::Relaxed);
    }

    /// None: nothing was recorded in windows, or what it costs is not known.
    pub fn windows(&self) -> Option<WindowCost> {
        let (recorded, cost) = (self.recorded.load(Ordering::Relaxed), self.cost.load(Ordering::Relaxed));
        let cost_ppm = u64::from(cost.checked_sub(1)?) * 100;
        Some(WindowCost { recorded_ppm: u64::from(recorded) * 1000, cost_ppm })
    }

    pub fn set(&self, state: State, message: &str) {
        let mut bytes = crate::event::cut(message, MESSAGE_BYTES).bytes();
        for cell in &self.message {
            let word = std::array::from_fn(|_| bytes.next().unwrap_or(0));
            cell.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.state.store(state as u32, Ordering::Release);
    }

    pub fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            1 => State::On,
            2 => State::Failed,
            _ => State::Off,
        }
    }

    pub fn message(&self) -> String {
        let bytes: Vec<u8> = self.message.iter().flat_map(|cell| cell.load(Ordering::Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}
