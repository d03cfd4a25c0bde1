//! `measure`: the first look at a timeline, all of it in one value.

pub mod absent;
pub mod calls;
pub mod processes;
pub mod samples;

use crate::stats::curve::{self, Curve};
use crate::stats::spread::{self, Spread};
use absent::Absent;
use calls::CallMetrics;
use processes::{ProcessMetrics, ThreadMetrics};
use samples::SampleMetrics;
use std::collections::HashMap;
use timeline::{CollectorCode, LossReason, NameIndex, SliceKind, Spelled, Timeline, counters as counter_names};

#[derive(Debug)]
pub struct Metrics {
    pub duration: u64,
    pub slices: usize,
    pub counter_points: usize,
    pub processes: Vec<ProcessMetrics>,
    /// Most CPU time first.
    pub threads: Vec<ThreadMetrics>,
    pub samples: Option<SampleMetrics>,
    pub calls: Option<CallMetrics>,
    /// Each list has the largest total first.
    pub steps: Vec<Spread>,
    pub scopes: Vec<Spread>,
    pub pauses: Vec<Spread>,
    /// Most frequent first.
    pub marks: Vec<(NameIndex, u64)>,
    /// Cores in use.
    pub cpu: Option<Curve>,
    /// Resident bytes of all recorded processes together.
    pub memory: Option<Curve>,
    pub losses: Vec<LossTotal>,
    pub absent: Vec<Absent>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LossTotal {
    pub collector: Spelled<CollectorCode>,
    pub reason: LossReason,
    pub count: u64,
}

pub fn measure(timeline: &Timeline) -> Metrics {
    let mut metrics = Metrics {
        duration: timeline.duration(),
        slices: timeline.slices.len(),
        counter_points: timeline.counters.iter().map(|counter| counter.time.len()).sum(),
        processes: processes::processes(timeline),
        threads: processes::threads(timeline),
        samples: samples::measure(timeline),
        calls: calls::measure(timeline),
        steps: spread::measure(timeline, SliceKind::Step),
        scopes: spread::measure(timeline, SliceKind::Scope),
        pauses: spread::measure(timeline, SliceKind::Gc),
        marks: marks(timeline),
        cpu: curve::cpu(timeline),
        memory: curve::memory(timeline, counter_names::RSS_BYTES),
        losses: losses(timeline),
        absent: Vec::new(),
    };
    metrics.absent = absent::find(timeline, &metrics);
    metrics
}

fn marks(timeline: &Timeline) -> Vec<(NameIndex, u64)> {
    let mut counts: HashMap<NameIndex, u64> = HashMap::new();
    for index in (0..timeline.slices.len()).filter(|index| timeline.slices.kind(*index) == SliceKind::Mark) {
        *counts.entry(timeline.slices.get(index).name).or_default() += 1;
    }
    let mut marks: Vec<_> = counts.into_iter().collect();
    marks.sort_by_key(|(name, count)| (u64::MAX - count, *name));
    marks
}

fn losses(timeline: &Timeline) -> Vec<LossTotal> {
    let mut totals: Vec<LossTotal> = Vec::new();
    let mut places: HashMap<(&str, LossReason), usize> = HashMap::new();
    for loss in timeline.losses.iter().filter(|loss| loss.count > 0) {
        let place = *places.entry((&loss.collector, loss.reason)).or_insert(totals.len());
        if place == totals.len() {
            totals.push(LossTotal { collector: loss.collector.clone(), reason: loss.reason, count: 0 });
        }
        totals[place].count = totals[place].count.saturating_add(loss.count);
    }
    totals.sort_by_key(|loss| u64::MAX - loss.count);
    totals
}
