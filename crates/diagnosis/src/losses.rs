//! What is missing from a recording: records that were lost, added up, and device work that was not recorded.

use crate::rule::Case;
use analysis::{DeviceIdle, phrase};
use std::collections::BTreeMap;
use timeline::{CollectorCode, LossReason, Spelled, Timeline};

/// Collectors that record devices.
const OF_DEVICES: [CollectorCode; 3] = [CollectorCode::Gpu, CollectorCode::Launches, CollectorCode::Layers];

pub fn is_of_device(collector: &Spelled<CollectorCode>) -> bool {
    collector.known().is_some_and(|code| OF_DEVICES.contains(&code))
}

pub fn is_torn(loss: &LossTotal) -> bool {
    loss.reason == LossReason::StackChanged
}

/// Of what was to be recorded, by kind: a few thousand stacks are nothing beside a million kernels, and may be half of all stacks.
pub fn worst_share(timeline: &Timeline, losses: &[LossTotal]) -> f64 {
    share_of_stacks(timeline, losses).max(share_without_stacks(timeline, losses))
}

pub fn share_of_stacks(timeline: &Timeline, losses: &[LossTotal]) -> f64 {
    share_of(losses, true, looks(timeline))
}

/// How often stacks were sampled. All threads of a process are sampled at once, and so are they lost.
fn looks(timeline: &Timeline) -> usize {
    let mut looks = timeline.samples.time.clone();
    looks.sort_unstable();
    looks.dedup();
    looks.len()
}

pub fn share_without_stacks(timeline: &Timeline, losses: &[LossTotal]) -> f64 {
    share_of(losses, false, timeline.slices.len() + timeline.gpu.work.len())
}

fn share_of(losses: &[LossTotal], stacks: bool, kept: usize) -> f64 {
    let of_kind = losses.iter().filter(|loss| (loss.collector == CollectorCode::Stacks) == stacks);
    let lost = of_kind.map(|loss| loss.count).fold(0, u64::saturating_add);
    lost as f64 / lost.saturating_add(kept as u64).max(1) as f64
}

pub struct LossTotal {
    pub collector: Spelled<CollectorCode>,
    pub reason: LossReason,
    pub count: u64,
    pub first: u64,
    pub last: u64,
    /// How many there would have been without any loss. 0: not known.
    pub of: u64,
}

impl LossTotal {
    /// `19 of 3,840 stack samples unreadable (0.5 %)`, `12 records overwritten before they could be written to disk (scopes)`
    pub fn text(&self) -> String {
        if is_torn(self) && self.of > 0 {
            let (count, of) = (phrase::count(self.count), phrase::counted(self.of, "stack sample"));
            return format!("{count} of {of} unreadable ({})", phrase::percent(self.count as f64 / self.of as f64));
        }
        format!("{} {} ({})", phrase::count(self.count), self.reason.said(self.count), self.collector)
    }
}

/// Losses of one kind added up, most first.
pub fn totals(timeline: &Timeline) -> Vec<LossTotal> {
    let mut all: BTreeMap<(&str, LossReason), LossTotal> = BTreeMap::new();
    for loss in timeline.losses.iter().filter(|loss| loss.count > 0) {
        let total = all.entry((&loss.collector, loss.reason)).or_insert_with(|| LossTotal {
            collector: loss.collector.clone(),
            reason: loss.reason,
            count: 0,
            first: loss.time,
            last: loss.time,
            of: 0,
        });
        total.count = total.count.saturating_add(loss.count);
        total.first = total.first.min(loss.time);
        total.last = total.last.max(loss.time);
    }
    let mut all: Vec<LossTotal> = all.into_values().collect();
    if all.iter().any(is_torn) {
        let lost = all.iter().filter(|loss| loss.collector == CollectorCode::Stacks).map(|loss| loss.count);
        let of = lost.fold(looks(timeline) as u64, u64::saturating_add);
        all.iter_mut().filter(|loss| is_torn(loss)).for_each(|loss| loss.of = of);
    }
    all.sort_by_key(|loss| u64::MAX - loss.count);
    all
}

/// The device that lacks most.
pub fn lacks_most<'a>(case: &'a Case) -> Option<&'a DeviceIdle> {
    case.idle().iter().max_by(|a, b| a.held().total_cmp(&b.held()))
}
