//! What is missing from a recording: records that were lost, added up, and device work that was not recorded.

use crate::rule::Case;
use analysis::{DeviceIdle, phrase};
use std::collections::BTreeMap;
use timeline::Timeline;

/// Collectors that record devices.
pub const COLLECTORS: [&str; 3] = ["gpu", "launches", "layers"];

pub fn is_torn(loss: &LossTotal) -> bool {
    loss.what.ends_with("changed meanwhile")
}

/// Of what was to be recorded, by kind: a few thousand stacks are nothing beside a million kernels, and may be half of all stacks.
pub fn worst_share(timeline: &Timeline, losses: &[LossTotal]) -> f64 {
    // All threads of a process are looked at at once, and so are they lost.
    let mut looks = timeline.samples.time.clone();
    looks.sort_unstable();
    looks.dedup();
    share_of(losses, true, looks.len()).max(share_without_stacks(timeline, losses))
}

pub fn share_without_stacks(timeline: &Timeline, losses: &[LossTotal]) -> f64 {
    share_of(losses, false, timeline.slices.len() + timeline.gpu.work.len())
}

fn share_of(losses: &[LossTotal], stacks: bool, kept: usize) -> f64 {
    let of_kind = losses.iter().filter(|loss| (loss.collector == "stacks") == stacks);
    let lost = of_kind.map(|loss| loss.count).fold(0, u64::saturating_add);
    lost as f64 / lost.saturating_add(kept as u64).max(1) as f64
}

pub struct LossTotal {
    pub collector: String,
    pub what: String,
    pub count: u64,
    pub first: u64,
    pub last: u64,
}

impl LossTotal {
    pub fn said(&self) -> String {
        let what = if self.count == 1 { of_one(&self.what) } else { self.what.clone() };
        format!("{} {what} ({})", phrase::count(self.count), self.collector)
    }
}

/// What was lost is written down for many: "stacks that changed while they were read".
fn of_one(what: &str) -> String {
    let mut words: Vec<&str> = what.split(' ').collect();
    // The noun is the first word or, as in "stack samples", the second.
    if let Some(noun) = words.iter_mut().take(2).find(|word| word.ends_with('s')) {
        *noun = &noun[..noun.len() - 1];
    }
    words.iter_mut().filter(|word| **word == "they").for_each(|word| *word = "it");
    words.join(" ").replace(" it were ", " it was ")
}

/// Losses of one kind added up, most first.
pub fn totals(timeline: &Timeline) -> Vec<LossTotal> {
    let mut all: BTreeMap<(&str, &str), LossTotal> = BTreeMap::new();
    for loss in timeline.losses.iter().filter(|loss| loss.count > 0) {
        let total = all.entry((&loss.collector, &loss.what)).or_insert_with(|| LossTotal {
            collector: loss.collector.clone(),
            what: loss.what.clone(),
            count: 0,
            first: loss.time,
            last: loss.time,
        });
        total.count = total.count.saturating_add(loss.count);
        total.first = total.first.min(loss.time);
        total.last = total.last.max(loss.time);
    }
    let mut all: Vec<LossTotal> = all.into_values().collect();
    all.sort_by_key(|loss| u64::MAX - loss.count);
    all
}

/// The device that lacks most.
pub fn lacks_most<'a>(case: &'a Case) -> Option<&'a DeviceIdle> {
    case.idle().iter().max_by(|a, b| a.held().total_cmp(&b.held()))
}
