//! What frameworks' allocators hold, in the shape of the analysis JSON.

use super::times::Micros;
use analysis::AllocatorMemory;
use analysis::memory::Held;
use analysis::memory::context::{Part, When};
use diagnosis::Diagnosis;
use serde::Serialize;
use timeline::{NameIndex, Timeline};

/// Places of a list: more say nothing.
const MOST: usize = 50;

#[derive(Serialize)]
pub struct Allocator<'a> {
    /// Null: host memory.
    device: Option<u32>,
    pid: Option<i64>,
    backend: &'a str,
    allocs: u64,
    frees: u64,
    driver_allocs: u64,
    driver_frees: u64,
    failed: u64,
    in_use_bytes: u64,
    reserved_bytes: Option<u64>,
    peak_in_use_bytes: u64,
    /// After the start; null where events have no times, and before the first event.
    peak_at_us: Option<Micros>,
    peak_reserved_bytes: Option<u64>,
    /// Null: the segments were not recorded.
    end: Option<Map>,
    peak_by_use: Vec<Use>,
    peak_by_place: Vec<Holder<'a>>,
    end_by_place: Vec<Holder<'a>>,
    peak_by_layer: Vec<Layer<'a>>,
    peak_by_step: Vec<Step>,
    /// Null: stacks of blocks were not recorded.
    stacks: Option<Stacks>,
    /// Null: why is in the health lines.
    simulated: Option<Simulated>,
}

#[derive(Serialize)]
struct Map {
    segments: u64,
    active_bytes: u64,
    awaiting_free_bytes: u64,
    free_bytes: u64,
    largest_free_bytes: u64,
    free_blocks: u64,
    free_beside_blocks_bytes: u64,
    free_segments_bytes: u64,
    rounding_bytes: Option<u64>,
    own_pools_bytes: u64,
}

#[derive(Serialize)]
struct Use {
    r#use: &'static str,
    bytes: u64,
    blocks: u64,
}

#[derive(Serialize)]
struct Holder<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
    bytes: u64,
    error_bytes: u64,
    blocks: u64,
    largest_bytes: u64,
}

#[derive(Serialize)]
struct Layer<'a> {
    /// Null: none was recorded around it.
    layer: Option<&'a str>,
    bytes: u64,
    blocks: u64,
}

#[derive(Serialize)]
struct Step {
    allocated: &'static str,
    /// From 0, in the order of time.
    step: Option<u32>,
    bytes: u64,
    blocks: u64,
}

#[derive(Serialize)]
struct Stacks {
    read: u64,
    missing: Vec<MissingStacks>,
    mean_sampled_bytes: Option<u64>,
}

#[derive(Serialize)]
struct MissingStacks {
    why: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct Simulated {
    unchanged_peak_bytes: u64,
    expandable_peak_bytes: Option<u64>,
    emptied_peak_bytes: u64,
    blocks: u64,
    blocks_at_recorded_address: u64,
}

pub fn memory<'a>(timeline: &'a Timeline, diagnosis: &'a Diagnosis) -> Vec<Allocator<'a>> {
    diagnosis.memory.iter().map(|one| allocator(timeline, diagnosis, one)).collect()
}

fn allocator<'a>(timeline: &'a Timeline, diagnosis: &'a Diagnosis, one: &'a AllocatorMemory) -> Allocator<'a> {
    let about = timeline.memory.allocator(one.allocator);
    let (history, end) = (&one.history, one.map.as_ref());
    let event = history.peak_at.and_then(|at| timeline.memory.events.get(at)).filter(|_| !timeline.memory.ordered_only);
    let what_if = diagnosis.allocator_replays.get(one.allocator.0 as usize).and_then(|one| one.as_ref().ok());
    Allocator {
        device: about.device,
        pid: timeline.processes.get(about.process.0 as usize).map(|process| process.pid).filter(|pid| *pid > 0),
        backend: &about.backend,
        allocs: history.allocs,
        frees: history.frees,
        driver_allocs: history.segment_allocs.len() as u64,
        driver_frees: history.segment_frees.len() as u64,
        failed: history.failed.len() as u64,
        in_use_bytes: one.in_use(),
        reserved_bytes: history.reserved_last,
        peak_in_use_bytes: history.peak,
        peak_at_us: event.map(|event| Micros::of(event.time.saturating_sub(timeline.start))),
        peak_reserved_bytes: history.reserved_peak,
        end: end.map(|map| Map {
            segments: map.segments,
            active_bytes: map.active,
            awaiting_free_bytes: map.awaiting,
            free_bytes: map.free,
            largest_free_bytes: map.largest_free,
            free_blocks: map.free_blocks,
            free_beside_blocks_bytes: map.pinned,
            free_segments_bytes: map.releasable,
            rounding_bytes: map.rounding,
            own_pools_bytes: map.own_pools,
        }),
        peak_by_use: uses(&one.peak),
        peak_by_place: holders(&one.peak),
        end_by_place: holders(&one.end),
        peak_by_layer: layers(timeline, &one.peak),
        peak_by_step: steps(&one.peak),
        stacks: one.stacks.as_ref().map(|counts| Stacks {
            read: counts.read,
            missing: counts
                .missing
                .iter()
                .map(|(why, count)| MissingStacks { why: why.name(), count: *count })
                .collect(),
            mean_sampled_bytes: about.sampled_bytes,
        }),
        simulated: what_if.map(|what_if| Simulated {
            unchanged_peak_bytes: what_if.unchanged.peak,
            expandable_peak_bytes: what_if.expandable.map(|out| out.peak),
            emptied_peak_bytes: what_if.emptied.peak,
            blocks: what_if.unchanged.blocks,
            blocks_at_recorded_address: what_if.unchanged.same_place,
        }),
    }
}

fn uses(held: &Held) -> Vec<Use> {
    held.by_category
        .iter()
        .map(|(one, bytes, blocks)| Use { r#use: one.name(), bytes: *bytes, blocks: *blocks })
        .collect()
}

fn layers<'a>(timeline: &'a Timeline, held: &Held) -> Vec<Layer<'a>> {
    let layer = |part: &Part<Option<NameIndex>>| Layer {
        layer: part.of.map(|name| timeline.names.text(name)),
        bytes: part.bytes,
        blocks: part.blocks,
    };
    held.by_layer.iter().take(MOST).map(layer).collect()
}

fn steps(held: &Held) -> Vec<Step> {
    let step = |part: &Part<When>| {
        let (allocated, step) = match part.of {
            When::BeforeSteps => ("before_steps", None),
            When::Step(number) => ("step", Some(number)),
            When::OutsideSteps => ("outside_steps", None),
        };
        Step { allocated, step, bytes: part.bytes, blocks: part.blocks }
    };
    held.by_step.iter().take(MOST).map(step).collect()
}

fn holders(held: &Held) -> Vec<Holder<'_>> {
    use analysis::memory::who;
    fn holder(one: &who::Holder) -> Holder<'_> {
        let who::Holder { place, bytes, blocks, largest, error, .. } = one;
        Holder {
            file: place.file.as_deref(),
            line: place.line,
            function: place.function.as_deref(),
            bytes: *bytes,
            error_bytes: *error,
            blocks: *blocks,
            largest_bytes: *largest,
        }
    }
    held.by_place.iter().take(MOST).map(holder).collect()
}
