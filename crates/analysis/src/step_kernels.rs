//! The kernels of each device inside the steps, by name and by what they are: how long they take, which pieces of work they are, and what a
//! step would gain if they were shorter. What that says about the program is left to the rules.

use crate::finding::Gain;
use crate::gpu::windows_of;
use crate::kernel_kind::Kind;
use crate::peaks::Peaks;
use crate::replay::Change;
use crate::rule::Case;
use crate::share::Tally;
use crate::windows::Window;
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

/// What is left of the time of some work after a change: at the worst, usually, at the best.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Left {
    pub worst: f64,
    pub usual: f64,
    pub best: f64,
}

impl Left {
    /// All that is known are the bounds: half way is taken for usual.
    pub fn between(best: f64, worst: f64) -> Left {
        Left { worst, usual: best.midpoint(worst), best }
    }

    /// It goes; at worst so much of it stays.
    pub fn gone(worst: f64) -> Left {
        Left { worst, usual: 0.0, best: 0.0 }
    }
}

impl StepKernels {
    /// One for each device that ran kernels in the steps.
    pub fn find(case: &Case) -> Vec<StepKernels> {
        let streams = &case.timeline.gpu.streams;
        let devices = streams.chunk_by(|a, b| (a.process, a.device) == (b.process, b.device));
        devices
            .map(|one| StepKernels::of(case, one[0].process, one[0].device))
            .filter(|one| !one.rows.is_empty())
            .collect()
    }

    fn of(case: &Case, process: ProcessIndex, ordinal: u32) -> StepKernels {
        let windows = windows_of(case, process);
        let window_ns = windows.iter().map(|window| window.end - window.start).fold(0, u64::saturating_add);
        let metrics =
            case.gpu().and_then(|gpu| gpu.devices.iter().find(|one| (one.process, one.ordinal) == (process, ordinal)));
        let kernel_ns = metrics.map_or(window_ns, |metrics| metrics.kernel_ns);
        let mut all =
            StepKernels { process, ordinal, windows, window_ns, kernel_ns, rows: Vec::new(), kinds: Vec::new() };
        let mut places: Vec<u32> = vec![u32::MAX; case.timeline.names.len()];
        let mut rows: Vec<Row> = Vec::new();
        let work = &case.timeline.gpu.work;
        all.each(case, |_, index| {
            let name = work.name[index];
            let Some(place) = places.get_mut(name as usize) else { return };
            if *place == u32::MAX {
                *place = rows.len() as u32;
                let kind = Kind::of(case.timeline.names.text(NameIndex(name)));
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
    pub fn each(&self, case: &Case, mut see: impl FnMut(usize, usize)) {
        let gpu = &case.timeline.gpu;
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
    pub fn kind(&self, case: &Case, index: usize) -> Kind {
        self.kinds.get(case.timeline.gpu.work.name[index] as usize).copied().unwrap_or_default()
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
    pub fn per_step(&self, case: &Case, fits: impl Fn(&Row) -> bool) -> f64 {
        let count: u64 = self.rows.iter().filter(|row| fits(row)).map(|row| row.count).fold(0, u64::saturating_add);
        count as f64 / case.steps.count().max(1) as f64
    }

    /// The same step by step, by work.
    pub fn tally(&self, case: &Case, fits: impl Fn(usize) -> bool) -> Tally {
        self.saved(case, |index| if fits(index) { 1.0 } else { 0.0 })
    }

    /// The work of these names, in the order of their streams.
    pub fn pieces(&self, case: &Case, fits: impl Fn(usize) -> bool) -> Vec<u32> {
        let mut all = Vec::new();
        self.each(case, |_, index| {
            if fits(index) {
                all.push(index as u32);
            }
        });
        all
    }

    /// What a step would gain if work took only a part of its time. Of the range of that part, the middle is replayed; its ends are in
    /// proportion.
    pub fn gain(&self, case: &Case, changes: Vec<(Vec<u32>, Left)>) -> Gain {
        let mut left_of: Vec<f32> = vec![1.0; case.timeline.gpu.work.len()];
        let (mut worst, mut usual, mut best) = (0.0, 0.0, 0.0);
        for (work, left) in &changes {
            let ns: f64 = work.iter().map(|index| case.timeline.gpu.work.dur[*index as usize] as f64).sum();
            worst += ns * (1.0 - left.worst);
            usual += ns * (1.0 - left.usual);
            best += ns * (1.0 - left.best);
            work.iter().for_each(|index| left_of[*index as usize] = left.usual as f32);
        }
        let recorded = self.saved(case, |index| 1.0 - f64::from(left_of[index])).measured();
        let changes: Vec<Change> =
            changes.into_iter().map(|(work, left)| Change::Work(self.chosen(case, work), left.usual)).collect();
        let gain = case.gain(&changes, recorded);
        let by = |other: f64| if usual > 0.0 { other / usual } else { 1.0 };
        let (low, high) = (gain.low * by(worst), (gain.high * by(best)).min(100.0));
        Gain { low: low.min(gain.mid), high: high.max(gain.mid), ..gain }
    }

    /// Step by step, the part of each piece of work that is saved.
    fn saved(&self, case: &Case, part: impl Fn(usize) -> f64) -> Tally {
        let mut parts = vec![0.0; self.windows.len()];
        self.each(case, |window, index| parts[window] += case.timeline.gpu.work.dur[index] as f64 * part(index));
        let mut tally = Tally::default();
        for (window, part) in self.windows.iter().zip(parts) {
            let length = (window.end - window.start) as f64;
            tally.add(part.min(length), length);
        }
        tally
    }

    /// Those that a replay looks at.
    pub fn chosen(&self, case: &Case, work: Vec<u32>) -> Vec<u32> {
        let Some(chosen) = case.chosen() else { return work };
        let start = &case.timeline.gpu.work.start;
        work.into_iter().filter(|index| chosen.has(start[*index as usize])).collect()
    }

    pub fn device<'a>(&self, case: &'a Case) -> Option<&'a timeline::gpu::Device> {
        case.timeline.gpu.device(self.process, self.ordinal)
    }

    pub fn peaks(&self, case: &Case) -> Option<Peaks> {
        Peaks::of(self.device(case)?)
    }

    /// The part of the steps in which a kernel runs.
    pub fn kernels_busy(&self, case: &Case) -> f64 {
        let own = |one: &&crate::gpu::DeviceMetrics| (one.process, one.ordinal) == (self.process, self.ordinal);
        let metrics = case.gpu().and_then(|gpu| gpu.devices.iter().find(own));
        metrics.map_or(0.0, |metrics| metrics.kernel_ns as f64 / metrics.window_ns.max(1) as f64)
    }

    /// The part of the steps in which the device works.
    pub fn busy(&self, case: &Case) -> f64 {
        let idle = case.idle().iter().find(|one| (one.process, one.ordinal) == (self.process, self.ordinal));
        idle.map_or(0.0, |idle| idle.busy_ns as f64 / idle.window_ns.max(1) as f64)
    }
}

/// The device on which what fits takes most of the steps' time.
pub fn most<'a>(case: &'a Case, fits: impl Fn(&Row) -> bool) -> Option<(&'a StepKernels, f64)> {
    let shares = case.kernels().iter().map(|device| (device, device.share(&fits)));
    shares.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    #[test]
    fn kernels_side_by_side_take_no_more_than_the_step() {
        let text = "track main\n repeat 10 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel a 1ms..7ms\n \
                    stream 8\n kernel b 1ms..7ms\n end";
        let timeline = Timeline::from_text(text).unwrap();
        let kernels = &StepKernels::find(&Case::new(&timeline, None))[0];
        assert!((kernels.share(|_| true) - 0.6).abs() < 1e-9, "{}", kernels.share(|_| true));
        let one = kernels.rows[0].name;
        assert!((kernels.share(|row| row.name == one) - 0.3).abs() < 1e-9);
    }
}
