//! The table of metrics: name, unit and meaning. docs/user-rules.md shows it.

use analysis::phrase;
use analysis::spelling::nearest_of;

/// What a number counts, and so how it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Milliseconds,
    /// 0 to 1.
    Share,
    Count,
    Mebibytes,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Share => "share, 0 to 1",
            Unit::Count => "number",
            Unit::Mebibytes => "MiB",
        }
    }

    /// A value with its unit, as people say it. Values of metrics are never negative.
    pub fn say(self, value: f64) -> String {
        match self {
            Unit::Milliseconds => phrase::duration((value * 1e6).round() as u64),
            Unit::Share => format!("{:.1} %", 100.0 * value),
            Unit::Mebibytes => phrase::bytes((value * 1024.0 * 1024.0).round() as u64),
            Unit::Count if value.fract() == 0.0 || value.abs() >= 99.95 => format!("{value:.0}"),
            Unit::Count if value.abs() >= 9.995 => format!("{value:.1}"),
            Unit::Count => format!("{value:.2}"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub unit: Unit,
    pub what: &'static str,
}

const fn metric(name: &'static str, unit: Unit, what: &'static str) -> Metric {
    Metric { name, unit, what }
}

use Unit::{Count, Mebibytes, Milliseconds, Share};

/// All of them. Times, counts and sizes are of a mean step unless they say otherwise; without steps, of the recording.
pub static METRICS: &[Metric] = &[
    metric("total_time", Milliseconds, "mean step time"),
    metric("step_p50", Milliseconds, "median step time"),
    metric("step_p99", Milliseconds, "99th percentile of step time"),
    metric("step_min", Milliseconds, "the shortest step"),
    metric("step_max", Milliseconds, "the longest step"),
    metric("steps", Count, "measured steps, without warm-up"),
    metric("gpu_busy", Share, "share of step time in which a GPU is busy, mean over the GPUs"),
    metric("gpu_idle", Share, "share of step time in which it is idle"),
    metric("gpu_time", Milliseconds, "GPU busy time, overlap counted once, sum over the GPUs"),
    metric("kernel_time", Milliseconds, "kernels, overlap counted once, sum over the GPUs"),
    metric("copy_time", Milliseconds, "copies and memsets, overlap counted once, sum over the GPUs"),
    metric("exposed_copy_time", Milliseconds, "copies not overlapped by a kernel of the same GPU"),
    metric("kernels", Count, "kernels launched in a step; in recordings without launches, started in it"),
    metric("kernels_per_step", Count, "the same as kernels"),
    metric("copies", Count, "copies and memsets"),
    metric("h2d_time", Milliseconds, "copies from the host to a GPU, summed"),
    metric("d2h_time", Milliseconds, "copies from a GPU to the host"),
    metric("d2d_time", Milliseconds, "copies inside a GPU or between GPUs"),
    metric("h2d_mib", Mebibytes, "copied from the host to a GPU"),
    metric("d2h_mib", Mebibytes, "copied from a GPU to the host"),
    metric("copied_mib", Mebibytes, "copied in all directions"),
    metric("api_calls", Count, "CUDA calls of the host"),
    metric("api_time", Milliseconds, "CUDA calls of the host, summed"),
    metric("syncs", Count, "calls that wait for a GPU (`…Synchronize`)"),
    metric("sync_time", Milliseconds, "calls that wait for a GPU, summed"),
    metric(
        "implicit_syncs",
        Count,
        "copies of at most 64 KiB to the host that the host waits for: `.item()`, `nonzero`",
    ),
    metric("python_time", Milliseconds, "the steps' threads running Python"),
    metric("native_time", Milliseconds, "running native code"),
    metric("waiting_time", Milliseconds, "waiting, but not for a GPU"),
    metric("gpu_wait_time", Milliseconds, "waiting for a GPU"),
    metric("gil_time", Milliseconds, "waiting for the GIL"),
    metric("gc_time", Milliseconds, "garbage collection"),
    metric("descheduled_time", Milliseconds, "runnable but not scheduled"),
    metric("unseen_time", Milliseconds, "no sample or call shows what they did"),
    metric("cpu_cores", Count, "mean number of cores in use"),
    metric("memory_mib", Mebibytes, "peak resident memory of all processes"),
    metric("gpu_memory_mib", Mebibytes, "peak GPU memory of the recorded processes"),
    metric("lost_records", Count, "lost records"),
];

/// The place of a metric in [`METRICS`].
pub fn find(name: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.name == name)
}

/// The metric that a mistyped name is nearest to. None: nothing is near.
pub fn nearest(word: &str) -> Option<&'static str> {
    nearest_of(word, METRICS.iter().map(|metric| metric.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once_and_slips_find_them() {
        for (place, metric) in METRICS.iter().enumerate() {
            assert_eq!(find(metric.name), Some(place), "{}", metric.name);
        }
        assert_eq!((nearest("step-p5O"), nearest("kernal_time")), (Some("step_p50"), Some("kernel_time")));
        assert_eq!(nearest("xylophone_quartet_of_the_north"), None);
    }

    #[test]
    fn values_read_well() {
        assert_eq!(Unit::Milliseconds.say(12.345), "12.3 ms");
        assert_eq!((Unit::Share.say(0.414), Unit::Count.say(3.0)), ("41.4 %".into(), "3".into()));
        assert_eq!((Unit::Mebibytes.say(2048.0), Unit::Count.say(2.5)), ("2.00 GiB".into(), "2.50".into()));
    }
}
