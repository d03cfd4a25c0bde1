//! The last request for GPU memory that failed: what was asked, what there was, who held the rest, when in the life of the program it was, and which setting
//! would have served it. In numbers and codes; the sentences are made in `report`. Whether the program died of it is for those to say who saw how it ended.

use crate::diagnose::Diagnosis;
use crate::wording::memory as memory_words;
use analysis::frames::Frames;
use analysis::memory::segments;
use analysis::memory::who::{Category, Holder};
use analysis::memory::{held_before, map};
use analysis::steps::{StepSource, Steps};
use replay::allocator::{Settings, Simulator};
use timeline::driver_memory::{MemoryPlace, driver_memory};
use timeline::memory::{AllocatorIndex, MemoryEvent, MemoryEventKind};
use timeline::{Counter, ProcessIndex, Timeline, counters as counter_names};

/// CUDA's code for memory that ran out.
const OUT_OF_MEMORY: u32 = 2;
/// Sizes from which blocks are kept whole that PyTorch's documentation and its users try, in MiB.
const MAX_SPLITS: [u64; 2] = [128, 512];

#[derive(Clone, PartialEq, Debug)]
pub struct FailedRequest {
    pub time: u64,
    pub process: ProcessIndex,
    pub pid: i64,
    /// By the process's own ordinal. None: not of one device.
    pub device: Option<u32>,
    pub asked: Asked,
    pub bytes: u64,
    /// How many failed in this process, this one with them.
    pub failures: u64,
    /// The process was given GPU memory after it: it went on.
    pub went_on: bool,
    /// From the failure to the end of the process, or of the recording.
    pub until_end: u64,
    pub device_total: Option<u64>,
    /// As it was last said before the failure.
    pub device_free: Option<u64>,
    /// What this process had taken of the device from the driver. None: its calls were not recorded.
    pub taken: Option<u64>,
    /// What the framework's allocator had handed out and reserved.
    pub allocated: Option<u64>,
    pub reserved: Option<u64>,
    /// Err: why they are not known.
    pub holes: Result<Holes, String>,
    /// By the line that allocated, most first; only those whose line is known.
    pub holders: Vec<Holder>,
    pub categories: Vec<(Category, u64, u64)>,
    pub stage: Stage,
    /// None: no setting that was simulated would have served it. Err: why none was simulated.
    pub setting: Result<Option<Setting>, String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Of the framework's allocator.
    Allocator,
    /// Of the driver, by whomever.
    Driver,
}

/// What the framework's allocator had free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holes {
    pub free: u64,
    pub count: u64,
    pub largest: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Before the first step.
    StartUp,
    /// In the first step.
    FirstStep,
    /// After so many steps.
    RunTime(u64),
    /// The program has no steps.
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    ExpandableSegments,
    MaxSplit { mib: u64 },
}

impl Setting {
    /// As `PYTORCH_CUDA_ALLOC_CONF` takes it.
    pub fn text(&self) -> String {
        match self {
            Setting::ExpandableSegments => "expandable_segments:True".into(),
            Setting::MaxSplit { mib } => format!("max_split_size_mb:{mib}"),
        }
    }
}

/// None: no request failed for lack of memory, as far as that was recorded.
pub fn last(timeline: &Timeline, diagnosis: &Diagnosis) -> Option<FailedRequest> {
    let of_allocator = |event: &MemoryEvent| event.kind == MemoryEventKind::OutOfMemory;
    let by_allocator = timeline.memory.events.iter().rposition(of_allocator);
    let driver = driver_memory(&timeline.gpu.allocations);
    let refused = driver.places.iter().flat_map(|place| {
        let refused = place.failed.iter().filter(|failed| failed.error == OUT_OF_MEMORY);
        refused.map(move |failed| (place.process, place.place, *failed))
    });
    let by_driver = refused.max_by_key(|(.., failed)| failed.time);
    // An allocator that gives up was refused by the driver just before.
    let at =
        by_allocator.filter(|at| by_driver.is_none_or(|(.., failed)| failed.time <= timeline.memory.events[*at].time));
    let mut request = match (at, by_driver) {
        (Some(at), _) => of_event(timeline, diagnosis, at),
        (None, Some((process, place, failed))) => {
            let device = if let MemoryPlace::Device(device) = place { Some(device) } else { None };
            FailedRequest { bytes: failed.bytes, ..empty(process, device, failed.time, Asked::Driver) }
        }
        (None, None) => return None,
    };
    let places = driver.places.iter().filter(|place| place.process == request.process);
    let own = places.clone().find(|place| Some(place.place) == request.device.map(MemoryPlace::Device));
    request.taken = own.filter(|own| !own.points.is_empty()).map(|own| own.at(request.time).own());
    let failed_events = timeline.memory.events.iter().filter(|event| of_allocator(event));
    let same = |event: &&MemoryEvent| timeline.memory.allocator(event.allocator).process == request.process;
    request.failures = match request.asked {
        Asked::Allocator => failed_events.filter(same).count() as u64,
        Asked::Driver => places.flat_map(|place| &place.failed).filter(|one| one.error == OUT_OF_MEMORY).count() as u64,
    };
    request.went_on = went_on(timeline, &request);
    let process = timeline.processes.get(request.process.0 as usize);
    request.pid = process.map_or(0, |process| process.pid);
    let end = process.and_then(|process| process.ended_ns).unwrap_or(timeline.end);
    request.until_end = end.saturating_sub(request.time);
    (request.device_total, request.device_free) = of_device(timeline, &request);
    request.stage = stage(&diagnosis.steps, request.time);
    Some(request)
}

fn empty(process: ProcessIndex, device: Option<u32>, time: u64, asked: Asked) -> FailedRequest {
    let not_recorded = "blocks of the framework's allocator were not recorded";
    FailedRequest {
        time,
        process,
        pid: 0,
        device,
        asked,
        bytes: 0,
        failures: 0,
        went_on: false,
        until_end: 0,
        device_total: None,
        device_free: None,
        taken: None,
        allocated: None,
        reserved: None,
        holes: Err(not_recorded.into()),
        holders: Vec::new(),
        categories: Vec::new(),
        stage: Stage::Unknown,
        setting: Err(not_recorded.into()),
    }
}

/// What the allocator itself tells of its failure.
fn of_event(timeline: &Timeline, diagnosis: &Diagnosis, at: usize) -> FailedRequest {
    let event = timeline.memory.events[at];
    let about = timeline.memory.allocator(event.allocator);
    let frames = Frames::new(timeline);
    let held = held_before(timeline, &frames, &diagnosis.steps, event.allocator, at);
    let mut request = FailedRequest {
        bytes: event.bytes,
        allocated: event.allocated.or(Some(held.bytes)),
        reserved: event.reserved,
        // A snapshot has it with the event.
        device_free: Some(event.address).filter(|free| *free > 0),
        holders: held.by_place.into_iter().filter(|holder| holder.stack.0 != 0).collect(),
        categories: held.by_category,
        ..empty(about.process, about.device, event.time, Asked::Allocator)
    };
    let of_snapshot = timeline.memory.states.iter().rev().find(|state| state.allocator == event.allocator);
    let later = |other: &MemoryEvent| other.allocator == event.allocator && other.kind == MemoryEventKind::Alloc;
    match of_snapshot {
        Some(_) if timeline.memory.events[at..].iter().any(later) => {
            let why = "the recorded state of the allocator is of later";
            (request.holes, request.setting) = (Err(why.into()), Err(why.into()));
        }
        Some(state) => settle(&mut request, map::of(timeline, &frames, state), &timeline.memory, event.allocator),
        None => match segments::until(timeline, event.allocator, at) {
            Ok(memory) => {
                let map = map::of(timeline, &frames, &memory.states[0]);
                settle(&mut request, map, &memory, AllocatorIndex(0));
            }
            Err(why) => {
                let why = memory_words::segments_unknown(why);
                (request.holes, request.setting) = (Err(why.into()), Err(why.into()));
            }
        },
    }
    request
}

/// Holes from the map, and the setting from a replay of the memory that it is of.
fn settle(request: &mut FailedRequest, map: map::BlockMap, memory: &timeline::Memory, allocator: AllocatorIndex) {
    request.holes = Ok(Holes { free: map.free, count: map.free_blocks, largest: map.largest_free });
    request.reserved = request.reserved.or(Some(map.reserved));
    // What the device had free could have been reserved as well. Where that is not known, nothing.
    let capacity = map.reserved.saturating_add(request.device_free.unwrap_or(0));
    request.setting = Simulator::new(memory, allocator).map_err(memory_words::not_simulated).and_then(|simulator| {
        let own = &simulator.recorded;
        if simulator.serves(own, request.bytes, capacity) {
            return Err("the simulated allocator serves it as it was set".into());
        }
        let expandable = (!own.expandable).then(|| Settings { expandable: true, ..own.clone() });
        let mut found = expandable.map(|settings| (Setting::ExpandableSegments, settings)).into_iter().chain(
            MAX_SPLITS
                .map(|mib| (Setting::MaxSplit { mib }, Settings { max_split: Some(mib << 20), ..own.clone() }))
                .into_iter()
                .filter(|_| !own.expandable && own.max_split.is_none()),
        );
        Ok(found.find(|(_, settings)| simulator.serves(settings, request.bytes, capacity)).map(|(name, _)| name))
    });
}

/// Whether the process was given memory of a device after it.
fn went_on(timeline: &Timeline, request: &FailedRequest) -> bool {
    let calls = timeline.gpu.allocations.iter();
    let by_driver = calls.filter(|call| call.process == request.process && call.time > request.time);
    let events = timeline.memory.events.iter().filter(|event| event.time > request.time);
    let own = |event: &MemoryEvent| {
        let about = timeline.memory.allocator(event.allocator);
        about.process == request.process && about.device.is_some() && event.kind == MemoryEventKind::Alloc
    };
    by_driver.clone().any(|call| call.allocates()) || events.clone().any(own)
}

/// The memory of the device, and what was free of it: from its counters, where the machine has one device, and so no doubt which.
fn of_device(timeline: &Timeline, request: &FailedRequest) -> (Option<u64>, Option<u64>) {
    let only = |name: &str| {
        let mut all = timeline.counters.iter().filter(|counter| &*counter.name == name && counter.process.is_none());
        all.next().filter(|_| all.next().is_none())
    };
    let level = |counter: &Counter| {
        let after = counter.time.partition_point(|time| *time <= request.time);
        after.checked_sub(1).and_then(|at| u64::try_from(counter.value[at]).ok())
    };
    let own = |device: &&timeline::gpu::Device| {
        Some(device.ordinal) == request.device && device.process.is_none_or(|process| process == request.process)
    };
    let known = timeline.gpu.devices.iter().find(own).and_then(|device| device.memory_bytes).filter(|bytes| *bytes > 0);
    let (used, total) = (only(counter_names::GPU_MEMORY_USED_BYTES), only(counter_names::GPU_MEMORY_TOTAL_BYTES));
    let total = total.and_then(level).or(known);
    let free = total.zip(used.and_then(level)).and_then(|(total, used)| total.checked_sub(used));
    (total, request.device_free.or(free))
}

/// When in the life of a program a moment is.
pub fn stage(steps: &Steps, time: u64) -> Stage {
    if steps.source == StepSource::Whole {
        return if steps.unfinished > 0 { Stage::FirstStep } else { Stage::Unknown };
    }
    let all = || steps.steps.iter().chain(&steps.apart).chain(&steps.looked_at);
    match all().filter(|step| step.end <= time).count() as u64 {
        0 if all().any(|step| step.start <= time) || steps.unfinished > 0 && all().next().is_none() => Stage::FirstStep,
        0 => Stage::StartUp,
        count => Stage::RunTime(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{Options, diagnose};

    fn of(text: &str) -> Option<FailedRequest> {
        let timeline = Timeline::from_text(text).unwrap();
        last(&timeline, &diagnose(&timeline, &Options::default()))
    }

    /// Eight segments of 20 MiB with two blocks of 9 MiB each; 16 MiB are asked for.
    fn split(more: &str) -> String {
        let mut text = String::from("device 0 GPU\n track main\n repeat 3 every 10ms\n step request 1ms..9ms\n end\n");
        for round in 0..8u64 {
            let (at, time) = (100 * (round + 1), 40_000 + round * 10);
            text += &format!("alloc {time}us {} at {}\n", 20 << 20, at << 20);
            text += &format!("block alloc {}us 9M at {at}M main>load@model.py:3\n", time + 1);
            text += &format!("block alloc {}us 9M at {}M\n", time + 2, at + 9);
        }
        format!("{text} failed 41500us 20971520 error 2\n oom 41600us 16M free 0\n{more}")
    }

    #[test]
    fn the_allocators_failure_has_its_holes_its_holders_and_what_would_have_helped() {
        let found = of(&split("")).unwrap();
        assert_eq!((found.asked, found.bytes, found.failures), (Asked::Allocator, 16 << 20, 1));
        assert_eq!((found.taken, found.allocated), (Some(160 << 20), Some(144 << 20)));
        assert_eq!(found.holes, Ok(Holes { free: 16 << 20, count: 8, largest: 2 << 20 }));
        assert_eq!((found.stage, found.went_on), (Stage::RunTime(3), false));
        assert_eq!((found.holders.len(), found.holders[0].bytes), (1, 72 << 20));
        assert_eq!(found.setting, Ok(Some(Setting::ExpandableSegments)), "the ends of the segments are one piece");
    }

    #[test]
    fn no_setting_is_named_where_there_is_not_enough() {
        let found = of(&split("").replace("oom 41600us 16M", "oom 41600us 40M")).unwrap();
        assert_eq!(found.setting, Ok(None));
    }

    #[test]
    fn a_program_that_is_given_memory_later_went_on() {
        assert!(of(&split("block alloc 42ms 1M at 100M")).unwrap().went_on);
        assert!(of(&split("alloc 42ms 4096 at 4096")).unwrap().went_on);
    }

    #[test]
    fn what_the_driver_refuses_is_known_without_the_allocator() {
        let found =
            of("device 0 GPU memory 80G\n track main\n alloc 1ms 1048576 at 16\n failed 2ms 4194304 error 2").unwrap();
        assert_eq!((found.asked, found.bytes, found.taken), (Asked::Driver, 4 << 20, Some(1 << 20)));
        assert_eq!((found.device_total, found.stage), (Some(80 << 30), Stage::Unknown));
        assert!(found.holes.is_err() && found.setting.is_err());
    }

    #[test]
    fn other_errors_are_no_lack_of_memory() {
        assert_eq!(of("device 0 GPU\n track main\n failed 2ms 4194304 error 1"), None);
        assert_eq!(of("track main\n step request 0..40ms"), None);
    }
}
