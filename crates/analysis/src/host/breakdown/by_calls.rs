//! Where the time of the steps goes by recorded calls: each moment belongs to the innermost call that is open. Exact, but a
//! call that waits looks like one that runs unless its name tells.

use super::handed;
use super::part::{Key, PartKind};
use crate::frames::{Frames, WAITS, is};
use crate::host::full_queue::FullQueue;
use crate::host::step_samples::DeviceWaits;
use crate::steps::windows::{StepSpans, Window};
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, Timeline, TrackIndex};

/// A call of CUDA's that takes this long without waiting for a device makes a context, takes memory or loads code.
const LONG_NS: u64 = 1_000_000;

/// What is looked at of each thread: the steps, and what they handed over to other threads.
pub fn stretches(timeline: &Timeline, windows: &StepSpans, of_steps: bool) -> Vec<(TrackIndex, Vec<Window>)> {
    let own = windows.tracks().map(|(track, range)| (track, windows.all()[range].to_vec()));
    let mut stretches: Vec<(TrackIndex, Vec<Window>)> = own.collect();
    if of_steps {
        let handed: Vec<Window> =
            stretches.iter().flat_map(|(track, _)| handed::find(timeline, windows, *track)).collect();
        for part in handed.chunk_by(|a, b| a.track == b.track && a.end <= b.start) {
            stretches.push((part[0].track, part.to_vec()));
        }
    }
    stretches
}

/// The time inside the windows by function, less what lies outside all calls. Of steps, also what they handed over to other threads.
pub fn times(
    timeline: &Timeline,
    windows: &StepSpans,
    frames: &Frames,
    queue: &FullQueue,
    of_steps: bool,
) -> Vec<(Key, u64)> {
    let mut sums: HashMap<(NameIndex, SliceKind), u64> = HashMap::new();
    let mut waits = DeviceWaits::new(timeline, frames, queue);
    for (track, windows) in &stretches(timeline, windows, of_steps) {
        let slices = timeline.tracks[track.0 as usize].slices.clone();
        let mut sweep = Sweep { windows, at: 0, cursor: 0 };
        let mut open: Vec<(u64, NameIndex, SliceKind)> = Vec::new();
        for index in slices {
            let kind = timeline.slices.kind(index);
            let slice = timeline.slices.get(index);
            let end = match kind {
                SliceKind::Call | SliceKind::CCall | SliceKind::Gc => Some((slice.end(), kind)),
                _ => waits.until(index).map(|end| (end, kind)).or_else(|| {
                    // So long a call of the driver's is not the doing of the operator around it.
                    (kind == SliceKind::ApiCall && slice.dur >= LONG_NS).then(|| (slice.end(), SliceKind::CCall))
                }),
            };
            let Some((end, kind)) = end else { continue };
            sweep.up_to(slice.start, &mut open, &mut sums);
            open.push((end, slice.name, kind));
        }
        sweep.up_to(u64::MAX, &mut open, &mut sums);
    }
    let key = |(name, kind): (NameIndex, SliceKind)| match kind {
        SliceKind::Gc => Key::of(PartKind::Gc),
        _ => {
            let kind = match kind {
                SliceKind::ApiCall | SliceKind::Overhead => PartKind::Gpu,
                _ if frames.bits(name) & is::WAITS_FOR_GPU != 0 => PartKind::Gpu,
                _ if frames.bits(name) & WAITS != 0 => PartKind::Waiting,
                SliceKind::CCall => PartKind::Native,
                _ => PartKind::Python,
            };
            Key { kind, name, line: timeline.names.get(name).line }
        }
    };
    let mut times: HashMap<Key, u64> = HashMap::new();
    for (call, ns) in sums {
        let sum = times.entry(key(call)).or_default();
        *sum = sum.saturating_add(ns);
    }
    times.into_iter().collect()
}

/// Walks forward in time over the windows of one track.
struct Sweep<'a> {
    windows: &'a [Window],
    /// The first window that does not end before the cursor.
    at: usize,
    cursor: u64,
}

type Open = Vec<(u64, NameIndex, SliceKind)>;

impl Sweep<'_> {
    /// Gives the time up to `time` to the calls that are open, innermost first, and closes those that end.
    fn up_to(&mut self, time: u64, open: &mut Open, sums: &mut HashMap<(NameIndex, SliceKind), u64>) {
        while let Some((end, name, kind)) = open.last().copied() {
            let until = end.min(time);
            let inside = self.advance(until);
            if inside > 0 {
                let sum = sums.entry((name, kind)).or_default();
                *sum = sum.saturating_add(inside);
            }
            if end > time {
                return;
            }
            open.pop();
        }
        self.advance(time);
    }

    /// Moves the cursor and returns how much of the way lies in windows. Never moves back.
    fn advance(&mut self, to: u64) -> u64 {
        let mut inside = 0;
        while let Some(window) = self.windows.get(self.at) {
            inside += to.min(window.end).saturating_sub(self.cursor.max(window.start));
            if window.end > to {
                break;
            }
            self.at += 1;
        }
        self.cursor = self.cursor.max(to);
        inside
    }
}
