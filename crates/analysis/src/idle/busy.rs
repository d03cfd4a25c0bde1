//! When a device was busy, and who launches its work. What the time between means is left to others.

use super::IdleInputs;
use std::collections::HashMap;
use std::ops::Range;
use timeline::TrackIndex;
use timeline::gpu::Stream;
use timeline::parallel::{self, Task};

/// Start, end, and the work that began it.
pub type Busy = (u64, u64, u32);

/// Fewer works than this are done before a thread has started.
const WORTH_A_PART: usize = 50_000;
const MOST: usize = 32;

/// When the device was busy, by time. `parts`: of the time; None: as many as it is worth.
pub fn spans(inputs: IdleInputs, streams: &[Stream], parts: Option<usize>) -> Vec<Busy> {
    let work = &inputs.timeline.gpu.work;
    let count: usize = streams.iter().map(|stream| stream.work.len()).sum();
    let parts = parts.unwrap_or((count / WORTH_A_PART).clamp(1, MOST));
    let longest = streams.iter().map(|stream| stream.work.clone()).max_by_key(|work| work.len()).unwrap_or_default();
    let each = longest.len().div_ceil(parts).max(1);
    let cuts = longest.step_by(each).skip(1).map(|index| Some(work.start[index])).chain([None]);
    let mut from: Vec<usize> = streams.iter().map(|stream| stream.work.start).collect();
    // Zeroes that nobody has touched yet: the memory comes with the thread that fills it.
    let mut all: Vec<Busy> = vec![(0, 0, 0); count];
    let mut rest = all.as_mut_slice();
    let mut found: Vec<Filling> = Vec::new();
    for cut in cuts {
        // The work of every stream that begins up to the cut.
        let until = |(stream, from): (&Stream, &mut usize)| {
            let begun = |cut: u64| *from + work.start[*from..stream.work.end].partition_point(|start| *start < cut);
            let until = cut.map_or(stream.work.end, begun);
            std::mem::replace(from, until)..until
        };
        let ranges: Vec<Range<usize>> = streams.iter().zip(&mut from).map(until).collect();
        let own = rest.split_off_mut(..ranges.iter().map(Range::len).sum()).unwrap_or_default();
        found.push(Filling { own, ranges, kept: 0 });
    }
    let tasks = found.iter_mut().map(|one| Box::new(|| one.fill(inputs)) as Task);
    parallel::run(count, tasks.collect(), || ());
    let places: Vec<(usize, usize)> = found.iter().map(|one| (one.own.len(), one.kept)).collect();
    let (mut from, mut end) = (0, 0);
    for (room, kept) in places {
        let mut first = from;
        // What reaches over the cut.
        while end > 0 && first < from + kept && all[first].0 <= all[end - 1].1 {
            all[end - 1].1 = all[end - 1].1.max(all[first].1);
            first += 1;
        }
        if end < first {
            all.copy_within(first..from + kept, end);
        }
        end += from + kept - first;
        from += room;
    }
    all.truncate(end);
    all
}

/// One part of the time.
struct Filling<'s> {
    /// Room for each of the works: the spans come to its front.
    own: &'s mut [Busy],
    /// The works, by stream.
    ranges: Vec<Range<usize>>,
    /// How many spans there are.
    kept: usize,
}

impl Filling<'_> {
    fn fill(&mut self, inputs: IdleInputs) {
        let (all, work) = (&mut *self.own, &inputs.timeline.gpu.work);
        let busy = self.ranges.iter().flat_map(Range::clone).filter(|index| work.kind(*index).is_busy());
        let spans = busy.map(|index| (work.start[index], work.end(index), index as u32)).filter(|span| span.0 < span.1);
        let mut count = 0;
        for (place, span) in all.iter_mut().zip(spans) {
            *place = span;
            count += 1;
        }
        // Streams come one after the other and each in order: the sort finds those runs.
        all[..count].sort();
        for place in 0..count {
            let span = all[place];
            match all[..self.kept].last_mut() {
                Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
                _ => {
                    all[self.kept] = span;
                    self.kept += 1;
                }
            }
        }
    }
}

/// The thread that launches most of the work.
pub fn usual_thread(inputs: IdleInputs, streams: &[Stream]) -> Option<TrackIndex> {
    let mut counts: HashMap<TrackIndex, u64> = HashMap::new();
    // A few thousand launches show who launches.
    const ENOUGH: usize = 4096;
    let each = streams.iter().map(|stream| stream.work.len()).sum::<usize>().div_ceil(ENOUGH).max(1);
    for index in streams.iter().flat_map(|stream| stream.work.clone()).step_by(each) {
        if let Some(launch) = inputs.timeline.gpu.work.launch(index) {
            *counts.entry(track_of(inputs, launch)).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(track, count)| (*count, std::cmp::Reverse(*track))).map(|(track, _)| track)
}

/// Of each stream: its works, and the first of them whose launch was recorded.
pub type FirstLinked = Vec<(Range<usize>, usize)>;

/// Streams without any are left out: where no launch was recorded, a missing one says nothing.
pub fn first_linked(inputs: IdleInputs, streams: &[Stream]) -> FirstLinked {
    let linked = |index: &usize| inputs.timeline.gpu.work.launch(*index).is_some();
    streams.iter().filter_map(|stream| Some((stream.work.clone(), stream.work.clone().find(linked)?))).collect()
}

pub fn track_of(inputs: IdleInputs, slice: usize) -> TrackIndex {
    TrackIndex(inputs.timeline.tracks.partition_point(|track| track.slices.end <= slice) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepAnalysis;
    use crate::steps::spans::Spans;
    use timeline::Timeline;

    #[test]
    fn busy_time_is_the_same_in_however_many_parts_it_is_found() {
        let mut text = String::from("track main\n");
        for stream in 0..3u64 {
            text += &format!("stream {stream}\n");
            for place in 0..150u64 {
                let at = place * (37 + stream) + place * place % 5;
                let end = at + [1, 3, 6, 40][(place * (stream + 1) % 11 / 3) as usize];
                text += &format!("kernel k {at}us..{end}us corr 0\n");
            }
        }
        let timeline = Timeline::from_text(&text).unwrap();
        let (case, work) = (StepAnalysis::new(&timeline, None), &timeline.gpu.work);
        let find = |parts| spans(IdleInputs::new(&case, case.chosen()), &timeline.gpu.streams, parts);
        let whole = find(Some(1));
        let union = Spans::union((0..work.len()).map(|index| (work.start[index], work.end(index))).collect());
        assert!(union.all().len() > 20 && union.all().len() < work.len() / 2);
        assert!(whole.iter().map(|span| (span.0, span.1)).eq(union.all().iter().copied()));
        assert!(whole.iter().all(|span| work.start[span.2 as usize] == span.0));
        for parts in [2, 7, 16, 1_000] {
            assert_eq!(find(Some(parts)), whole, "{parts}");
        }
    }
}
