//! What a wait waited for: the work of its stream, or of all streams of its context, that was launched before the wait began
//! and ended last.

use crate::Timeline;
use crate::gpu::WorkKind;

/// CUPTI's synchronisation types.
const OF_STREAM: u32 = 3;
const OF_CONTEXT: u32 = 4;

/// Launches of several threads reach a stream in another order than they began, by a few.
const LOOK_BACK: usize = 64;
/// A wait for a context looks into this many streams.
const MOST_STREAMS: usize = 64;

impl Timeline {
    /// The work that a wait was for, by the slice of its API call: what ended last of what had been launched. None where
    /// the call is no wait for a stream or a context, or nothing had been launched.
    pub fn waited_for(&self, slice: usize) -> Option<usize> {
        let waits = self.gpu.work.of_launch(slice).iter().map(|index| *index as usize);
        let mut waits = waits.filter(|index| self.gpu.work.kind(*index) == WorkKind::Sync);
        waits.find_map(|index| {
            let stream = self.gpu.streams.partition_point(|stream| stream.work.end <= index);
            last_before(self, stream, index)
        })
    }
}

/// The work that a wait, which is work `index` of `stream`, was for.
pub fn last_before(timeline: &Timeline, stream: usize, index: usize) -> Option<usize> {
    let gpu = &timeline.gpu;
    let own = &gpu.streams[stream];
    let call = timeline.slices.get(gpu.work.launch(index)?);
    let last = |stream: usize| {
        let range = gpu.streams[stream].work.clone();
        let from = range.start + gpu.work.start[range.clone()].partition_point(|start| *start <= call.end());
        (range.start..from).rev().take(LOOK_BACK).find(|work| {
            let launch = gpu.work.launch(*work).map(|launch| timeline.slices.start[launch]);
            gpu.work.kind(*work) != WorkKind::Sync && launch.is_some_and(|begin| begin < call.start)
        })
    };
    match gpu.work.more(index).detail & 0xff {
        OF_STREAM => last(stream),
        OF_CONTEXT => {
            let same = |other: &crate::gpu::Stream| {
                (other.process, other.device, other.context) == (own.process, own.device, own.context)
            };
            // Streams of a context lie together.
            let first = stream - gpu.streams[..stream].iter().rev().take(MOST_STREAMS).take_while(|s| same(s)).count();
            let all = gpu.streams[first..].iter().take(MOST_STREAMS).take_while(|stream| same(stream)).count();
            (first..first + all).filter_map(last).max_by_key(|work| gpu.work.end(*work))
        }
        _ => None,
    }
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
}
