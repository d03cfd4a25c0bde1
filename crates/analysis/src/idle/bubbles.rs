//! Waits that leave a device without work: the host stands in a call until the device has done everything, and only then begins to
//! launch again. Without the wait it would have been ahead by as long as the wait took.

use super::Cause;
use super::IdleInputs;
use super::host::Host;
use super::innermost::Part;
use super::near::Near;
use super::sums::Measure;
use crate::device::to_host::{CALLS_BETWEEN, TIME_BETWEEN_NS, ToHost};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Wait {
    /// Asked for: `torch.cuda.synchronize()`, an event.
    Api,
    /// For a small result: `.item()`, `nonzero`, `if tensor:`.
    Implicit,
    /// In a copy that is not asynchronous.
    Memcpy,
    /// For a large result, such as the logits of a step.
    Result,
}

impl Wait {
    pub fn measure(self) -> Measure {
        match self {
            Wait::Api => Measure::SyncApi,
            Wait::Implicit => Measure::ImplicitSync,
            Wait::Memcpy => Measure::SyncMemcpy,
            Wait::Result => Measure::ResultToHost,
        }
    }
}

/// Host and device times differ by this at the most on a trace that is healthy.
pub const ROOM_NS: u64 = 2_000;

/// The wait that a device's work ended in, if the host stood in one, and the call that copied what it waited for.
pub fn wait_at<'h>(
    inputs: IdleInputs,
    host: &'h Host,
    near: &mut Near,
    time: u64,
) -> Option<(Wait, &'h Part, Option<u32>)> {
    let mut calls = host.calls_before(near, time);
    // With a little room: the clocks of host and device do not agree to the nanosecond.
    let part = calls.next().filter(|part| time <= part.end.saturating_add(ROOM_NS))?;
    let copied = |part: &Part| ToHost::of(inputs.timeline, part.slice as usize);
    match part.cause {
        Cause::Sync => {
            let start = inputs.timeline.slices.start[part.slice as usize];
            let near = calls.take(CALLS_BETWEEN).take_while(|one| start.saturating_sub(one.end) <= TIME_BETWEEN_NS);
            let copy = near.filter(|one| one.cause == Cause::Copy).find_map(|one| Some((copied(one)?, one.slice)));
            Some((copy.map_or(Wait::Api, |copy| of(copy.0)), part, copy.map(|copy| copy.1)))
        }
        Cause::Copy => {
            if inputs.timeline.call(part.slice as usize).is_blocking_copy() {
                return Some((Wait::Memcpy, part, None));
            }
            // Into pageable memory also the asynchronous copy returns only when it is done.
            copied(part).map(|copy| (of(copy), part, Some(part.slice)))
        }
        _ => None,
    }
}

fn of(copy: ToHost) -> Wait {
    if copy.is_small() { Wait::Implicit } else { Wait::Result }
}
