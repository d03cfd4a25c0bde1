//! What changes touch: pieces of the devices' work, and stretches of the host's threads. Two findings that touch the same are of the same time, whatever
//! numbers they come to. Changes of everything (all launches, all copies) name nothing here.

use crate::expression::Change;
use crate::gain::Gain;
use analysis::StepAnalysis;
use analysis::steps::spans::Spans;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Timeline, TrackIndex};

pub struct Touched<'a> {
    timeline: &'a Timeline,
    work: BTreeSet<u32>,
    host: BTreeMap<TrackIndex, Spans>,
}

pub fn by<'a>(case: &StepAnalysis<'a>, changes: &[Change]) -> Touched<'a> {
    let timeline = case.timeline;
    let (mut work, mut host) = (BTreeSet::new(), BTreeMap::<TrackIndex, Vec<(u64, u64)>>::new());
    for change in changes {
        match change {
            Change::Work(pieces, _) => work.extend(pieces),
            Change::Stretches(stretches, _) => {
                stretches.iter().for_each(|(track, from, to)| host.entry(*track).or_default().push((*from, *to)));
            }
            Change::Calls(calls, _) => calls.iter().for_each(|call| {
                let track = timeline.tracks.partition_point(|track| track.slices.end <= *call as usize);
                let slice = timeline.slices.get(*call as usize);
                host.entry(TrackIndex(track as u32)).or_default().push((slice.start, slice.end()));
            }),
            Change::Scale(..) | Change::PinCopies | Change::GraphSteps | Change::CloseGaps | Change::HostCode(_) => {}
        }
    }
    let host = host.into_iter().map(|(track, all)| (track, Spans::union(all))).collect();
    Touched { timeline, work, host }
}

impl Touched<'_> {
    pub fn ns(&self) -> u64 {
        self.shared_ns(self)
    }

    /// The time of what both touch.
    pub fn shared_ns(&self, other: &Touched) -> u64 {
        let work = self.work.intersection(&other.work).map(|index| self.timeline.gpu.work.dur[*index as usize]);
        let host = self.host.iter().filter_map(|(track, spans)| Some((spans, other.host.get(track)?)));
        let host = host.map(|(one, two)| one.all().iter().map(|(from, to)| two.overlap(*from, *to)).sum());
        work.chain(host).fold(0, u64::saturating_add)
    }
}

impl super::ReplayedSteps<'_> {
    /// Whether a gain is of a change of everything (all launches, all gaps), which names nothing in the step.
    pub fn changes_everything(&self, gain: &Gain) -> bool {
        let asked = self.asked();
        let change = gain.change.and_then(|id| asked.get(id.0 as usize));
        change.is_some_and(|asked| by(self, &asked.changes).ns() == 0)
    }

    /// The part of what the one's change touches that the other's touches, too. None: one of them is not known, or touches nothing by name.
    pub fn covered(&self, one: &Gain, other: &Gain) -> Option<f64> {
        let asked = self.asked();
        let of = |gain: &Gain| gain.change.and_then(|id| asked.get(id.0 as usize));
        let (one, other) = (by(self, &of(one)?.changes), by(self, &of(other)?.changes));
        let ns = one.ns();
        (ns > 0).then(|| one.shared_ns(&other) as f64 / ns as f64)
    }
}
