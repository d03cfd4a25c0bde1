//! The CUDA calls that begin inside the steps, by their names: what the rules about single calls share.

use crate::rule::Case;
use analysis::device::gpu::windows_of;
use analysis::stats::share::Tally;
use analysis::steps::windows::Window;
use timeline::cuda_calls::CudaCall;
use timeline::{NameIndex, ProcessIndex, SliceKind};

pub struct Calls {
    /// Slices, by thread and time.
    pub all: Vec<u32>,
    /// Their time, step by step.
    pub tally: Tally,
}

/// Calls that fit by their names, of all threads of the processes that have devices.
pub fn find(case: &Case, fits: impl Fn(CudaCall) -> bool, takes: impl Fn(usize) -> bool) -> Calls {
    let timeline = case.timeline;
    let named: Vec<bool> =
        (0..timeline.names.len() as u32).map(|name| fits(timeline.names.call(NameIndex(name)))).collect();
    let mut calls = Calls { all: Vec::new(), tally: Tally::default() };
    if !named.contains(&true) {
        return calls;
    }
    let mut processes: Vec<ProcessIndex> = timeline.gpu.streams.iter().map(|stream| stream.process).collect();
    processes.dedup();
    let slices = &timeline.slices;
    for process in processes {
        let windows = windows_of(case, process);
        let mut parts = vec![0u64; windows.len()];
        for track in timeline.tracks_of(process) {
            for index in track.slices.clone() {
                if slices.kind(index) != SliceKind::ApiCall || !named[slices.name[index] as usize] || !takes(index) {
                    continue;
                }
                if let Some(window) = at(&windows, slices.start[index]) {
                    calls.all.push(index as u32);
                    // A call may be longer than a step, or than a stretch of a recording without any.
                    let (start, end) = (slices.start[index], slices.get(index).end());
                    for (window, part) in
                        windows.iter().zip(&mut parts).skip(window).take_while(|one| one.0.start < end)
                    {
                        *part = part.saturating_add(end.min(window.end) - start.max(window.start));
                    }
                }
            }
        }
        for (window, part) in windows.iter().zip(parts) {
            let length = window.end - window.start;
            calls.tally.add(part.min(length) as f64, length as f64);
        }
    }
    calls
}

/// The window that holds a moment.
pub fn at(windows: &[Window], time: u64) -> Option<usize> {
    let place = windows.partition_point(|window| window.end <= time);
    windows.get(place).filter(|window| window.start <= time).map(|_| place)
}

/// `once`, `4 times`: how often a step.
pub fn times(each: f64) -> String {
    match crate::measures::gap::each(each).as_str() {
        "1" => "once".into(),
        number => format!("{number} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    #[test]
    fn a_call_that_reaches_into_the_next_step_counts_in_both() {
        let text = "track main\n step r 0..1ms\n step r 1ms..2ms\n step r 3ms..4ms\n stream 7\n api cudaLaunchKernel 500us..3200us\n kernel k 3300us..4ms";
        let timeline = Timeline::from_text(text).unwrap();
        let case = Case::new(&timeline, None);
        assert_eq!(find(&case, CudaCall::is_launch, |_| true).tally.part, 1_700_000.0);
    }
}
