//! What rules of memory share: which allocators have events or a state, how each is called, how large its device is, and what the replay of it says.

use crate::finding::Evidence;
use crate::rule::{Case, Verdict};
use analysis::AllocatorMemory;
use analysis::phrase;
use replay::allocator::Outcome;
use timeline::memory::AllocatorIndex;

/// A replay that saves less than this of the reserved memory is no reason to change a setting.
pub const MIN_SAVING: f64 = 0.02;

/// What most of these rules need.
pub const NO_EVENTS: &str = "allocator events not recorded (record with --memory-events gpu)";

/// Nothing of an allocator was recorded. A program without a GPU has none, and misses nothing.
pub fn not_recorded(case: &Case, why: &str) -> Verdict {
    match case.timeline.gpu.is_empty() && case.timeline.memory.is_empty() {
        true => Verdict::Silent,
        false => Verdict::NeedsTorch(why.into()),
    }
}

/// Why rules of the peak cannot look, where events are missing.
pub const EVENTS_MISSING: &str = "events are missing (the file was cut): the peak is not known";

/// Of devices, with events.
pub fn with_events<'a>(case: &'a Case) -> Vec<&'a AllocatorMemory> {
    let device = |one: &&AllocatorMemory| case.timeline.memory.allocator(one.allocator).device.is_some();
    case.memory().iter().filter(device).filter(|one| one.history.allocs > 0).collect()
}

/// Of devices and of the CPU, with events: whatever programs keep, they keep of these. Pinned memory is another matter: it is cached by the allocator itself.
pub fn with_blocks<'a>(case: &'a Case) -> Vec<&'a AllocatorMemory> {
    let of = |one: &AllocatorMemory| case.timeline.memory.allocator(one.allocator);
    let kept = |one: &&AllocatorMemory| of(one).device.is_some() || &*of(one).backend == analysis::memory::CPU_BACKEND;
    case.memory().iter().filter(kept).filter(|one| one.history.allocs > 0).collect()
}

/// "GPU 0"; with the process where there are several.
pub fn name(case: &Case, allocator: AllocatorIndex) -> String {
    analysis::memory::name(case.timeline, allocator)
}

/// The memory that its device has.
pub fn device_bytes(case: &Case, allocator: AllocatorIndex) -> Option<u64> {
    let about = case.timeline.memory.allocator(allocator);
    let own = |process: Option<timeline::ProcessIndex>| process.is_none_or(|process| process == about.process);
    let mut devices = case.timeline.gpu.devices.iter();
    devices
        .find(|device| Some(device.ordinal) == about.device && own(device.process))?
        .memory_bytes
        .filter(|bytes| *bytes > 0)
}

/// Why a rule of device size cannot look.
pub const NO_SIZE: &str = "the size of the device's memory not recorded (a snapshot does not have it)";

/// Allocators with what their devices have.
pub fn sized<'a>(case: &'a Case) -> Vec<(&'a AllocatorMemory, u64)> {
    let with_size = |one: &'a AllocatorMemory| Some((one, device_bytes(case, one.allocator)?));
    case.memory().iter().filter_map(with_size).collect()
}

/// What expandable segments would save of the reserved peak, as the replay has it: bytes, and the part of the peak. None: nothing worth it, or not known.
pub fn expandable_saves(case: &Case, allocator: AllocatorIndex) -> Option<(u64, f64)> {
    let what_if = case.allocator_what_if(allocator).ok()?;
    saves(what_if.unchanged, what_if.expandable?)
}

fn saves(unchanged: Outcome, changed: Outcome) -> Option<(u64, f64)> {
    let saved = unchanged.peak.checked_sub(changed.peak)?;
    let share = saved as f64 / unchanged.peak.max(1) as f64;
    (share >= MIN_SAVING).then_some((saved, share))
}

/// What the replay says of expandable segments, whatever that is.
pub fn expandable_evidence(case: &Case, allocator: AllocatorIndex) -> Evidence {
    match case.allocator_what_if(allocator) {
        Err(why) => Evidence::new(format!("other settings were not simulated: {why}")),
        Ok(what_if) => match what_if.expandable {
            None => Evidence::new("segments are expandable already"),
            Some(out) => {
                let (now, then) = (phrase::bytes(what_if.unchanged.peak), phrase::bytes(out.peak));
                Evidence::new(format!("simulated with expandable segments: peak reserved {then} instead of {now}"))
                    .number("bytes", out.peak as f64)
            }
        },
    }
}

/// The line to type, where the replay says that it helps.
pub fn expandable_action(case: &Case, allocator: AllocatorIndex) -> Option<String> {
    let (saved, share) = expandable_saves(case, allocator)?;
    Some(format!(
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: simulated on the recorded events it reserves {} less (−{}).",
        phrase::bytes(saved),
        phrase::percent(share)
    ))
}

#[cfg(test)]
mod tests {
    use crate::rules::memory::leak::Leak;
    use crate::testing::silent;

    /// Eight rules that say of every program on a CPU what they could not see would be noise.
    #[test]
    fn a_program_without_a_gpu_misses_nothing() {
        silent(&Leak, "track main\n step request 0..40ms");
    }
}
