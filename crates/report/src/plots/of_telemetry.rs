//! Pictures of memory telemetry: what processes, allocators and devices held over time, by rank, and what functions kept.

use super::curves::{self, Clock, Series};
use super::{Drawing, PlotKind, bars};
use analysis::memory::levels::{Steps, thinned};
use std::collections::BTreeMap;
use telemetry::{Event, EventType};

/// A curve is thinned when it has so many points: a week has millions.
const MOST_POINTS: usize = 200_000;
const THINNED: usize = 20_000;
/// Curves, functions and moments beyond this are counted only.
const MOST_NAMES: usize = 4_096;

/// Of which session, device and rank; and which of its counters.
type Key = (String, i64, Option<u32>, &'static str);

/// What events said, as far as it can be drawn.
#[derive(Default)]
pub struct Telemetry {
    curves: BTreeMap<Key, Steps>,
    moments: Vec<(u64, String)>,
    /// By function: what it kept, and its peak.
    kept: BTreeMap<String, i128>,
    peaks: BTreeMap<String, i128>,
}

/// From the first sample on: telemetry has the time of day, and no begin.
const CLOCK: Clock = Clock { origin: None, counts: false };
const PROCESS: &str = "program";

impl Telemetry {
    pub fn take(&mut self, event: &Event) {
        let context = || event.context.as_deref().unwrap_or_default().to_owned();
        match event.kind {
            EventType::Sample => self.sample(event),
            EventType::PhaseEnter | EventType::Warning | EventType::Critical | EventType::Error
                if self.moments.len() < MOST_NAMES =>
            {
                let name = if event.context.is_some() { context() } else { event.kind.name().to_owned() };
                self.moments.push((event.time_ns, name));
            }
            EventType::Allocation | EventType::Deallocation => {
                if let (Some(name), Some(change)) = (slot(&mut self.kept, context()), event.counters.change) {
                    *name += i128::from(change);
                }
            }
            EventType::Peak => {
                if let (Some(name), Some(peak)) = (slot(&mut self.peaks, context()), event.counters.allocated) {
                    *name = (*name).max(i128::from(peak));
                }
            }
            _ => {}
        }
    }

    fn sample(&mut self, event: &Event) {
        let (source, counters) = (&event.source, &event.counters);
        let used = counters.used.filter(|_| source.device_id >= 0);
        for (what, value) in [
            (PROCESS, process_bytes(event)),
            ("allocated", counters.allocated),
            ("reserved", counters.reserved),
            ("used", used),
        ] {
            let Some(value) = value else { continue };
            let key = (source.session.clone(), source.device_id, source.identity.rank, what);
            if self.curves.len() >= MOST_NAMES && !self.curves.contains_key(&key) {
                continue;
            }
            let points = self.curves.entry(key).or_default();
            points.push((event.time_ns, value));
            if points.len() > MOST_POINTS {
                points.sort_unstable();
                *points = thinned(points, THINNED);
            }
        }
    }

    /// At least one drawing. Err: why there is none. No kind: ranks where there are several, else the timeline, else functions.
    pub fn draw(mut self, kind: Option<PlotKind>) -> Result<Vec<Drawing>, String> {
        for points in self.curves.values_mut() {
            // Files of several processes are read one after the other, and clocks are set.
            points.sort_unstable();
        }
        self.moments.sort();
        match kind {
            None if self.ranks() > 1 => self.by_rank(),
            None => self.timeline().or_else(|_| self.functions()).map_err(|_| "it has no samples of memory".into()),
            Some(PlotKind::Timeline) => self.timeline(),
            Some(PlotKind::Ranks) => self.by_rank(),
            Some(PlotKind::Functions) => self.functions(),
            Some(PlotKind::Attribution) => Err(recorded("what every byte is for")),
            Some(PlotKind::HeatMap) => Err(recorded("which lines allocate")),
            Some(PlotKind::Lifetimes) => Err(recorded("single blocks")),
        }
    }

    fn ranks(&self) -> usize {
        let mut ranks: Vec<u32> = self.curves.keys().filter_map(|key| key.2).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len()
    }

    fn timeline(&self) -> Result<Vec<Drawing>, String> {
        let sessions = self.curves.keys().map(|key| &key.0).collect::<std::collections::BTreeSet<_>>().len();
        let ranks = self.ranks();
        let name = |(session, device, rank, what): &Key| {
            let session = if sessions > 1 { format!("{session}, ") } else { String::new() };
            let rank = rank.filter(|_| ranks > 1).map_or(String::new(), |rank| format!("rank {rank}, "));
            format!("{session}{rank}{}: {what}", place(*device))
        };
        let series = self.curves.iter().map(|(key, points)| Series {
            name: name(key),
            points: points.clone(),
            held: false,
            dashed: key.3 == "reserved",
        });
        let drawn = curves::draw("Memory over time", &series.collect::<Vec<_>>(), &self.moments, CLOCK);
        drawn.map(|drawing| vec![drawing]).ok_or_else(|| "it has no samples of memory".into())
    }

    /// Of each rank what its processes hold, else what their allocator has handed out.
    fn by_rank(&self) -> Result<Vec<Drawing>, String> {
        let mut ranks: BTreeMap<(Option<u32>, i64), Steps> = BTreeMap::new();
        for what in [PROCESS, "allocated"] {
            for ((_, device, rank, _), points) in self.curves.iter().filter(|(key, _)| key.3 == what) {
                ranks.entry((*rank, *device)).or_default().extend(points);
            }
            if !ranks.is_empty() {
                break;
            }
        }
        if ranks.keys().all(|(rank, _)| rank.is_none()) {
            return Err("it has no ranks: track a program that torchrun, Open MPI or Slurm starts".into());
        }
        let series = ranks.into_iter().map(|((rank, device), mut points)| {
            points.sort_unstable();
            let rank = rank.map_or("no rank".to_owned(), |rank| format!("rank {rank}"));
            Series { name: format!("{rank}, {}", place(device)), points, held: false, dashed: false }
        });
        let drawn = curves::draw("Memory by rank", &series.collect::<Vec<_>>(), &self.moments, CLOCK);
        drawn.map(|drawing| vec![drawing]).ok_or_else(|| "it has no samples of memory".into())
    }

    fn functions(&self) -> Result<Vec<Drawing>, String> {
        let bars = [("Memory kept by function", &self.kept), ("Peak memory by function", &self.peaks)];
        let draw = |(title, values): (&str, &BTreeMap<String, i128>)| {
            bars::draw(title, values.iter().map(|(name, value)| (name.clone(), *value)).collect())
        };
        let drawn: Vec<Drawing> = bars.into_iter().filter_map(draw).collect();
        match drawn.is_empty() {
            false => Ok(drawn),
            true => Err("it has no profiled functions: profile calls with inferscope.memory".into()),
        }
    }
}

fn slot(of: &mut BTreeMap<String, i128>, name: String) -> Option<&mut i128> {
    (of.len() < MOST_NAMES || of.contains_key(&name)).then(|| of.entry(name).or_default())
}

fn process_bytes(event: &Event) -> Option<u64> {
    let metadata = event.metadata.as_deref().filter(|text| text.contains("\"process_bytes\""))?;
    serde_json::from_str::<serde_json::Value>(metadata).ok()?.get("process_bytes")?.as_u64()
}

fn place(device: i64) -> String {
    if device < 0 { "host".into() } else { format!("device {device}") }
}

fn recorded(what: &str) -> String {
    format!(
        "telemetry does not know {what}: record the program with `inferscope run --memory-events gpu`, and plot its trace"
    )
}
