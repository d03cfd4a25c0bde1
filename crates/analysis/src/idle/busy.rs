//! When a device was busy, and who launches its work. What the time between means is left to others.

use super::scene::Scene;
use std::collections::HashMap;
use std::ops::Range;
use timeline::TrackIndex;
use timeline::gpu::Stream;

/// Start, end, and the work that began it.
pub type Busy = (u64, u64, u32);

/// When the device was busy, by time.
pub fn spans(scene: Scene, streams: &[Stream]) -> Vec<Busy> {
    let work = &scene.timeline.gpu.work;
    let busy = streams.iter().flat_map(|stream| stream.work.clone()).filter(|index| work.kind(*index).is_busy());
    let mut all: Vec<Busy> =
        busy.map(|index| (work.start[index], work.end(index), index as u32)).filter(|span| span.0 < span.1).collect();
    // Streams come one after the other and each in order: the sort finds those runs.
    all.sort();
    all.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
    all
}

/// The thread that launches most of the work.
pub fn usual_thread(scene: Scene, streams: &[Stream]) -> Option<TrackIndex> {
    let mut counts: HashMap<TrackIndex, u64> = HashMap::new();
    // A few thousand launches show who launches.
    const ENOUGH: usize = 4096;
    let each = streams.iter().map(|stream| stream.work.len()).sum::<usize>().div_ceil(ENOUGH).max(1);
    for index in streams.iter().flat_map(|stream| stream.work.clone()).step_by(each) {
        if let Some(launch) = scene.timeline.gpu.work.launch(index) {
            *counts.entry(track_of(scene, launch)).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(track, count)| (*count, std::cmp::Reverse(*track))).map(|(track, _)| track)
}

/// Of each stream: its works, and the first of them whose launch was recorded. Streams without any are left out: where no launch
/// was recorded, a missing one says nothing.
pub fn first_linked(scene: Scene, streams: &[Stream]) -> Vec<(Range<usize>, usize)> {
    let linked = |index: &usize| scene.timeline.gpu.work.launch(*index).is_some();
    streams.iter().filter_map(|stream| Some((stream.work.clone(), stream.work.clone().find(linked)?))).collect()
}

pub fn track_of(scene: Scene, slice: usize) -> TrackIndex {
    TrackIndex(scene.timeline.tracks.partition_point(|track| track.slices.end <= slice) as u32)
}
