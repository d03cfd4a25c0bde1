//! When each device was at work: the union over its streams, for all work, for kernels and for copies, and how much of it
//! lies in the steps.

use super::{DeviceInputs, DeviceMetrics, InSteps};
use crate::steps::StepSource;
use crate::steps::spans::{Spans, Union};
use crate::steps::windows::{StepSpans, of_process};
use timeline::{ProcessIndex, Timeline, TrackIndex, WorkKind};

pub struct Busy {
    pub devices: Vec<OfDevice>,
}

pub struct OfDevice {
    pub process: ProcessIndex,
    pub ordinal: u32,
    pub kernels: Spans,
    pub copies: Spans,
    /// Copies with no kernel beside them.
    pub exposed: Spans,
    kernel_count: u64,
}

impl Busy {
    pub fn new(timeline: &Timeline) -> Busy {
        let gpu = &timeline.gpu;
        let mut devices: Vec<OfDevice> = Vec::new();
        for streams in gpu.streams.chunk_by(|a, b| (a.process, a.device) == (b.process, b.device)) {
            let count = streams.iter().map(|stream| stream.work.len()).sum();
            let (mut kernels, mut copies) = (Union::with_room(count), Union::default());
            let (mut kernel_count, mut any) = (0, false);
            for index in streams.iter().flat_map(|stream| stream.work.clone()) {
                let kind = gpu.work.kind(index);
                let union = match kind {
                    WorkKind::Kernel => &mut kernels,
                    kind if kind.is_busy() => &mut copies,
                    _ => continue,
                };
                union.add(gpu.work.start[index], gpu.work.end(index));
                kernel_count += u64::from(kind == WorkKind::Kernel);
                any = true;
            }
            if !any {
                continue;
            }
            let (kernels, copies) = (kernels.spans(), copies.spans());
            let exposed = copies.minus(&kernels);
            let (process, ordinal) = (streams[0].process, streams[0].device);
            devices.push(OfDevice { process, ordinal, kernels, copies, exposed, kernel_count });
        }
        Busy { devices }
    }

    pub fn of(&self, process: ProcessIndex, ordinal: u32) -> Option<&OfDevice> {
        let place = self.devices.binary_search_by_key(&(process, ordinal), |device| (device.process, device.ordinal));
        place.ok().map(|place| &self.devices[place])
    }

    pub fn devices(&self, inputs: &DeviceInputs) -> Vec<DeviceMetrics> {
        self.devices.iter().map(|device| device.metrics(inputs)).collect()
    }
}

impl OfDevice {
    fn metrics(&self, inputs: &DeviceInputs) -> DeviceMetrics {
        let timeline = inputs.timeline;
        let windows = windows(inputs, self.process);
        let inside = |spans: &Spans| -> u64 {
            match windows.all() {
                [] => spans.overlap(timeline.start, timeline.end),
                all => {
                    let mut near = 0;
                    all.iter().map(|window| spans.overlap_near(&mut near, window.start, window.end)).sum()
                }
            }
        };
        let (kernel_ns, exposed_copy_ns) = (inside(&self.kernels), inside(&self.exposed));
        let ends = self.kernels.ends().into_iter().chain(self.copies.ends());
        let ends = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (first, last) = ends.unwrap_or((timeline.start, timeline.start));
        let known = timeline.gpu.device(self.process, self.ordinal);
        DeviceMetrics {
            process: self.process,
            ordinal: self.ordinal,
            name: known.map_or_else(|| "".into(), |device| device.name.clone()),
            window_ns: if windows.all().is_empty() { timeline.duration() } else { windows.total() },
            // The one lies where the other does not, and both together are all.
            busy_ns: kernel_ns + exposed_copy_ns,
            kernel_ns,
            copy_ns: inside(&self.copies),
            exposed_copy_ns,
            span_ns: last - first,
            leading_gap_ns: first.saturating_sub(timeline.start),
            trailing_gap_ns: timeline.end.saturating_sub(last),
            kernels: self.kernel_count,
            per_step_busy: self.per_step(inputs),
            in_steps: InSteps::default(),
        }
    }

    fn per_step(&self, inputs: &DeviceInputs) -> Vec<f64> {
        if inputs.steps.source == StepSource::Whole {
            return Vec::new();
        }
        let own = |track: TrackIndex| inputs.timeline.tracks[track.0 as usize].process == self.process;
        let steps = inputs.steps.measured().filter(|step| own(step.track) && step.dur() > 0);
        let mut near = [0; 2];
        let mut busy = |start: u64, end: u64| {
            let [kernels, exposed] = &mut near;
            self.kernels.overlap_near(kernels, start, end) + self.exposed.overlap_near(exposed, start, end)
        };
        steps.map(|step| busy(step.start, step.end) as f64 / step.dur() as f64).collect()
    }
}

/// The time of the steps of the device's own process; where it has none (a server hands its requests to a worker), of all
/// processes. Empty: nothing was chosen that takes time.
pub fn windows(inputs: &DeviceInputs, process: ProcessIndex) -> StepSpans {
    let own = inputs.windows.across(of_process(inputs.timeline, process));
    if own.all().is_empty() { inputs.windows.across(|_| true) } else { own }
}
