//! The kernels of each device inside the steps: how many, and how long one takes.

use super::DeviceInputs;
use crate::stats::times::Times;
use timeline::{ProcessIndex, WorkKind};

/// The kernels of a device that start inside the steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InSteps {
    pub process: ProcessIndex,
    pub ordinal: u32,
    pub count: usize,
    pub median_ns: u64,
}

impl Default for InSteps {
    fn default() -> InSteps {
        InSteps { process: ProcessIndex(0), ordinal: 0, count: 0, median_ns: 0 }
    }
}

pub fn kernels_in_steps(inputs: &DeviceInputs) -> Vec<InSteps> {
    let gpu = &inputs.timeline.gpu;
    let devices = gpu.streams.chunk_by(|a, b| (a.process, a.device) == (b.process, b.device));
    let of_device = |streams: &[timeline::gpu::Stream]| {
        let (process, ordinal) = (streams[0].process, streams[0].device);
        let windows = inputs.windows_of(process);
        let mut times = Times::default();
        for stream in streams {
            let mut at = 0;
            for index in stream.work.clone().filter(|index| gpu.work.kind(*index) == WorkKind::Kernel) {
                let start = gpu.work.start[index];
                while windows.get(at).is_some_and(|window| window.end <= start) {
                    at += 1;
                }
                match windows.get(at) {
                    None => break,
                    Some(window) if window.start <= start => times.push(gpu.work.dur[index]),
                    Some(_) => {}
                }
            }
        }
        InSteps { process, ordinal, count: times.count(), median_ns: times.percentile(50) }
    };
    devices.map(of_device).collect()
}
