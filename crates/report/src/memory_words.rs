//! What an allocator holds, in the words that the text and the Markdown report share.

use crate::units::{bytes, count as count_of, counted, duration, percent_of};
use analysis::AllocatorMemory;
use analysis::memory::context::When;
use analysis::memory::who::Holder;
use analysis::phrase;
use diagnosis::Diagnosis;
use timeline::memory::StackMissing;
use timeline::{NameIndex, Timeline};

/// Rows of holders that say anything; the JSON has more.
pub const MOST_HOLDERS: usize = 12;

/// What is in use, free and reserved at the end, and at the peak: one fact each.
pub fn facts(timeline: &Timeline, diagnosis: &Diagnosis, one: &AllocatorMemory) -> Vec<String> {
    let history = &one.history;
    let mut facts = Vec::new();
    match &one.map {
        Some(map) => {
            let awaiting =
                if map.awaiting > 0 { format!(", {} awaiting free", bytes(map.awaiting)) } else { String::new() };
            facts.push(format!(
                "at the end: {} in use{awaiting}, {} free, {} reserved in {}",
                bytes(map.active),
                bytes(map.free),
                bytes(map.reserved),
                counted(map.segments, "segment")
            ));
            if map.free > 0 {
                facts.push(format!(
                    "free: {}, largest {}; {} beside blocks in use, {} in segments that are wholly free",
                    counted(map.free_blocks, "hole"),
                    bytes(map.largest_free),
                    bytes(map.pinned),
                    bytes(map.releasable)
                ));
            }
            facts
                .extend(map.rounding.filter(|lost| *lost > 0).map(|lost| format!("lost to rounding: {}", bytes(lost))));
            facts.extend((map.own_pools > 0).then(|| {
                format!(
                    "pools of CUDA graphs: {} reserved, {} in use",
                    bytes(map.own_pools),
                    bytes(map.own_pools_active)
                )
            }));
        }
        None => facts.push(format!("at the end: {} in use", bytes(history.last))),
    }
    if history.allocs > 0 {
        facts.push(peak(timeline, one));
        let changes = [(history.segment_allocs.len(), "taken from"), (history.segment_frees.len(), "given back to")];
        facts.extend(
            changes
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{} {what} the driver", counted(count as u64, "segment"))),
        );
        facts.extend(allocated(one));
        facts.extend(stacks(one));
        facts.extend(simulated(diagnosis, one));
    }
    facts
}

fn peak(timeline: &Timeline, one: &AllocatorMemory) -> String {
    let history = &one.history;
    let when = match history.peak_at.and_then(|at| timeline.memory.events.get(at)) {
        _ if timeline.memory.ordered_only => String::new(),
        Some(event) => format!(" after {}", duration(event.time.saturating_sub(timeline.start))),
        None => " before the first event".into(),
    };
    let reserved = history.reserved_peak.map(|peak| {
        format!("; {} reserved at most, {} of it in use then", bytes(peak), percent_of(history.peak, peak))
    });
    let of = if timeline.memory.cut { " by blocks of the events that were read" } else { "" };
    format!("peak: {} in use{of}{when}{}", bytes(history.peak), reserved.unwrap_or_default())
}

/// What other settings would have reserved.
fn simulated(diagnosis: &Diagnosis, one: &AllocatorMemory) -> Option<String> {
    let what_if = diagnosis.allocator_replays.get(one.allocator.0 as usize)?.as_ref().ok()?;
    let expandable = what_if.expandable.map(|out| format!("{} with expandable segments", bytes(out.peak)));
    let emptied = format!("{} if emptied before growing", bytes(what_if.emptied.peak));
    let changed: Vec<String> = expandable.into_iter().chain([emptied]).collect();
    Some(format!("simulated peak reserved: {} unchanged, {}", bytes(what_if.unchanged.peak), changed.join(", ")))
}

/// When what is held at the peak was allocated.
fn allocated(one: &AllocatorMemory) -> Option<String> {
    let parts = &one.peak.by_step;
    let sum = |own: fn(When) -> bool| {
        bytes(parts.iter().filter(|part| own(part.of)).map(|part| part.bytes).fold(0, u64::saturating_add))
    };
    (!parts.is_empty()).then(|| {
        format!(
            "in use at the peak: {} allocated before the first step, {} in steps, {} between them",
            sum(|when| when == When::BeforeSteps),
            sum(|when| matches!(when, When::Step(_))),
            sum(|when| when == When::OutsideSteps)
        )
    })
}

/// How many stacks there are, and why others are missing.
fn stacks(one: &AllocatorMemory) -> Option<String> {
    let counts = one.stacks.as_ref()?;
    let missing: Vec<String> =
        counts.missing.iter().map(|(why, count)| format!("{} missing {}", count_of(*count), missing(*why))).collect();
    let missing = if missing.is_empty() { String::new() } else { format!("; {}", missing.join(", ")) };
    Some(format!("stacks of blocks: {} read{missing}; \u{b1} is one standard error of sampling", count_of(counts.read)))
}

fn missing(why: StackMissing) -> &'static str {
    match why {
        StackMissing::NoPython => "(threads without Python)",
        StackMissing::Ending => "(the interpreter was ending)",
        StackMissing::TooMany => "(more different stacks than are kept)",
        StackMissing::Busy => "(another thread was writing a new stack)",
        StackMissing::Unreadable => "(Python's frames could not be read)",
    }
}

/// What it holds, with the error where that is an estimate.
pub fn held(holder: &Holder) -> String {
    match holder.error {
        0 => bytes(holder.bytes),
        error => format!("{} \u{b1} {}", bytes(holder.bytes), bytes(error)),
    }
}

/// A layer that allocates.
pub fn layer(timeline: &Timeline, of: Option<NameIndex>) -> &str {
    of.map_or("(no layer recorded)", |name| timeline.names.text(name))
}

/// Where a holder allocates.
pub fn place(holder: &Holder) -> String {
    match holder.stack.0 {
        0 => "(stack not recorded)".into(),
        _ => phrase::place(&holder.place),
    }
}
