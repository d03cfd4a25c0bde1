//! The numbers of devices as tasks that do not depend on each other, so that each may have a core of its own.

use super::inside::{InSteps, kernels_in_steps};
use super::launches::Latencies;
use super::moved::Moved;
use super::{ApiRow, CopyRow, DeviceMetrics, GpuMetrics, KernelRow, LayerRow, Overhead, RangeRow, StepWork, Unnamed};
use super::{apis, busy, copies, kernels, launches, overhead, ranges, steps};
use crate::device::layers::Layers;
use crate::frames::Frames;
use crate::host::{StepContext, place_of};
use crate::place::Place;
use crate::stats::curve::Curve;
use crate::steps::Steps;
use crate::steps::windows::{StepSpans, Window};
use std::collections::HashMap;
use timeline::parallel::{self, Task};
use timeline::{ProcessIndex, StackIndex, Timeline, TrackIndex, WorkKind};

/// What they are made from.
#[derive(Clone, Copy)]
pub struct DeviceInputs<'c> {
    pub timeline: &'c Timeline,
    pub steps: &'c Steps,
    pub windows: &'c StepSpans,
    pub frames: &'c Frames,
}

impl<'c> From<&'c StepContext<'_>> for DeviceInputs<'c> {
    fn from(context: &'c StepContext<'_>) -> DeviceInputs<'c> {
        let StepContext { timeline, steps, windows, frames, .. } = context;
        DeviceInputs { timeline, steps, windows, frames }
    }
}

impl DeviceInputs<'_> {
    /// The time in which any chosen step was open; the whole recording where nothing takes time.
    pub fn windows_of(&self, process: ProcessIndex) -> Vec<Window> {
        let windows = busy::windows(self, process);
        let (start, end) = (self.timeline.start, self.timeline.end);
        match windows.all() {
            [] if start < end => vec![Window { track: TrackIndex(0), start, end, step: u32::MAX }],
            all => all.to_vec(),
        }
    }

    /// The function and the line being executed of a frame.
    pub fn place(&self, frame: StackIndex) -> Place {
        place_of(self.timeline, frame)
    }
}

#[derive(Default)]
pub struct Parts {
    devices: (Vec<DeviceMetrics>, Vec<CopyRow>),
    in_steps: Vec<InSteps>,
    kernels: (Vec<KernelRow>, Vec<LayerRow>, Option<Unnamed>),
    places: HashMap<u32, Place>,
    apis: Vec<ApiRow>,
    latencies: Option<Latencies>,
    depth: Option<(Curve, u64)>,
    ranges: Vec<RangeRow>,
    steps: (Vec<StepWork>, Option<Overhead>),
    before_window: u64,
    pub moved: Vec<Moved>,
}

impl Parts {
    /// The longest first, so that the last to end is short.
    pub fn tasks<'j>(&'j mut self, inputs: DeviceInputs<'j>) -> Vec<Task<'j>> {
        let Parts {
            devices,
            in_steps,
            kernels,
            places,
            apis,
            latencies,
            depth,
            ranges,
            steps,
            before_window: before,
            moved,
        } = self;
        let timeline = inputs.timeline;
        vec![
            Box::new(move || {
                let layers = Layers::find(timeline);
                *kernels = (kernels::rows(&inputs, &layers), layers.rows(timeline), layers.unnamed(timeline));
            }),
            Box::new(move || *places = kernels::places(&inputs)),
            Box::new(move || *latencies = launches::latencies(timeline)),
            Box::new(move || *depth = launches::depth(timeline)),
            Box::new(move || {
                let busy = busy::Busy::new(timeline);
                let (of_devices, copied) = devices;
                let rows = Box::new(|| *copied = copies::rows(timeline, &busy));
                let found = Box::new(|| *moved = Moved::find(&inputs, &busy));
                parallel::run(timeline.gpu.work.len(), vec![rows, found], || *of_devices = busy.devices(&inputs));
            }),
            Box::new(move || *ranges = ranges::rows(timeline)),
            Box::new(move || *apis = apis::rows(timeline)),
            Box::new(move || *steps = (steps::of_steps(&inputs), overhead::measure(&inputs))),
            Box::new(move || *in_steps = kernels_in_steps(&inputs)),
            Box::new(move || *before = before_window(timeline)),
        ]
    }

    /// What the tasks have measured, and the copies inside the steps.
    pub fn join(self, inputs: &DeviceInputs) -> (GpuMetrics, Vec<Moved>) {
        let ((mut devices, copies), (mut kernels, layers, unnamed), (steps, overhead)) =
            (self.devices, self.kernels, self.steps);
        kernels::name_places(&mut kernels, self.places);
        for device in &mut devices {
            let own = |one: &&InSteps| (one.process, one.ordinal) == (device.process, device.ordinal);
            device.in_steps = self.in_steps.iter().find(own).copied().unwrap_or_default();
        }
        let metrics = GpuMetrics {
            devices,
            kernels,
            copies,
            apis: self.apis,
            launch: launches::join(self.latencies, self.depth),
            layers,
            unnamed,
            ranges: self.ranges,
            steps,
            clock: inputs.timeline.gpu.clock,
            overhead,
            before_window: self.before_window,
        };
        (metrics, self.moved)
    }
}

/// Work without a launch in processes whose launches were recorded: in others, no work has one. What a wrong clock has put before its
/// launch was launched in the recording.
fn before_window(timeline: &Timeline) -> u64 {
    let work = &timeline.gpu.work;
    let asked = |index: &usize| matches!(work.kind(*index), WorkKind::Kernel | WorkKind::Memcpy | WorkKind::Memset);
    let streams = timeline.gpu.streams.chunk_by(|a, b| a.process == b.process);
    let missing: u64 = streams
        .map(|streams| {
            let of_process = || streams.iter().flat_map(|stream| stream.work.clone()).filter(asked);
            let missing = of_process().filter(|index| work.launch(*index).is_none()).count() as u64;
            let any = of_process().any(|index| work.launch(index).is_some());
            if any { missing } else { 0 }
        })
        .sum();
    missing.saturating_sub(timeline.gpu.clock.early)
}
