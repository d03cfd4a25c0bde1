//! The slices of one label as steps, or the turns of the loop around them.

use super::Step;
use super::called::Called;
use super::candidates::{Place, place_of};
use timeline::{Detail, ProcessIndex, SliceKind, Timeline, TrackIndex};

fn step(track: usize, start: u64, end: u64) -> Step {
    Step { track: TrackIndex(track as u32), start, end, index: 0, warmup: false, outlier: false }
}

/// The finished slices of one label, without those inside another of the same (recursion).
pub fn slices(timeline: &Timeline, called: &mut Called, what: (Place, u32)) -> Vec<Step> {
    let slices = &timeline.slices;
    let mut inside = Ids::default();
    let mut process = ProcessIndex(u32::MAX);
    let mut steps = Vec::new();
    for (number, track) in timeline.tracks.iter().enumerate() {
        if track.process != process {
            process = track.process;
            inside = Ids { most: 64 * slices.len() as u64 + 1024, ..Ids::default() };
        }
        let mut last_end = 0;
        for index in track.slices.clone() {
            let Some(found) = place_of(timeline, called, index) else { continue };
            let (slice, wanted) = (slices.get(index), found == what);
            if !wanted && slice.kind == SliceKind::Nvtx {
                continue;
            }
            // Ranges have no ids of ours.
            let detail = if slice.kind == SliceKind::Nvtx { Detail::default() } else { slices.detail(index) };
            let nested = match detail.id {
                0 => slice.start < last_end && slice.end() <= last_end,
                _ => inside.has(detail.parent),
            };
            if detail.id != 0 && (wanted || nested) {
                inside.put(detail.id);
            }
            if wanted && !nested && !slice.open {
                last_end = last_end.max(slice.end());
                steps.push(step(number, slice.start, slice.end()));
            }
        }
    }
    steps
}

/// The turns of the loop around the calls of one label. `others` are the labels of other entry points: where `ends_when_crossed`, a
/// turn in which one of them is entered ends with its call.
pub fn turns(
    timeline: &Timeline,
    called: &mut Called,
    label: u32,
    others: &[u32],
    ends_when_crossed: bool,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, track) in timeline.tracks.iter().enumerate() {
        let mut here: Option<(u64, u64)> = None;
        let mut crosses = false;
        for index in track.slices.clone() {
            let Some((Place::Entry, found)) = place_of(timeline, called, index) else { continue };
            let slice = timeline.slices.get(index);
            if slice.open || found == label && here.is_some_and(|(_, end)| slice.end() <= end) {
                continue;
            }
            if found != label {
                crosses |= others.contains(&found);
                continue;
            }
            if let Some((start, end)) = here.replace((slice.start, slice.end())) {
                let left = crosses && ends_when_crossed;
                steps.push(step(number, start, if left { end } else { slice.start }));
            }
            crosses = false;
        }
    }
    steps
}

/// A set of ids: one bit each, as the recorder gives them out in sequence. An absurd one is not kept.
#[derive(Default)]
struct Ids {
    bits: Vec<u64>,
    most: u64,
}

impl Ids {
    fn has(&self, id: u32) -> bool {
        self.bits.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    fn put(&mut self, id: u32) {
        if u64::from(id) < self.most {
            let word = id as usize / 64;
            if word >= self.bits.len() {
                self.bits.resize(word + 1, 0);
            }
            self.bits[word] |= 1 << (id % 64);
        }
    }
}
