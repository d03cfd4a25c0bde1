//! Takes the value of every metric out of what was measured, in the order of the table. Where something was not recorded
//! it says so: a limit or a rule must never take missing data for a zero.

use super::noise::{self, mean_of, percentile};
use super::per_step::{self, Owners, PerStep, Row};
use super::{Figures, METRICS, Measured};
use crate::wording;
use analysis::device::gpu::{DeviceMetrics, GpuMetrics};
use analysis::device::to_host::{CALLS_BETWEEN, TIME_BETWEEN_NS, ToHost};
use analysis::host::breakdown::PartKind;
use analysis::steps::StepSource;
use analysis::{Metrics, Steps};
use timeline::cuda_calls::CudaCall;
use timeline::gpu::detail;
use timeline::{SliceKind, Timeline, TrackIndex, counters as counter_names};

type Value = Result<Measured, String>;

const MS: f64 = 1e6;
const MIB: f64 = 1024.0 * 1024.0;

pub fn all(timeline: &Timeline, metrics: &Metrics, figures: Figures) -> Vec<Value> {
    let parts = per_step::measure(timeline, figures.steps);
    let source = Source { timeline, metrics, figures, parts };
    METRICS.iter().map(|metric| source.value(metric.name)).collect()
}

struct Source<'a> {
    timeline: &'a Timeline,
    metrics: &'a Metrics,
    figures: Figures<'a>,
    parts: PerStep,
}

impl Source<'_> {
    fn value(&self, name: &str) -> Value {
        match name {
            "lost_records" => {
                let lost = self.metrics.losses.iter().map(|loss| loss.count as f64).sum();
                Ok(Measured::exactly(lost))
            }
            "cpu_cores" => self.curve(self.metrics.cpu.as_ref().map(|curve| curve.mean), "processor time"),
            "memory_mib" => self.curve(self.metrics.memory.as_ref().map(|curve| curve.peak.value / MIB), "memory"),
            "gpu_memory_mib" => self.curve(gpu_memory(self.timeline), "GPU memory"),
            "steps" | "total_time" | "step_p50" | "step_p99" | "step_min" | "step_max" => self.step(name),
            "api_calls" | "api_time" | "syncs" | "sync_time" | "implicit_syncs" => self.calls(name),
            _ => match kind(name) {
                Some(kind) => self.part(kind),
                None => self.device(name),
            },
        }
    }

    fn curve(&self, value: Option<f64>, what: &str) -> Value {
        // The most of a recording has no spread over steps.
        let value = value.ok_or_else(|| format!("{what} not recorded"))?;
        Ok(Measured { value, error: None })
    }

    fn step(&self, name: &str) -> Value {
        let steps = self.figures.steps;
        if steps.count() == 0 || steps.total() == 0 {
            return Err("no step with a duration recorded".into());
        }
        let sorted = durations(steps);
        Ok(match name {
            "steps" => Measured::exactly(steps.count() as f64),
            "step_p50" => percentile(&sorted, 50),
            "step_p99" => percentile(&sorted, 99),
            "step_min" => Measured { value: sorted[0], error: None },
            "step_max" => Measured { value: sorted[sorted.len() - 1], error: None },
            _ => mean_of(sorted.iter().copied()),
        })
    }

    fn part(&self, kind: PartKind) -> Value {
        let breakdown = self.figures.breakdown;
        if breakdown.total_ns == 0 {
            return Err("no step with a duration recorded".into());
        }
        let measured = matches!(kind, PartKind::Gpu | PartKind::Gc | PartKind::Unknown);
        if !measured && !breakdown.by_calls && breakdown.samples == 0 {
            return Err("no stack samples inside the steps".into());
        }
        Ok(part_time(self.figures.steps, breakdown, breakdown.share(kind)))
    }

    fn gpu(&self) -> Result<&GpuMetrics, String> {
        self.figures.gpu.ok_or_else(|| "no GPU operations recorded".into())
    }

    fn device(&self, name: &str) -> Value {
        let gpu = self.gpu()?;
        let steps = self.figures.steps.count().max(1) as f64;
        let busy = busy(&gpu.devices);
        // The spread of what is measured only as a whole is that of the busy share, in proportion.
        let spread = busy.error.map(|error| error / busy.value.max(1e-9));
        let sum = |of: fn(&DeviceMetrics) -> u64| {
            let value = gpu.devices.iter().map(|device| of(device) as f64).sum::<f64>() / steps / MS;
            Measured { value, error: spread.map(|spread| spread * value) }
        };
        let time = |rows: &[Row]| scaled(total(rows, |row| row.time), 1.0 / MS);
        let of = |directions: &[u8]| rows_of(&self.parts.copies, directions);
        let mib = |rows: &[Row]| {
            let (bytes, error) = (rows.iter().map(|row| row.bytes).sum::<f64>(), total(rows, |row| row.count).error);
            Measured { value: bytes / MIB, error: error.map(|_| 0.0) }
        };
        Ok(match name {
            "gpu_busy" => busy,
            "gpu_idle" => Measured { value: (1.0 - busy.value).max(0.0), error: busy.error },
            "gpu_time" => sum(|device| device.busy_ns),
            "kernel_time" => sum(|device| device.kernel_ns),
            "copy_time" => sum(|device| device.copy_ns),
            "exposed_copy_time" => sum(|device| device.exposed_copy_ns),
            "kernels" | "kernels_per_step" => total(&self.parts.kernels, |row| row.count),
            "copies" => total(&self.parts.copies, |row| row.count),
            "h2d_time" => time(&of(&[detail::H2D])),
            "d2h_time" => time(&of(&[detail::D2H])),
            "d2d_time" => time(&of(&[detail::D2D, detail::P2P])),
            "h2d_mib" => mib(&of(&[detail::H2D])),
            "d2h_mib" => mib(&of(&[detail::D2H])),
            "copied_mib" => {
                let copies: Vec<Row> =
                    self.parts.copies.iter().filter(|row| row.key != NO_DIRECTION).cloned().collect();
                mib(&copies)
            }
            other => return Err(format!("{other} is not measured")),
        })
    }

    fn calls(&self, name: &str) -> Value {
        let slices = &self.timeline.slices;
        if !(0..slices.len()).any(|index| slices.kind(index) == SliceKind::ApiCall) {
            return Err(format!(
                "CUDA calls not recorded; {}",
                wording::origin::for_launches(self.timeline.info.recorded_by)
            ));
        }
        let all = &self.parts.apis;
        let waits: Vec<Row> = all.iter().filter(|row| CudaCall::of(&row.label).waits()).cloned().collect();
        match name {
            "api_calls" => Ok(total(all, |row| row.count)),
            "api_time" => Ok(scaled(total(all, |row| row.time), 1.0 / MS)),
            "syncs" => Ok(total(&waits, |row| row.count)),
            "sync_time" => Ok(scaled(total(&waits, |row| row.time), 1.0 / MS)),
            _ => {
                self.gpu()?;
                if self.timeline.gpu.work.linked().is_empty() {
                    return Err("no GPU operation is linked to a launch call".into());
                }
                Ok(implicit_syncs(self.timeline, self.figures.steps))
            }
        }
    }
}

/// Milliseconds, shortest first.
pub(crate) fn durations(steps: &Steps) -> Vec<f64> {
    let mut sorted: Vec<f64> = steps.measured().map(|step| step.dur() as f64 / MS).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A part of the steps' time: samples are few, and the steps differ.
pub(crate) fn part_time(steps: &Steps, breakdown: &analysis::host::breakdown::Breakdown, share: f64) -> Measured {
    let mean = mean_of(durations(steps).into_iter());
    let chance = match breakdown.samples {
        0 => 0.0,
        samples => 1.96 * (share * (1.0 - share).max(0.0) / samples as f64).sqrt() + 1.0 / samples as f64,
    };
    // Steps that overlap have the time in which any was open between them: a part of one is its share of that one, as the
    // reports say it.
    let shared = breakdown.overlapping && steps.source != StepSource::Whole;
    let step = if shared { mean.value } else { breakdown.step_ns as f64 / MS };
    let value = share * step;
    Measured { value, error: mean.error.map(|error| (share * error).hypot(chance * mean.value)) }
}

/// Mean over the devices, with the spread over the steps.
fn busy(devices: &[DeviceMetrics]) -> Measured {
    let count = devices.len().max(1) as f64;
    let share = |device: &DeviceMetrics| device.busy_ns as f64 / device.window_ns.max(1) as f64;
    let value = devices.iter().map(share).sum::<f64>() / count;
    let errors: Vec<Option<f64>> =
        devices.iter().map(|device| mean_of(device.per_step_busy.iter().copied()).error).collect();
    let error = errors.iter().copied().try_fold(0.0f64, |sum, error| error.map(|error| sum.hypot(error)));
    Measured { value, error: error.map(|error| error / count) }
}

fn rows_of(rows: &[Row], directions: &[u8]) -> Vec<Row> {
    rows.iter().filter(|row| directions.iter().any(|one| u32::from(*one) == row.key)).cloned().collect()
}

/// Memsets and migrations copy in none.
const NO_DIRECTION: u32 = 0;

/// Of names that vary together the errors add up: that is the most they can be.
fn total(rows: &[Row], of: fn(&Row) -> Measured) -> Measured {
    rows.iter().map(of).fold(Measured::exactly(0.0), |sum, one| Measured {
        value: sum.value + one.value,
        error: sum.error.zip(one.error).map(|(a, b)| a + b),
    })
}

fn scaled(measured: Measured, by: f64) -> Measured {
    Measured { value: measured.value * by, error: measured.error.map(|error| error * by) }
}

fn kind(name: &str) -> Option<PartKind> {
    Some(match name {
        "python_time" => PartKind::Python,
        "native_time" => PartKind::Native,
        "waiting_time" => PartKind::Waiting,
        "gpu_wait_time" => PartKind::Gpu,
        "gil_time" => PartKind::Gil,
        "gc_time" => PartKind::Gc,
        "descheduled_time" => PartKind::Descheduled,
        "unseen_time" => PartKind::Unknown,
        _ => return None,
    })
}

/// The most that the recorded processes held together at one time, in MiB.
fn gpu_memory(timeline: &Timeline) -> Option<f64> {
    let counters: Vec<_> =
        timeline.counters.iter().filter(|counter| &*counter.name == counter_names::GPU_PROCESS_MEMORY_BYTES).collect();
    let mut readings: Vec<(u64, usize, f64)> = Vec::new();
    for (place, counter) in counters.iter().enumerate() {
        readings.extend(counter.time.iter().zip(&counter.value).map(|(time, value)| (*time, place, *value as f64)));
        // A process that has ended holds nothing.
        let process = counter.process.and_then(|process| timeline.processes.get(process.0 as usize));
        readings.extend(process.and_then(|process| process.ended_ns).map(|ended| (ended, place, 0.0)));
    }
    readings.sort_by_key(|reading| (reading.0, reading.1));
    let mut held = vec![0.0; counters.len()];
    let (mut sum, mut most) = (0.0f64, 0.0f64);
    for (_, place, value) in readings {
        sum += value - held[place];
        held[place] = value;
        most = most.max(sum);
    }
    (!counters.is_empty()).then_some(most / MIB)
}

/// Small copies to the host for which it waits: in the call itself, or in a wait right after it.
fn implicit_syncs(timeline: &Timeline, steps: &Steps) -> Measured {
    let mut owners = Owners::new(timeline, steps);
    let slices = &timeline.slices;
    let mut per_step = vec![0u64; steps.steps.len()];
    for (place, track) in timeline.tracks.iter().enumerate() {
        let calls: Vec<usize> =
            track.slices.clone().filter(|index| slices.kind(*index) == SliceKind::ApiCall).collect();
        for (at, call) in calls.iter().enumerate() {
            let Some(copy) = ToHost::of(timeline, *call).filter(|copy| copy.is_small()) else { continue };
            let end = slices.start[*call].saturating_add(slices.dur[*call]);
            let waited = calls[at + 1..]
                .iter()
                .take(CALLS_BETWEEN)
                .any(|next| slices.start[*next].saturating_sub(end) <= TIME_BETWEEN_NS && timeline.call(*next).waits());
            let itself = !timeline.call(*call).is_async() || copy.pageable;
            if (waited || itself)
                && let Some(step) = owners.of_call(TrackIndex(place as u32), slices.start[*call])
                && let Some(count) = per_step.get_mut(step as usize)
            {
                *count += 1;
            }
        }
    }
    noise::mean_of(steps.measured().map(|step| per_step[step.index as usize] as f64))
}
