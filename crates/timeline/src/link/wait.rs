//! What a wait waited for: the work of its stream, or of all streams of its context, that was launched before the wait began
//! and ended last.

use crate::gpu::{Stream, WorkKind};
use crate::{Slice, Timeline};
use std::ops::Range;

/// CUPTI's synchronisation types.
pub const OF_STREAM: u32 = 3;
pub const OF_CONTEXT: u32 = 4;
const OF_EVENT: u32 = 1;

/// Launches of several threads reach a stream in another order than they began, by a few.
const LOOK_BACK: usize = 64;
/// A wait for a context looks into this many streams.
const MOST_STREAMS: usize = 64;

/// A wait for an event that returns so soon after work has ended is taken to have waited for it: a thread that sleeps until the device
/// wakes it is back within some ten microseconds.
const WAKES_NS: u64 = 100_000;

impl Timeline {
    /// The work that a wait was for, by the slice of its API call: what ended last of what had been launched. None where
    /// the call is no wait for a stream or a context, or nothing had been launched.
    pub fn waited_for(&self, slice: usize) -> Option<usize> {
        self.waits(slice).find_map(|(stream, index)| last_before(self, stream, index))
    }

    /// The work that a wait for an event was probably for. Where an event stands in its stream is not recorded: it is inferred from what
    /// had been launched before, and ended while the host waited and just before it went on. None where that fits work of several streams.
    pub fn probably_waited_for(&self, slice: usize) -> Option<usize> {
        let of_event = |(_, index): &(usize, usize)| self.gpu.work.more(*index).detail & 0xff == OF_EVENT;
        let (stream, _) = self.waits(slice).find(of_event)?;
        let call = self.slices.get(slice);
        let work = &self.gpu.work;
        let fits = |index: &usize| work.end(*index) > call.start && work.end(*index) <= call.end();
        let near = |index: &usize| call.end() - work.end(*index) <= WAKES_NS;
        let ended = |stream| launched_before(self, stream, &call).find(fits).filter(near);
        let mut all = streams_of(self, stream).filter_map(ended);
        all.next().filter(|_| all.next().is_none())
    }

    /// The records of a wait, with their streams.
    fn waits(&self, slice: usize) -> impl Iterator<Item = (usize, usize)> {
        let all = self.gpu.work.of_launch(slice).iter().map(|index| *index as usize);
        let waits = all.filter(|index| self.gpu.work.kind(*index) == WorkKind::Sync);
        waits.map(|index| (self.gpu.streams.partition_point(|stream| stream.work.end <= index), index))
    }
}

/// The work that a wait, which is work `index` of `stream`, was for.
fn last_before(timeline: &Timeline, stream: usize, index: usize) -> Option<usize> {
    let work = &timeline.gpu.work;
    let call = timeline.slices.get(work.launch(index)?);
    let last = |stream| launched_before(timeline, stream, &call).next();
    match work.more(index).detail & 0xff {
        OF_STREAM => last(stream),
        OF_CONTEXT => streams_of(timeline, stream).filter_map(last).max_by_key(|index| work.end(*index)),
        _ => None,
    }
}

/// The work of a stream that was launched before a wait began and had started when it returned, the latest first.
fn launched_before(timeline: &Timeline, stream: usize, call: &Slice) -> impl Iterator<Item = usize> {
    let (work, call) = (&timeline.gpu.work, *call);
    let range = timeline.gpu.streams[stream].work.clone();
    let until = range.start + work.start[range.clone()].partition_point(|start| *start <= call.end());
    (range.start..until).rev().take(LOOK_BACK).filter(move |index| {
        let launch = work.launch(*index).map(|launch| timeline.slices.start[launch]);
        work.kind(*index) != WorkKind::Sync && launch.is_some_and(|begin| begin < call.start)
    })
}

/// The streams of the context of a stream: they lie together.
pub fn streams_of(timeline: &Timeline, stream: usize) -> Range<usize> {
    let streams = &timeline.gpu.streams;
    let own = &streams[stream];
    let same = |other: &&Stream| (other.process, other.device, other.context) == (own.process, own.device, own.context);
    let before = streams[..stream].iter().rev().take(MOST_STREAMS).take_while(same).count();
    let after = streams[stream..].iter().take(MOST_STREAMS - before.min(MOST_STREAMS - 1)).take_while(same).count();
    stream - before..stream + after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_for_the_last_work_launched_before_it() {
        let timeline = Timeline::from_text(
            "track main
             api cudaLaunchKernel 0..3us corr 1
             api cudaLaunchKernel 4us..5us corr 2
             api cudaStreamSynchronize 6us..50us corr 3
             track other
             api cudaLaunchKernel 8us..9us corr 9
             stream 7
             kernel a 8us..20us corr 1
             kernel b 20us..46us corr 2
             kernel later 46us..90us corr 9
             sync stream 6us..50us corr 3",
        )
        .unwrap();
        let waited = timeline.waited_for(2).map(|work| timeline.names.text(timeline.gpu.work.get(work).name));
        assert_eq!(waited, Some("b"));
        assert_eq!(timeline.waited_for(0), None);
    }

    #[test]
    fn a_wait_for_an_event_was_probably_for_what_ended_just_before_it_returned() {
        let text = "track main
             api cudaLaunchKernel 0..3us corr 1
             api cudaLaunchKernel 4us..5us corr 2
             api cudaEventSynchronize 6us..50us corr 3
             stream 7
             kernel a 8us..45us corr 1
             stream 8
             kernel b 20us..90us corr 2
             stream 0
             sync event 6us..50us corr 3";
        let awaited = |text: &str| {
            let timeline = Timeline::from_text(text).unwrap();
            assert_eq!(timeline.waited_for(2), None, "where the event stands is not recorded");
            let work = timeline.probably_waited_for(2);
            work.map(|work| timeline.names.text(timeline.gpu.work.get(work).name).to_owned())
        };
        assert_eq!(awaited(text).as_deref(), Some("a"));
        let changed = |from: &str, to: &str| awaited(&text.replace(from, to));
        assert_eq!(changed("20us..90us", "20us..40us"), None, "it may have been either");
        assert_eq!(changed("8us..45us", "1us..2us"), None, "it was over before");
        assert_eq!(changed("6us..50us", "6us..500us"), None, "long before it returned");
    }
}
