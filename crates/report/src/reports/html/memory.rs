//! The memory section of the page: devices by what their bytes are for, what allocators hold, their blocks over time, and who holds the peak and the
//! end. Packed as the timeline is, and bounded: a page has so many blocks, the rest is one sum.

use super::pack;
use crate::blocks::{self, DrawnBlocks, left_out};
use crate::memory_words;
use crate::plots::{Ink, named, part_ink};
use crate::{attribution_words, units};
use analysis::AllocatorMemory;
use analysis::frames::Frames;
use analysis::memory::attribution::DeviceAttribution;
use analysis::memory::levels::{self, Steps, thinned};
use analysis::memory::lifetimes::{BlockLife, Limits};
use analysis::memory::{Held, lives, name};
use diagnosis::Diagnosis;
use serde::Serialize;
use timeline::Timeline;

/// Of all allocators together.
const MOST_BLOCKS: usize = 4_000;
const MOST_POINTS: usize = 40_000;
/// Of more allocators the blocks are not drawn, only what they hold.
const MOST_ALLOCATORS: usize = 16;
const MOST_LEVELS: usize = 2_000;
const MOST_HOLDERS: usize = 100;

#[derive(Serialize)]
pub struct Memory {
    devices: Vec<Device>,
    allocators: Vec<Allocator>,
    /// Times only count events.
    ordered_only: bool,
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct Device {
    title: String,
    note: String,
    time: String,
    used: String,
    /// From the bottom up.
    parts: Vec<Part>,
}

#[derive(Serialize)]
struct Part {
    label: String,
    ink: String,
    opacity: f64,
    bytes: String,
}

#[derive(Serialize)]
struct Allocator {
    title: String,
    facts: Vec<String>,
    in_use: Option<Curve>,
    reserved: Option<Curve>,
    blocks: Option<Blocks>,
    peak: Vec<Holder>,
    peak_bytes: u64,
    end: Vec<Holder>,
    end_bytes: u64,
}

#[derive(Serialize)]
struct Curve {
    time: String,
    value: String,
}

#[derive(Serialize)]
struct Blocks {
    start: String,
    end: String,
    bytes: String,
    place: String,
    /// From 1; 0: in none.
    step: String,
    category: String,
    /// 1: there before the first event; 2: not freed.
    ends: String,
    /// Of each block, how many of the points below are its.
    points: String,
    time: String,
    bottom: String,
    places: Vec<String>,
    categories: Vec<&'static str>,
    drawn: Curve,
    rest: Curve,
    peak: u64,
    note: String,
}

#[derive(Serialize)]
struct Holder {
    place: String,
    bytes: u64,
    blocks: u64,
    largest: u64,
}

/// None: nothing of a framework's or a device's memory was recorded.
pub fn memory(timeline: &Timeline, diagnosis: &Diagnosis) -> Option<Memory> {
    if diagnosis.memory.is_empty() && diagnosis.attribution.is_empty() {
        return None;
    }
    let frames = Frames::new(timeline);
    let drawn = diagnosis.memory.len().clamp(1, MOST_ALLOCATORS);
    let limits = Limits { blocks: MOST_BLOCKS / drawn, points: MOST_POINTS / drawn };
    let more = diagnosis.memory.len().saturating_sub(MOST_ALLOCATORS);
    let left_out =
        (more > 0).then(|| format!("the first {MOST_ALLOCATORS} allocators; {more} more are in the JSON report"));
    let one = |memory: &AllocatorMemory| allocator(timeline, diagnosis, &frames, memory, limits);
    Some(Memory {
        devices: diagnosis.attribution.iter().take(MOST_ALLOCATORS).map(|one| device(timeline, one)).collect(),
        allocators: diagnosis.memory.iter().take(MOST_ALLOCATORS).map(one).collect(),
        ordered_only: timeline.memory.ordered_only,
        left_out: left_out.into_iter().collect(),
    })
}

fn device(timeline: &Timeline, one: &DeviceAttribution) -> Device {
    let title = attribution_words::title(timeline, one);
    let (time, used) = (String::new(), String::new());
    let found = match &one.found {
        Ok(found) => found,
        Err(why) => return Device { title, note: attribution_words::refusal(why), time, used, parts: Vec::new() },
    };
    let readings = crate::plots::readings(found);
    let part = |part: &analysis::memory::attribution::Part| {
        let (ink, opacity) = part_ink(part.kind);
        let ink = if ink == Ink::Rest { "idle".to_owned() } else { ink.class() };
        Part {
            label: named(&attribution_words::part(timeline, found, part)),
            ink,
            opacity,
            bytes: pack::delta(readings.iter().map(|at| signed(part.bytes[*at]))),
        }
    };
    Device {
        title,
        note: attribution_words::note(found),
        time: pack::delta(readings.iter().map(|at| signed(found.times[*at].saturating_sub(timeline.start)))),
        used: pack::delta(readings.iter().map(|at| signed(found.used[*at]))),
        parts: found.parts.iter().map(part).collect(),
    }
}

fn allocator(
    timeline: &Timeline,
    diagnosis: &Diagnosis,
    frames: &Frames,
    one: &AllocatorMemory,
    limits: Limits,
) -> Allocator {
    let levels = levels::of(timeline, one.allocator, &lives::of(&timeline.memory, one.allocator));
    let has_events = levels.is_some();
    let drawn = has_events.then(|| blocks::of(timeline, frames, &diagnosis.steps, one.allocator, limits));
    let (in_use, reserved) = levels.map_or((None, None), |levels| (Some(levels.in_use), levels.reserved));
    let curve = |steps: Steps| curve(timeline, &thinned(&steps, MOST_LEVELS));
    let facts = memory_words::facts(timeline, diagnosis, one);
    Allocator {
        title: format!("PyTorch's allocator, {}", name(timeline, one.allocator)),
        facts: facts.into_iter().chain((!has_events).then(|| NO_HISTORY.to_owned())).collect(),
        in_use: in_use.map(curve),
        reserved: reserved.map(curve),
        blocks: drawn.filter(|drawn| !drawn.lifetimes.blocks.is_empty()).map(|drawn| packed(timeline, drawn)),
        peak: holders(&one.peak),
        peak_bytes: one.peak.bytes,
        end: holders(&one.end),
        end_bytes: one.end.bytes,
    }
}

const NO_HISTORY: &str = "no history: the snapshot has the blocks of one moment only";

fn holders(held: &Held) -> Vec<Holder> {
    let row = |one: &analysis::memory::who::Holder| Holder {
        place: named(&memory_words::place(one)),
        bytes: one.bytes,
        blocks: one.blocks,
        largest: one.largest,
    };
    held.by_place.iter().take(MOST_HOLDERS).map(row).collect()
}

fn packed(timeline: &Timeline, drawn: DrawnBlocks) -> Blocks {
    let all = &drawn.lifetimes.blocks;
    let since = |time: u64| signed(time.saturating_sub(timeline.start));
    let plain = |of: fn(&BlockLife) -> u64| pack::plain(all.iter().map(of));
    let categories = analysis::memory::who::Category::ALL;
    let category = |block: &BlockLife| categories.iter().position(|one| *one == block.category).unwrap_or(0) as u64;
    let points = || all.iter().flat_map(|block| &block.bottom);
    Blocks {
        start: pack::delta(all.iter().map(|block| since(block.start))),
        end: pack::delta(all.iter().map(|block| since(block.end))),
        bytes: plain(|block| block.bytes),
        place: pack::plain(drawn.place_of.iter().map(|place| *place as u64)),
        step: pack::plain(drawn.step_of.iter().map(|step| step.map_or(0, |step| u64::from(step) + 1))),
        category: pack::plain(all.iter().map(category)),
        ends: plain(|block| u64::from(block.from_before) + 2 * u64::from(block.alive)),
        points: plain(|block| block.bottom.len() as u64),
        time: pack::delta(points().map(|point| since(point.0))),
        bottom: pack::delta(points().map(|point| signed(point.1))),
        places: drawn.places.iter().map(|place| named(place)).collect(),
        categories: categories.iter().map(|one| one.said()).collect(),
        drawn: curve(timeline, &drawn.lifetimes.drawn),
        rest: curve(timeline, &drawn.lifetimes.rest),
        peak: drawn.lifetimes.peak,
        note: left_out(&drawn).unwrap_or_else(|| format!("{} drawn", units::counted(all.len() as u64, "block"))),
    }
}

fn curve(timeline: &Timeline, steps: &[(u64, u64)]) -> Curve {
    Curve {
        time: pack::delta(steps.iter().map(|step| signed(step.0.saturating_sub(timeline.start)))),
        value: pack::delta(steps.iter().map(|step| signed(step.1))),
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
