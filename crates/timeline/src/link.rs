//! Links what devices did to the host: work to the API call that asked for it, by correlation within a process; from there to
//! the scopes, steps, ranges and layers around the call. How well the two clocks agree follows from the links: see `clock`.

mod around;
mod clock;
mod returns;
mod wait;

use crate::parallel::{self, Task};
use crate::{SliceKind, Timeline, sort};
pub use around::Around;
use clock::ClockEvidence;
use std::ops::Range;

/// A call that begins after its work by no more than this is the call, and one of the clocks is wrong; by more, the number was
/// given out again and the call belongs to other work.
const CLOCK_ERROR_NS: u64 = 1_000_000;

/// An API call of a process: correlation, begin, slice.
type Call = (u32, u64, u32);

/// Sets the launches of all work and what follows from them.
pub(crate) fn link(timeline: &mut Timeline) {
    if timeline.gpu.is_empty() {
        return;
    }
    let count = timeline.gpu.work.len();
    let mut launch = vec![0u32; count];
    let mut sums: Vec<ClockEvidence> = Vec::new();
    for of_process in timeline.gpu.streams.chunk_by(|a, b| a.process == b.process) {
        let calls = calls_of(timeline, of_process[0].process);
        let pieces = of_process.iter().flat_map(|stream| parallel::pieces(stream.work.clone()));
        // Streams lie one after the other, so their pieces are those of the column.
        let mut found: Vec<ClockEvidence> = pieces.clone().map(|_| ClockEvidence::default()).collect();
        let mut rest = &mut launch[of_process[0].work.start..];
        let (calls, timeline) = (&calls, &*timeline);
        let tasks = pieces.zip(&mut found).map(|(piece, sum)| {
            let (own, after) = std::mem::take(&mut rest).split_at_mut(piece.len());
            rest = after;
            Box::new(move || *sum = find_all(timeline, calls, piece, own)) as Task
        });
        let tasks: Vec<Task> = tasks.collect();
        parallel::run(of_process.iter().map(|stream| stream.work.len()).sum(), tasks, || {});
        sums.append(&mut found);
    }
    let linked = |index: usize| (launch[index] != 0).then_some(index as u32);
    let mut by_launch = parallel::collect(std::iter::once(0..count), linked);
    // Work follows its launches, but for what several threads or streams mix.
    sort::nearly_sorted(&mut by_launch, |index| launch[*index as usize]);
    timeline.gpu.work.launch = launch;
    timeline.gpu.work.by_launch = by_launch;
    timeline.gpu.clock = clock::measure(timeline, sums);
}

/// Finds the launches of some work of a stream, and what they say about the clocks.
fn find_all(timeline: &Timeline, calls: &[Call], piece: Range<usize>, launch: &mut [u32]) -> ClockEvidence {
    let (work, slices) = (&timeline.gpu.work, &timeline.slices);
    let (mut near, mut seen) = (0, ClockEvidence::default());
    for (index, launch) in piece.zip(launch) {
        let (correlation, start) = (work.correlation[index], work.start[index]);
        if correlation != 0
            && let Some(slice) = find(calls, correlation, start, &mut near)
        {
            *launch = slice + 1;
        }
        let call = launch.checked_sub(1).map(|slice| slices.start[slice as usize]);
        clock::add(&mut seen.sum, work.kind(index), call, start);
        if call.is_none() && correlation != 0 && clock::is_asked_for(work.kind(index)) {
            seen.early.extend(only_later(&calls[near..], correlation, start));
        }
    }
    seen
}

/// How long after the start of the work the call with its number begins, where there is exactly one. `calls` begin where that number
/// would be.
fn only_later(calls: &[Call], correlation: u32, start: u64) -> Option<u64> {
    let mut own = calls.iter().take_while(|call| call.0 == correlation);
    let begin = own.next()?.1;
    if own.next().is_none() { begin.checked_sub(start) } else { None }
}

/// The calls of a process that have a correlation, by correlation and begin.
fn calls_of(timeline: &Timeline, process: crate::ProcessIndex) -> Vec<Call> {
    let slices = &timeline.slices;
    let any = slices.any_id();
    let tracks = timeline.tracks_of(process).map(|track| track.slices.clone()).filter(|_| any);
    let mut calls = parallel::collect(tracks, |index| {
        let correlation = slices.id(index);
        (correlation != 0 && slices.kind(index) == SliceKind::ApiCall)
            .then(|| (correlation, slices.start[index], index as u32))
    });
    // Each thread's numbers grow with time: the sort finds those runs.
    calls.sort();
    calls
}

/// The latest call with this correlation that began before the work. `near` is where the last one was found: the work of a
/// stream asks for growing numbers.
fn find(calls: &[Call], correlation: u32, start: u64, near: &mut usize) -> Option<u32> {
    let mut first = *near;
    if calls.get(first).is_none_or(|call| call.0 > correlation) {
        first = 0;
    }
    let mut stride = 1;
    while calls.get(first + stride).is_some_and(|call| call.0 < correlation) {
        first += stride;
        stride *= 2;
    }
    let until = calls.len().min(first + stride + 1);
    first += calls[first..until].partition_point(|call| call.0 < correlation);
    let before = |call: &Call| call.0 == correlation && call.1 <= start;
    // Rarely more than one; a damaged file in which all are equal must not make this quadratic.
    let few = calls[first..].iter().take(8).take_while(|call| before(call)).count();
    let count = if few < 8 { few } else { calls[first..].partition_point(before) };
    let last = calls[first..first + count].last();
    *near = first;
    let early = calls.get(first).filter(|call| call.0 == correlation && call.1 - start.min(call.1) <= CLOCK_ERROR_NS);
    last.or(early).map(|call| call.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(timeline: &Timeline) -> Vec<Option<u64>> {
        let work = &timeline.gpu.work;
        (0..work.len()).map(|index| work.launch(index).map(|slice| timeline.slices.start[slice])).collect()
    }

    #[test]
    fn work_is_linked_to_the_latest_call_with_its_number_before_it() {
        let timeline = Timeline::from_text(
            "track main
             api cudaLaunchKernel 1us..3us corr 5
             api cudaLaunchKernel 11us..13us corr 5
             api cudaMalloc 20us..30us corr 6
             stream 7
             kernel a 4us..5us corr 5
             kernel b 14us..15us corr 5
             kernel c 16us..17us corr 9",
        )
        .unwrap();
        assert_eq!(launches(&timeline), [Some(1_000), Some(11_000), None]);
        assert_eq!((timeline.gpu.clock.linked, timeline.gpu.clock.unlinked), (2, 1));
    }

    #[test]
    fn numbers_that_wrap_and_calls_of_other_threads_and_processes_are_told_apart() {
        let timeline = Timeline::from_text(
            "track main
             api cudaLaunchKernel 1us..3us corr 4294967295
             api cudaLaunchKernel 4us..5us corr 1
             track worker
             api cuLaunchKernel 6us..7us corr 2
             stream 7
             kernel a 2us..3us corr 4294967295
             kernel b 5us..6us corr 1
             stream 8
             kernel c 8us..9us corr 2
             process other
             track main
             api cudaLaunchKernel 20us..21us corr 1
             stream 7
             kernel d 22us..23us corr 1",
        )
        .unwrap();
        assert_eq!(launches(&timeline), [Some(1_000), Some(4_000), Some(6_000), Some(20_000)]);
    }

    #[test]
    fn a_graph_launch_has_all_its_nodes_and_a_call_without_work_none() {
        let timeline = Timeline::from_text(
            "track main
             api cudaGraphLaunch 0..9us corr 3
             api cudaStreamSynchronize 10us..40us corr 4
             stream 7
             kernel a 10us..12us corr 3 graph 1 node 1
             kernel b 12us..14us corr 3 graph 1 node 2
             stream 8
             kernel c 11us..30us corr 3 graph 1 node 3",
        )
        .unwrap();
        assert_eq!(timeline.gpu.work.of_launch(0), [0, 1, 2]);
        assert_eq!(timeline.gpu.work.of_launch(1), [0u32; 0]);
        assert_eq!(timeline.gpu.work.get(1).node, 2);
    }

    #[test]
    fn a_number_given_out_again_long_after_is_another_call() {
        let timeline = Timeline::from_text(
            "track main
             api cudaLaunchKernel 5ms..6ms corr 5
             stream 7
             kernel old 1ms..2ms corr 5
             kernel early 4999us..7ms corr 5",
        )
        .unwrap();
        assert_eq!(launches(&timeline), [None, Some(5_000_000)]);
        assert_eq!(timeline.gpu.clock.violations, 1);
    }

    /// Five steps whose work seems to be there so long before its launch.
    fn run(early: u64) -> String {
        let (start, end) = (10_000 - early, 10_050 - early);
        format!(
            "track main\n repeat 5 every 20ms\n api cudaLaunchKernel 10ms..10005us\n stream 7\n kernel k {start}us..{end}us\n end\n"
        )
    }

    #[test]
    fn a_device_clock_that_is_early_by_more_than_a_number_lasts_is_told_by_how_much() {
        let clock = |text: &str| Timeline::from_text(text).unwrap().gpu.clock;
        let (early, little) = (clock(&run(3_000)), clock(&run(30)));
        assert_eq!((early.linked, early.unlinked, early.early, early.early_ns), (0, 5, 5, Some(3_000_000)));
        assert_eq!((little.violations, little.early, little.early_ns), (5, 0, None));
        // Work that really is from before: nobody has its number, or more of it than not.
        let before = clock("track main\n api cudaLaunchKernel 10ms..11ms corr 9\n stream 7\n kernel k 1ms..2ms corr 3");
        assert_eq!((before.unlinked, before.early, before.early_ns), (1, 0, None));
        let old = "kernel old 0..1us corr 0\n".repeat(5);
        assert_eq!(clock(&format!("{}{old}", run(3_000))).early, 0);
    }

    #[test]
    fn a_million_calls_with_one_number_do_not_take_for_ever() {
        let calls: Vec<Call> = (0..1_000_000).map(|at| (7, u64::from(at) * 10, at)).collect();
        let mut near = 0;
        for start in (5..10_000_000).step_by(10) {
            assert_eq!(find(&calls, 7, start, &mut near), Some((start / 10) as u32));
        }
    }
}
