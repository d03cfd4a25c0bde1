//! How long after its work a wait returns. What a thread had handed to a stream before it waits for that stream has ended when the wait
//! returns; where device times say otherwise, they are late.

use super::wait::{OF_CONTEXT, OF_STREAM, streams_of};
use crate::Timeline;
use crate::gpu::{GpuClock, WorkKind};
use crate::parallel::{self, Task};
use std::ops::Range;

/// A wait looks at so many pieces of work that its thread has launched before it.
const LOOK_BACK: usize = 64;

pub fn measure(timeline: &Timeline, clock: &mut GpuClock) {
    let streams = timeline.gpu.streams.iter().enumerate();
    let pieces = streams.flat_map(|(at, stream)| parallel::pieces(stream.work.clone()).map(move |piece| (at, piece)));
    let mut found: Vec<GpuClock> = pieces.clone().map(|_| GpuClock::default()).collect();
    let tasks = pieces
        .zip(&mut found)
        .map(|((stream, piece), found)| Box::new(move || of_waits(timeline, stream, piece, found)) as Task);
    parallel::run(timeline.gpu.work.len(), tasks.collect(), || {});
    for found in found {
        clock.waits += found.waits;
        clock.early_returns += found.early_returns;
        found.shortest_return_ns.into_iter().for_each(|way| super::clock::less(&mut clock.shortest_return_ns, way));
    }
}

/// What the waits say that are in a piece of a stream's work.
fn of_waits(timeline: &Timeline, stream: usize, piece: Range<usize>, clock: &mut GpuClock) {
    let (gpu, slices) = (&timeline.gpu, &timeline.slices);
    for index in piece.filter(|index| gpu.work.kind(*index) == WorkKind::Sync) {
        let Some(call) = gpu.work.launch(index) else { continue };
        let ended = match gpu.work.more(index).detail & 0xff {
            // Nodes of a graph may carry the number of a stream that the graph does not run in.
            OF_STREAM => {
                let own = gpu.streams[stream].work.clone();
                last_end(timeline, call, own, |launch| timeline.call(launch).launches_graph())
            }
            OF_CONTEXT => {
                let all = streams_of(timeline, stream);
                let work = gpu.streams[all.start].work.start..gpu.streams[all.end - 1].work.end;
                last_end(timeline, call, work, |_| false)
            }
            _ => None,
        };
        if let Some(ended) = ended {
            let way = super::clock::signed(ended, slices.get(call).end());
            clock.waits += 1;
            clock.early_returns += u64::from(way < 0);
            super::clock::less(&mut clock.shortest_return_ns, way);
        }
    }
}

/// When the last of the work in `among` ended that the thread of `call` had launched before it. Other threads are not asked: what
/// they launch at the same time may come after the wait.
fn last_end(timeline: &Timeline, call: usize, among: Range<usize>, passed_over: impl Fn(usize) -> bool) -> Option<u64> {
    let (work, slices) = (&timeline.gpu.work, &timeline.slices);
    let track = timeline.tracks.partition_point(|track| track.slices.end <= call);
    let first = timeline.tracks.get(track)?.slices.start;
    let launched = work.linked();
    let before = launched.partition_point(|index| work.launch(*index as usize).is_some_and(|launch| launch < call));
    let mut last = None;
    for index in launched[..before].iter().rev().take(LOOK_BACK).map(|index| *index as usize) {
        let Some(launch) = work.launch(index).filter(|launch| *launch >= first) else { break };
        let over = slices.get(launch).end() <= slices.start[call];
        if over && among.contains(&index) && work.kind(index) != WorkKind::Sync && !passed_over(launch) {
            last = last.max(Some(work.end(index)));
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step's work and the wait for it, with the device's clock `late` by so much.
    fn run(late: u64) -> GpuClock {
        let (start, end) = (10 + late, 60 + late);
        let text = format!(
            "track main\n repeat 5 every 1ms\n api cudaLaunchKernel 0..5us\n stream 7\n kernel k {start}us..{end}us
             api cudaStreamSynchronize 6us..65us\n sync stream 6us..65us\n end"
        );
        Timeline::from_text(&text).unwrap().gpu.clock
    }

    #[test]
    fn a_clock_that_is_late_shows_however_late_it_is() {
        assert_eq!((run(0).shortest_return_ns, run(0).waits, run(0).early_returns), (Some(5_000), 5, 0));
        assert_eq!((run(30).shortest_return_ns, run(30).early_returns), (Some(-25_000), 5));
        // The work then seems to start after the wait for it is over.
        assert_eq!((run(3_000).shortest_return_ns, run(3_000).early_returns), (Some(-2_995_000), 5));
    }

    #[test]
    fn what_another_thread_launches_meanwhile_need_not_have_been_waited_for() {
        let clock = Timeline::from_text(
            "track main\n api cudaLaunchKernel 0..1us corr 1\n api cudaStreamSynchronize 8us..20us corr 3
             track other\n api cudaLaunchKernel 7us..9us corr 2
             stream 7\n kernel a 2us..15us corr 1\n kernel b 15us..90us corr 2\n sync stream 8us..20us corr 3",
        );
        assert_eq!(clock.unwrap().gpu.clock.shortest_return_ns, Some(5_000));
    }

    #[test]
    fn nodes_of_a_graph_count_for_the_context_only() {
        let text = "track main\n api cudaGraphLaunch 0..1us corr 1\n api cudaStreamSynchronize 8us..20us corr 3
             stream 7\n kernel a 2us..45us corr 1 graph 5 node 1\n sync stream 8us..20us corr 3";
        let shortest = |text: &str| Timeline::from_text(text).unwrap().gpu.clock.shortest_return_ns;
        assert_eq!(shortest(text), None);
        assert_eq!(shortest(&text.replace("sync stream", "sync context")), Some(-25_000));
    }
}
