//! Everything that is measured of the steps, each part when it is first asked for.

use crate::dataflow::{Dataflow, Rounds};
use crate::device::gpu::moved::Moved;
use crate::device::gpu::{DeviceInputs, DeviceMetrics, GpuMetrics, InSteps, Parts};
use crate::device::ops::{Launched, Ops};
use crate::device::step_kernels::{Row, StepKernels};
use crate::host::StepContext;
use crate::host::layers::HostLayers;
use crate::idle::{self, DeviceIdle, Piece};
use crate::memory::attribution::{self, DeviceAttribution};
use crate::memory::outside::{self, OutsideMemory};
use crate::memory::{self, AllocatorMemory};
use crate::step_operators::StepOperators;
use crate::steps::chosen::Chosen;
use std::ops::Deref;
use std::sync::OnceLock;
use timeline::{ProcessIndex, Timeline, TrackIndex, parallel};

pub struct StepAnalysis<'a> {
    context: StepContext<'a>,
    chosen: OnceLock<Option<Chosen>>,
    gpu: OnceLock<Option<GpuMetrics>>,
    idle: OnceLock<Vec<DeviceIdle>>,
    moved: OnceLock<Vec<Moved>>,
    kernels: OnceLock<Vec<StepKernels>>,
    ops: OnceLock<Ops>,
    launched: OnceLock<Launched>,
    dataflow: OnceLock<Dataflow<'a>>,
    operators: OnceLock<Option<StepOperators>>,
    host_layers: OnceLock<HostLayers>,
    rounds: OnceLock<Vec<Rounds<'a>>>,
    memory: OnceLock<Vec<AllocatorMemory>>,
    attribution: OnceLock<Vec<DeviceAttribution>>,
    outside: OnceLock<Vec<OutsideMemory>>,
}

/// What the host did is known from the start, and is asked for everywhere.
impl<'a> Deref for StepAnalysis<'a> {
    type Target = StepContext<'a>;

    fn deref(&self) -> &StepContext<'a> {
        &self.context
    }
}

impl<'a> StepAnalysis<'a> {
    /// `step`: the step or scope to look at by name. None: chosen from what was recorded.
    pub fn new(timeline: &'a Timeline, step: Option<&str>) -> StepAnalysis<'a> {
        StepAnalysis {
            context: StepContext::new(timeline, step),
            chosen: OnceLock::new(),
            gpu: OnceLock::new(),
            idle: OnceLock::new(),
            moved: OnceLock::new(),
            kernels: OnceLock::new(),
            ops: OnceLock::new(),
            launched: OnceLock::new(),
            dataflow: OnceLock::new(),
            operators: OnceLock::new(),
            host_layers: OnceLock::new(),
            rounds: OnceLock::new(),
            memory: OnceLock::new(),
            attribution: OnceLock::new(),
            outside: OnceLock::new(),
        }
    }

    pub fn into_context(self) -> StepContext<'a> {
        self.context
    }

    /// The stretches of time whose steps are replayed for gains. None: nothing can be replayed.
    pub fn chosen(&self) -> Option<&Chosen> {
        let few = || Chosen::few(self.timeline, &self.steps).filter(|_| !self.timeline.gpu.is_empty());
        self.chosen.get_or_init(few).as_ref()
    }

    /// What the devices did. None: no work of a device was recorded.
    pub fn gpu(&self) -> Option<&GpuMetrics> {
        self.gpu.get_or_init(|| self.look_at_devices()).as_ref()
    }

    /// Everything that goes over all device work, at the same time.
    fn look_at_devices(&self) -> Option<GpuMetrics> {
        let size = self.timeline.gpu.work.len();
        if size == 0 {
            return None;
        }
        let inputs = DeviceInputs::from(&self.context);
        let mut parts = Parts::default();
        parallel::run(size, parts.tasks(inputs), || _ = self.idle());
        let (metrics, moved) = parts.join(&inputs);
        let _ = self.moved.set(moved);
        Some(metrics)
    }

    pub fn take_gpu(&mut self) -> Option<GpuMetrics> {
        self.gpu();
        self.gpu.take().flatten()
    }

    /// Why the devices were idle inside the steps.
    pub fn idle(&self) -> &[DeviceIdle] {
        self.idle.get_or_init(|| idle::measure(&self.context, self.chosen()))
    }

    pub fn take_idle(&mut self) -> Vec<DeviceIdle> {
        self.idle();
        self.idle.take().unwrap_or_default()
    }

    /// The copies inside the steps, by device.
    pub fn moved(&self) -> &[Moved] {
        // Found with what is measured of the devices.
        self.gpu();
        self.moved.get_or_init(Vec::new)
    }

    /// The kernels inside the steps, by device.
    pub fn kernels(&self) -> &[StepKernels] {
        self.kernels.get_or_init(|| StepKernels::find(&self.context, self.gpu()))
    }

    /// The operators inside the steps whose arguments say what they cost. Empty: none were recorded.
    pub fn ops(&self) -> &Ops {
        self.ops.get_or_init(|| Ops::find(&self.context, self.kernels(), self.launched()))
    }

    /// The kernels of the steps whose operators are known from the steps that were looked at.
    pub fn launched(&self) -> &Launched {
        self.launched.get_or_init(|| Launched::find(self.timeline, &self.steps, &self.dataflow().looks))
    }

    /// What the operators that were looked at read and wrote. Empty: none were recorded.
    pub fn dataflow(&self) -> &Dataflow<'a> {
        self.dataflow.get_or_init(|| Dataflow::find(self.timeline))
    }

    /// The operators of a step that was looked at. None: none were recorded, or they only launch what a device does.
    pub fn operators(&self) -> Option<&StepOperators> {
        let find = || StepOperators::find(self.timeline, &self.steps, &self.dataflow().looks);
        self.operators.get_or_init(|| find().filter(|_| self.timeline.gpu.is_empty())).as_ref()
    }

    pub fn take_operators(&mut self) -> Option<StepOperators> {
        self.operators();
        self.operators.take().flatten()
    }

    /// The layers by the time that the host spent in them. Empty: none were recorded, or their time is that of their kernels.
    pub fn host_layers(&self) -> &HostLayers {
        self.host_layers.get_or_init(|| match self.timeline.gpu.is_empty() {
            true => HostLayers::find(self.timeline),
            false => HostLayers::default(),
        })
    }

    pub fn take_host_layers(&mut self) -> HostLayers {
        self.host_layers();
        self.host_layers.take().unwrap_or_default()
    }

    /// Loops among those operators, most time first.
    pub fn rounds(&self) -> &[Rounds<'a>] {
        self.rounds.get_or_init(|| self.dataflow().rounds(self.timeline))
    }

    /// What frameworks' allocators held. Empty: nothing of them was recorded.
    pub fn memory(&self) -> &[AllocatorMemory] {
        self.memory.get_or_init(|| memory::measure(self.timeline, &self.frames, &self.steps))
    }

    pub fn take_memory(&mut self) -> Vec<AllocatorMemory> {
        self.memory();
        self.memory.take().unwrap_or_default()
    }

    /// Every byte of the devices by what it is for. Empty: nothing of their memory was recorded.
    pub fn attribution(&self) -> &[DeviceAttribution] {
        self.attribution.get_or_init(|| attribution::measure(self.timeline, &self.steps))
    }

    /// What processes took of the driver beside a framework's allocator. Empty: no such call was recorded.
    pub fn outside_memory(&self) -> &[OutsideMemory] {
        self.outside.get_or_init(|| outside::measure(self.timeline, &self.frames, &self.steps))
    }

    pub fn take_attribution(&mut self) -> Vec<DeviceAttribution> {
        self.attribution();
        self.attribution.take().unwrap_or_default()
    }

    /// The kernels of a device that start inside the steps.
    pub fn kernels_in_steps(&self, process: ProcessIndex, ordinal: u32) -> InSteps {
        let mut devices = self.gpu().into_iter().flat_map(|gpu| &gpu.devices);
        let own = devices.find(|device| (device.process, device.ordinal) == (process, ordinal));
        own.map(|device| device.in_steps).unwrap_or_default()
    }

    /// The device on which what fits takes most of the steps' time.
    pub fn most_kernels(&self, fits: impl Fn(&Row) -> bool) -> Option<(&StepKernels, f64)> {
        let shares = self.kernels().iter().map(|device| (device, device.share(&fits)));
        shares.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share > 0.0)
    }

    /// What a thread did in a stretch of time, where no device asked for it.
    pub fn host_pieces(&self, track: TrackIndex, start: u64, end: u64) -> Vec<Piece> {
        idle::host_pieces(&self.context, self.chosen(), track, start, end)
    }

    /// Of some work, the part that a replay looks at.
    pub fn chosen_work(&self, work: Vec<u32>) -> Vec<u32> {
        let Some(chosen) = self.chosen() else { return work };
        let start = &self.timeline.gpu.work.start;
        work.into_iter().filter(|index| chosen.has(start[*index as usize])).collect()
    }

    /// The part of the steps in which a kernel of the device runs.
    pub fn kernels_busy(&self, device: &StepKernels) -> f64 {
        let own = |one: &&DeviceMetrics| (one.process, one.ordinal) == (device.process, device.ordinal);
        let metrics = self.gpu().and_then(|gpu| gpu.devices.iter().find(own));
        metrics.map_or(0.0, |metrics| metrics.kernel_ns as f64 / metrics.window_ns.max(1) as f64)
    }

    /// The part of the steps in which the device works.
    pub fn busy(&self, device: &StepKernels) -> f64 {
        let idle = self.idle().iter().find(|one| (one.process, one.ordinal) == (device.process, device.ordinal));
        idle.map_or(0.0, |idle| idle.busy_ns as f64 / idle.window_ns.max(1) as f64)
    }
}
