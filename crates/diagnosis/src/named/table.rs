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
    metric("total_time", Milliseconds, "a step from begin to end, the mean"),
    metric("step_p50", Milliseconds, "what half of the steps do not exceed"),
    metric("step_p99", Milliseconds, "what 99 of 100 steps do not exceed"),
    metric("step_min", Milliseconds, "the shortest step"),
    metric("step_max", Milliseconds, "the longest step"),
    metric("steps", Count, "steps that count, without warm-up"),
    metric("gpu_busy", Share, "the part of the steps in which any work ran on a GPU, mean over the GPUs"),
    metric("gpu_idle", Share, "the part of the steps in which none ran"),
    metric("gpu_time", Milliseconds, "any work of a GPU, overlap counted once, sum over the GPUs"),
    metric("kernel_time", Milliseconds, "kernels, overlap counted once, sum over the GPUs"),
    metric("copy_time", Milliseconds, "copies and memsets, overlap counted once, sum over the GPUs"),
    metric("exposed_copy_time", Milliseconds, "copies with no kernel of the GPU beside them"),
    metric("kernels", Count, "kernels launched in a step; in recordings without launches, begun in it"),
    metric("kernels_per_step", Count, "the same as kernels"),
    metric("copies", Count, "copies and memsets"),
    metric("h2d_time", Milliseconds, "copies from the host to a GPU, their times added up"),
    metric("d2h_time", Milliseconds, "copies from a GPU to the host"),
    metric("d2d_time", Milliseconds, "copies inside a GPU or between GPUs"),
    metric("h2d_mib", Mebibytes, "copied from the host to a GPU"),
    metric("d2h_mib", Mebibytes, "copied from a GPU to the host"),
    metric("copied_mib", Mebibytes, "copied in all directions"),
    metric("api_calls", Count, "CUDA calls of the host"),
    metric("api_time", Milliseconds, "CUDA calls of the host, their times added up"),
    metric("syncs", Count, "calls that wait for a GPU (`…Synchronize`)"),
    metric("sync_time", Milliseconds, "calls that wait for a GPU, their times added up"),
    metric(
        "implicit_syncs",
        Count,
        "copies of at most 64 KiB to the host that the host waits for: `.item()`, `nonzero`",
    ),
    metric("python_time", Milliseconds, "the steps' threads run Python"),
    metric("native_time", Milliseconds, "they run native code"),
    metric("waiting_time", Milliseconds, "they wait, not for a GPU"),
    metric("gpu_wait_time", Milliseconds, "they wait for a GPU"),
    metric("gil_time", Milliseconds, "they wait for the GIL"),
    metric("gc_time", Milliseconds, "they collect garbage"),
    metric("descheduled_time", Milliseconds, "they are ready but have no core"),
    metric("unseen_time", Milliseconds, "neither a sample nor a call tells"),
    metric("cpu_cores", Count, "cores in use, the mean of the recording"),
    metric("memory_mib", Mebibytes, "resident memory of all processes, the most in the recording"),
    metric("gpu_memory_mib", Mebibytes, "GPU memory of the recorded processes, the most in the recording"),
    metric("lost_records", Count, "records that the recording lost"),
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
