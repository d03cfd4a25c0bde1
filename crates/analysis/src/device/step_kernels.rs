//! The kernels of each device inside the steps, by name and by what they are: how long they take, and which pieces of work they are. What
//! that says about the program is left to the rules.

use crate::device::gpu::{GpuMetrics, windows_of};
use crate::device::kernel_kind::Kind;
use crate::device::peaks::Peaks;
use crate::host::StepContext;
use crate::stats::share::Tally;
use crate::steps::windows::Window;
use timeline::{NameIndex, ProcessIndex, WorkKind};

pub struct StepKernels {
    pub process: ProcessIndex,
    pub ordinal: u32,
    pub windows: Vec<Window>,
    pub window_ns: u64,
    /// When any kernel runs, in the windows.
    kernel_ns: u64,
    /// Most time first.
    pub rows: Vec<Row>,
    /// By the number of their name.
    kinds: Vec<Kind>,
}

#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: NameIndex,
    pub kind: Kind,
    pub count: u64,
    /// The sum of their times.
    pub ns: u64,
}

impl StepKernels {
    /// One for each device that ran kernels in the steps.
    pub fn find(context: &StepContext, gpu: Option<&GpuMetrics>) -> Vec<StepKernels> {
        let streams = &context.timeline.gpu.streams;
        let devices = streams.chunk_by(|a, b| (a.process, a.device) == (b.process, b.device));
        devices
            .map(|one| StepKernels::of(context, gpu, one[0].process, one[0].device))
            .filter(|one| !one.rows.is_empty())
            .collect()
    }

    fn of(context: &StepContext, gpu: Option<&GpuMetrics>, process: ProcessIndex, ordinal: u32) -> StepKernels {
        let windows = windows_of(context, process);
        let window_ns = windows.iter().map(|window| window.end - window.start).fold(0, u64::saturating_add);
        let metrics =
            gpu.and_then(|gpu| gpu.devices.iter().find(|one| (one.process, one.ordinal) == (process, ordinal)));
        let kernel_ns = metrics.map_or(window_ns, |metrics| metrics.kernel_ns);
        let mut all =
            StepKernels { process, ordinal, windows, window_ns, kernel_ns, rows: Vec::new(), kinds: Vec::new() };
        let mut places: Vec<u32> = vec![u32::MAX; context.timeline.names.len()];
        let mut rows: Vec<Row> = Vec::new();
        let work = &context.timeline.gpu.work;
        all.each(context, |_, index| {
            let name = work.name[index];
            let Some(place) = places.get_mut(name as usize) else { return };
            if *place == u32::MAX {
                *place = rows.len() as u32;
                let kind = Kind::of(context.timeline.names.text(NameIndex(name)));
                rows.push(Row { name: NameIndex(name), kind, count: 0, ns: 0 });
            }
            let row = &mut rows[*place as usize];
            row.count += 1;
            row.ns = row.ns.saturating_add(work.dur[index]);
        });
        all.kinds = vec![Kind::default(); places.len()];
        rows.iter().for_each(|row| all.kinds[row.name.0 as usize] = row.kind);
        rows.sort_by_key(|row| (u64::MAX - row.ns, row.name));
        all.rows = rows;
        all
    }

    /// The kernels that start inside the steps, stream by stream in order: the place of their window, and their index.
    pub fn each(&self, context: &StepContext, mut see: impl FnMut(usize, usize)) {
        let gpu = &context.timeline.gpu;
        let own = |stream: &&timeline::gpu::Stream| (stream.process, stream.device) == (self.process, self.ordinal);
        for stream in gpu.streams.iter().filter(own) {
            let mut at = 0;
            for index in stream.work.clone().filter(|index| gpu.work.kind(*index) == WorkKind::Kernel) {
                let start = gpu.work.start[index];
                while self.windows.get(at).is_some_and(|window| window.end <= start) {
                    at += 1;
                }
                match self.windows.get(at) {
                    None => break,
                    Some(window) if window.start <= start => see(at, index),
                    Some(_) => {}
                }
            }
        }
    }

    /// What a piece of work is.
    pub fn kind(&self, context: &StepContext, index: usize) -> Kind {
        self.kinds.get(context.timeline.gpu.work.name[index] as usize).copied().unwrap_or_default()
    }

    /// The part of the steps' time that kernels of these names take. Where so many run side by side that their times add up to more than all of
    /// it, their part of the time in which any runs.
    pub fn share(&self, fits: impl Fn(&Row) -> bool) -> f64 {
        let sum = |rows: &mut dyn Iterator<Item = &Row>| rows.map(|row| row.ns).fold(0, u64::saturating_add);
        let (ns, all) = (sum(&mut self.rows.iter().filter(|row| fits(row))), sum(&mut self.rows.iter()));
        let at_once = if all > self.window_ns { self.kernel_ns as f64 / all as f64 } else { 1.0 };
        at_once * ns as f64 / self.window_ns.max(1) as f64
    }

    /// Of the time of all kernels.
    pub fn of_kernels(&self, fits: impl Fn(&Row) -> bool) -> f64 {
        let all: u64 = self.rows.iter().map(|row| row.ns).fold(0, u64::saturating_add);
        let ns: u64 = self.rows.iter().filter(|row| fits(row)).map(|row| row.ns).fold(0, u64::saturating_add);
        ns as f64 / all.max(1) as f64
    }

    /// How many a step.
    pub fn per_step(&self, context: &StepContext, fits: impl Fn(&Row) -> bool) -> f64 {
        let count: u64 = self.rows.iter().filter(|row| fits(row)).map(|row| row.count).fold(0, u64::saturating_add);
        count as f64 / context.steps.count().max(1) as f64
    }

    /// The same step by step, by work.
    pub fn tally(&self, context: &StepContext, fits: impl Fn(usize) -> bool) -> Tally {
        self.saved(context, |index| if fits(index) { 1.0 } else { 0.0 })
    }

    /// The work of these names, in the order of their streams.
    pub fn pieces(&self, context: &StepContext, fits: impl Fn(usize) -> bool) -> Vec<u32> {
        let mut all = Vec::new();
        self.each(context, |_, index| {
            if fits(index) {
                all.push(index as u32);
            }
        });
        all
    }

    /// Step by step, the part of each piece of work that is saved.
    pub fn saved(&self, context: &StepContext, part: impl Fn(usize) -> f64) -> Tally {
        let mut parts = vec![0.0; self.windows.len()];
        self.each(context, |window, index| parts[window] += context.timeline.gpu.work.dur[index] as f64 * part(index));
        let mut tally = Tally::default();
        for (window, part) in self.windows.iter().zip(parts) {
            let length = (window.end - window.start) as f64;
            tally.add(part.min(length), length);
        }
        tally
    }

    pub fn device<'a>(&self, context: &'a StepContext) -> Option<&'a timeline::gpu::Device> {
        context.timeline.gpu.device(self.process, self.ordinal)
    }

    pub fn peaks(&self, context: &StepContext) -> Option<Peaks> {
        Peaks::of(self.device(context)?)
    }
}

#[cfg(test)]
mod tests {
    use crate::StepAnalysis;
    use timeline::Timeline;

    #[test]
    fn kernels_side_by_side_take_no_more_than_the_step() {
        let text = "track main\n repeat 10 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel a 1ms..7ms\n \
                    stream 8\n kernel b 1ms..7ms\n end";
        let timeline = Timeline::from_text(text).unwrap();
        let analysis = StepAnalysis::new(&timeline, None);
        let kernels = &analysis.kernels()[0];
        assert!((kernels.share(|_| true) - 0.6).abs() < 1e-9, "{}", kernels.share(|_| true));
        let one = kernels.rows[0].name;
        assert!((kernels.share(|row| row.name == one) - 0.3).abs() < 1e-9);
    }
}
