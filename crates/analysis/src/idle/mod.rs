//! Why each device was idle inside the steps: every nanosecond in which it did nothing gets exactly one cause, so that causes and
//! busy time add up to the whole. Recorded calls and pauses tell first, stack samples tell the rest; what neither saw is unknown.
//!
//! Copies keep a device busy. What is called a copy wait is a host that is held in a copy call while the device does nothing
//! yet or any more: it moves pageable memory to where the device can reach it, or waits for the call to return.

mod blocks;
mod bubbles;
mod busy;
mod cores;
mod devices;
mod found;
mod gaps;
mod handed;
mod host;
mod innermost;
mod inputs;
mod looks;
pub mod near;
pub mod pace;
mod parts;
mod sums;

pub use bubbles::Wait;
pub use devices::measure;
pub use host::{Piece, Who};
pub use sums::{Measure, Sums, Zone, by_line};

use crate::host::StepContext;
use crate::place::Place;
use crate::steps::chosen::Chosen;
use inputs::IdleInputs;
use timeline::cuda_calls::ApiClass;
use timeline::{ProcessIndex, TrackIndex};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The thread that launches runs Python, or native code.
    Python,
    Native,
    /// It does not run: for input, a lock, another thread.
    Waiting,
    /// In a CUDA call that gives work to the device, or the work is on its way.
    Launch,
    /// In a call that waits for a device which has nothing to do.
    Sync,
    /// In a copy call, while nothing is being copied.
    Copy,
    Gil,
    /// Ready to run, but without a core.
    Descheduled,
    /// In a call that takes or gives back device memory.
    Allocator,
    Gc,
    /// Code is loaded, compiled or tuned.
    Compile,
    Communication,
    /// There was nothing to do.
    NoRequest,
    /// Recording it took this.
    Overhead,
    /// No call and no sample tells. Where it has a call, that one launched the work that does not begin: see [`DeviceIdle::held_ns`].
    Unknown,
}

impl From<ApiClass> for Cause {
    fn from(class: ApiClass) -> Cause {
        match class {
            ApiClass::Launch => Cause::Launch,
            ApiClass::Sync => Cause::Sync,
            ApiClass::Copy => Cause::Copy,
            ApiClass::Allocator => Cause::Allocator,
            ApiClass::Compile => Cause::Compile,
            ApiClass::Communication => Cause::Communication,
        }
    }
}

impl Cause {
    pub const COUNT: usize = 15;
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::Python,
        Cause::Native,
        Cause::Waiting,
        Cause::Launch,
        Cause::Sync,
        Cause::Copy,
        Cause::Gil,
        Cause::Descheduled,
        Cause::Allocator,
        Cause::Gc,
        Cause::Compile,
        Cause::Communication,
        Cause::NoRequest,
        Cause::Overhead,
        Cause::Unknown,
    ];

    /// As reports say it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Python => "host runs Python",
            Cause::Native => "host runs native code",
            Cause::Waiting => "host waits",
            Cause::Launch => "launch overhead",
            Cause::Sync => "synchronisation",
            Cause::Copy => "copy wait",
            Cause::Gil => "GIL",
            Cause::Descheduled => "host not scheduled",
            Cause::Allocator => "allocator",
            Cause::Gc => "garbage collection",
            Cause::Compile => "compiling or loading",
            Cause::Communication => "communication",
            Cause::NoRequest => "no request",
            Cause::Overhead => "profiler",
            Cause::Unknown => "unknown",
        }
    }

    /// As programs read it.
    pub fn code(self) -> &'static str {
        match self {
            Cause::Python => "host_python",
            Cause::Native => "host_native",
            Cause::Waiting => "host_wait",
            Cause::Launch => "launch_path",
            Cause::Sync => "synchronisation_wait",
            Cause::Copy => "copy_wait",
            Cause::Gil => "gil",
            Cause::Descheduled => "descheduled",
            Cause::Allocator => "allocator",
            Cause::Gc => "garbage_collection",
            Cause::Compile => "compile",
            Cause::Communication => "communication_wait",
            Cause::NoRequest => "no_request",
            Cause::Overhead => "profiler_overhead",
            Cause::Unknown => "unknown",
        }
    }
}

/// One device of one process, in the time in which any chosen step was open, or in the whole recording.
#[derive(Clone, Debug)]
pub struct DeviceIdle {
    pub process: ProcessIndex,
    pub ordinal: u32,
    pub window_ns: u64,
    /// With the causes this adds up to `window_ns`, to the last nanosecond.
    pub busy_ns: u64,
    /// Most time first.
    pub causes: Vec<IdleCause>,
    /// What the rules look at.
    pub sums: Sums,
    /// The median time between two launches, of all devices. 0: there are none.
    pub between_launches_ns: u64,
    /// By cause and who has it: in the usual steps, and in the slow ones.
    pub groups: [sums::Map<(Cause, Who), u64>; 2],
    /// The median step, piece by piece: why the device was idle in it.
    pub median: Vec<Piece>,
    /// What the median step's own thread did in it.
    pub host: Vec<Piece>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct IdleCause {
    pub cause: Cause,
    pub ns: u64,
    /// Of the window, 0 to 1.
    pub share: f64,
    /// The line or the call that has most of it. None: it has no place.
    pub top: Option<Place>,
    pub top_ns: u64,
}

impl DeviceIdle {
    pub fn idle_ns(&self) -> u64 {
        self.window_ns - self.busy_ns
    }

    pub fn ns(&self, cause: Cause) -> u64 {
        self.causes.iter().find(|one| one.cause == cause).map_or(0, |one| one.ns)
    }

    /// The time in which launched work does not begin although nothing recorded runs before it: the recording lacks what the
    /// device did, or waited for. It is not the host's.
    pub fn held_ns(&self) -> u64 {
        let held = |((_, cause, who), _): &(&(Zone, Cause, Who), &u64)| {
            *cause == Cause::Unknown && matches!(who, Who::Api(_) | Who::Earlier)
        };
        self.sums.by.iter().filter(held).map(|(_, ns)| ns).sum()
    }

    /// The time in which it works, or has work that begins only when other devices that are at work let it.
    pub fn paced_ns(&self) -> u64 {
        self.busy_ns + self.sums.others
    }

    /// As a part of the window, 0 to 1.
    pub fn held(&self) -> f64 {
        self.held_ns() as f64 / self.window_ns.max(1) as f64
    }

    pub fn share(&self, cause: Cause) -> f64 {
        self.ns(cause) as f64 / self.window_ns.max(1) as f64
    }
}

/// What a thread did in a stretch of time, where no device asked for it.
pub fn host_pieces(
    context: &StepContext,
    chosen: Option<&Chosen>,
    track: TrackIndex,
    start: u64,
    end: u64,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let inputs = IdleInputs::new(context, chosen);
    handed::split(inputs, &mut host::Hosts::new(inputs, None).ask(), track, (start, end), &mut pieces);
    pieces
}
