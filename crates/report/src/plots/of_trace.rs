//! What a recording or a snapshot has that can be drawn. What is asked for and missing is said, with how to record it.

use super::{Drawing, PlotKind, attribution, curves, heat_map, lifetimes};
use crate::blocks::{self, moment};
use analysis::Steps;
use analysis::frames::Frames;
use analysis::memory::heat::{self, HeatBy};
use analysis::memory::{attribution as attributed, is_all, levels, lives, name};
use curves::{Clock, Series};
use timeline::memory::AllocatorIndex;
use timeline::{Counter, ProcessIndex, Timeline, counters as counter_names};

/// Of more devices or allocators nobody reads the pictures.
const MOST_PANELS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// None: the first of attribution, lifetimes and timeline that there is.
    pub kind: Option<PlotKind>,
    pub by: HeatBy,
    /// Only this device. None: each.
    pub device: Option<u32>,
}

/// At least one drawing. Err: why there is none.
pub fn of_trace(timeline: &Timeline, asked: &Asked) -> Result<Vec<Drawing>, String> {
    let steps = Steps::find(timeline, None);
    let trace = Trace { timeline, steps, frames: Frames::new(timeline), asked };
    let Some(kind) = asked.kind else {
        return trace
            .attribution()
            .or_else(|_| trace.lifetimes())
            .or_else(|_| trace.timeline())
            .map_err(|_| "no memory in it: neither allocations nor counters of memory were recorded".to_owned());
    };
    match kind {
        PlotKind::Timeline => trace.timeline(),
        PlotKind::Attribution => trace.attribution(),
        PlotKind::HeatMap => trace.heat_map(),
        PlotKind::Lifetimes => trace.lifetimes(),
        PlotKind::Ranks => trace.ranks(),
        PlotKind::Functions => Err("functions are drawn from telemetry of profiled calls (inferscope.memory); for a recording there is `--kind heatmap`".into()),
    }
}

struct Trace<'a> {
    timeline: &'a Timeline,
    steps: Steps,
    frames: Frames,
    asked: &'a Asked,
}

impl Trace<'_> {
    fn attribution(&self) -> Result<Vec<Drawing>, String> {
        if is_all(self.timeline) {
            return Err("a snapshot has no readings of the driver: record the program with `inferscope run`".into());
        }
        let devices = attributed::measure(self.timeline, &self.steps);
        let devices: Vec<_> = devices.iter().filter(|one| self.takes(Some(one.device))).take(MOST_PANELS).collect();
        if devices.is_empty() {
            return Err(format!(
                "no GPU memory recorded{}: the program allocated none, or ran without CUDA",
                self.on_device()
            ));
        }
        let drawn: Vec<_> = devices.into_iter().map(|one| attribution::draw(self.timeline, one)).collect();
        match drawn.iter().any(Result::is_ok) {
            true => Ok(drawn.into_iter().flatten().collect()),
            false => Err(drawn.into_iter().find_map(Result::err).unwrap_or_default()),
        }
    }

    fn lifetimes(&self) -> Result<Vec<Drawing>, String> {
        let allocators = self.with_events()?;
        let draw = |allocator: &AllocatorIndex| {
            let drawn = blocks::of(self.timeline, &self.frames, &self.steps, *allocator, lifetimes::LIMITS);
            let title = format!("Blocks of PyTorch's allocator, {}", name(self.timeline, *allocator));
            lifetimes::draw(self.timeline, &title, &drawn)
        };
        Ok(allocators.iter().map(draw).collect())
    }

    fn heat_map(&self) -> Result<Vec<Drawing>, String> {
        let (allocators, by) = (self.with_events()?, self.asked.by);
        let what = if by == HeatBy::Line { "line" } else { "layer" };
        let draw = |allocator: &AllocatorIndex| {
            let map = heat::of(self.timeline, &self.frames, &self.steps, *allocator, by, heat_map::MOST_ROWS)?;
            let title = format!("Allocations by {what}, {}", name(self.timeline, *allocator));
            (!map.rows.is_empty()).then(|| heat_map::draw(&title, &map, by, |time| moment(self.timeline, time)))
        };
        let drawn: Vec<Drawing> = allocators.iter().filter_map(draw).collect();
        match (drawn.is_empty(), by) {
            (false, _) => Ok(drawn),
            (true, HeatBy::Layer) => Err("no layers recorded: record with --layers".into()),
            (true, HeatBy::Line) => Err("no block was allocated in a step".into()),
        }
    }

    /// What allocators hold, what devices have in use and what processes have in memory, as curves.
    fn timeline(&self) -> Result<Vec<Drawing>, String> {
        let mut series = Vec::new();
        for allocator in self.allocators() {
            let lives = lives::of(&self.timeline.memory, allocator);
            let Some(levels) = levels::of(self.timeline, allocator, &lives) else { continue };
            let of = name(self.timeline, allocator);
            let held =
                |what: &str, points, dashed| Series { name: format!("{of}: {what}"), points, held: true, dashed };
            series.extend(levels.reserved.map(|points| held("reserved by PyTorch", points, true)));
            series.push(held("in use by PyTorch", levels.in_use, false));
        }
        let used =
            self.timeline.counters.iter().filter(|counter| &*counter.name == counter_names::GPU_MEMORY_USED_BYTES);
        for counter in used {
            let device = counter.tid.and_then(|tid| u32::try_from(tid).ok());
            if self.takes(device) {
                let name = format!("GPU {}: in use, by its driver", device.unwrap_or(0));
                series.push(Series { name, points: points(counter), held: false, dashed: false });
            }
        }
        if self.asked.device.is_none() {
            series.extend(self.resident());
        }
        let drawn = curves::draw("Memory over time", &series, &[], self.clock());
        drawn.map(|drawing| vec![drawing]).ok_or_else(|| {
            format!(
                "no memory over time{}: record with --memory-hz above 0, or GPU memory with --memory-events gpu",
                self.on_device()
            )
        })
    }

    /// One curve a rank: what its allocator has in use, or its process in memory.
    fn ranks(&self) -> Result<Vec<Drawing>, String> {
        let of_rank = |process: ProcessIndex| self.timeline.processes.get(process.0 as usize)?.rank;
        let mut series: Vec<(u32, Series)> = Vec::new();
        for allocator in self.allocators() {
            let about = self.timeline.memory.allocator(allocator);
            let lives = lives::of(&self.timeline.memory, allocator);
            let levels = levels::of(self.timeline, allocator, &lives);
            if let (Some(rank), Some(device), Some(levels)) = (of_rank(about.process), about.device, levels) {
                let name = format!("rank {rank}: in use by PyTorch on its GPU {device}");
                series.push((rank, Series { name, points: levels.in_use, held: true, dashed: false }));
            }
        }
        if series.is_empty() && self.asked.device.is_none() {
            for (number, process) in self.timeline.processes.iter().enumerate() {
                let found = self.rss(ProcessIndex(number as u32));
                if let (Some(rank), Some(counter)) = (process.rank, found) {
                    let name = format!("rank {rank}: memory of its process (RSS)");
                    series.push((rank, Series { name, points: points(counter), held: false, dashed: false }));
                }
            }
        }
        series.sort_by_key(|(rank, _)| *rank);
        let series: Vec<Series> = series.into_iter().map(|(_, one)| one).collect();
        let drawn = curves::draw("Memory by rank", &series, &[], self.clock());
        drawn
            .map(|drawing| vec![drawing])
            .ok_or_else(|| "no ranks recorded: record a program that torchrun, Open MPI or Slurm starts".into())
    }

    fn resident(&self) -> Vec<Series> {
        let several = self.timeline.processes.len() > 1;
        let one = |(number, process): (usize, &timeline::Process)| {
            let of = if several { format!(" of pid {}", process.pid) } else { String::new() };
            let counter = self.rss(ProcessIndex(number as u32))?;
            Some(Series { name: format!("process{of} (RSS)"), points: points(counter), held: false, dashed: false })
        };
        self.timeline.processes.iter().enumerate().filter_map(one).collect()
    }

    fn rss(&self, process: ProcessIndex) -> Option<&Counter> {
        let counters = &self.timeline.counters;
        counters
            .iter()
            .find(|one| one.process == Some(process) && &*one.name == counter_names::RSS_BYTES && one.tid.is_none())
    }

    /// Those with blocks over time. Err: there is none, and why.
    fn with_events(&self) -> Result<Vec<AllocatorIndex>, String> {
        let events = &self.timeline.memory.events;
        let mut own = self.allocators();
        own.retain(|allocator| events.iter().any(|event| event.allocator == *allocator));
        own.truncate(MOST_PANELS);
        match (own.is_empty(), is_all(self.timeline)) {
            (false, _) => Ok(own),
            (true, true) => Err(format!(
                "the snapshot has no history{}: call torch.cuda.memory._record_memory_history() before what it should show",
                self.on_device()
            )),
            (true, false) => Err(format!("no blocks recorded{}: record with --memory-events gpu", self.on_device())),
        }
    }

    fn allocators(&self) -> Vec<AllocatorIndex> {
        let all = &self.timeline.memory.allocators;
        let takes = |one: &AllocatorIndex| self.takes(all[one.0 as usize].device);
        (0..all.len() as u32).map(AllocatorIndex).filter(takes).collect()
    }

    fn clock(&self) -> Clock {
        Clock { origin: Some(self.timeline.start), counts: self.timeline.memory.ordered_only }
    }

    fn takes(&self, device: Option<u32>) -> bool {
        self.asked.device.is_none() || self.asked.device == device
    }

    fn on_device(&self) -> String {
        self.asked.device.map_or(String::new(), |device| format!(" on GPU {device}"))
    }
}

fn points(counter: &Counter) -> Vec<(u64, u64)> {
    counter.time.iter().zip(&counter.value).map(|(time, value)| (*time, u64::try_from(*value).unwrap_or(0))).collect()
}
