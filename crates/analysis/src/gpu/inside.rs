//! The kernels of a device inside the steps: how long each takes.

use super::windows_of;
use crate::rule::Case;
use timeline::{ProcessIndex, WorkKind};

/// Durations of the kernels that start inside the steps, shortest first.
pub fn kernels_in_steps(case: &Case, process: ProcessIndex, ordinal: u32) -> Vec<u64> {
    let (gpu, windows) = (&case.timeline.gpu, windows_of(case, process));
    let mut durations = Vec::new();
    for stream in gpu.streams.iter().filter(|stream| (stream.process, stream.device) == (process, ordinal)) {
        let mut at = 0;
        for index in stream.work.clone().filter(|index| gpu.work.kind(*index) == WorkKind::Kernel) {
            let start = gpu.work.start[index];
            while windows.get(at).is_some_and(|window| window.end <= start) {
                at += 1;
            }
            match windows.get(at) {
                None => break,
                Some(window) if window.start <= start => durations.push(gpu.work.dur[index]),
                Some(_) => {}
            }
        }
    }
    durations.sort_unstable();
    durations
}
