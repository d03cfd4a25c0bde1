//! The table of metrics: name, unit and meaning. docs/user-rules.md shows it.

use analysis::phrase;

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

/// The known word that a mistyped one is nearest to. None: nothing is near, and a suggestion would only confuse.
pub fn nearest_of<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let even = |word: &str| word.chars().take(100).collect::<String>().to_lowercase().replace('-', "_");
    let word = even(word);
    // The beginning of a word is more than some of its letters.
    let begins = |name: &str| word.len() >= BEGINNING && even(name).starts_with(&word);
    let near = known.min_by_key(|name| (!begins(name), distance(&word, &even(name))))?;
    let slip = distance(&word, &even(near)) <= (word.len().max(near.len()) / 3).max(2);
    (slip || begins(near)).then_some(near)
}

/// With fewer letters too many words begin.
const BEGINNING: usize = 3;

/// Letters to change, add or take away.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
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
        let known = || ["rats", "rate_hz", "memory_hz", "trace_size_mb"].into_iter();
        for (word, near) in
            [("rate", "rate_hz"), ("rate_hertz", "rate_hz"), ("Trace-Size", "trace_size_mb"), ("rat", "rats")]
        {
            assert_eq!(nearest_of(word, known()), Some(near), "{word}");
        }
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }

    #[test]
    fn values_read_well() {
        assert_eq!(Unit::Milliseconds.say(12.345), "12.3 ms");
        assert_eq!((Unit::Share.say(0.414), Unit::Count.say(3.0)), ("41.4 %".into(), "3".into()));
        assert_eq!((Unit::Mebibytes.say(2048.0), Unit::Count.say(2.5)), ("2.0 GiB".into(), "2.50".into()));
    }
}
