//! Steps, functions, processes and threads of a window.

use crate::model::{Function, Process, Steps, Thread};
use analysis::{Metrics, StepSource};
use diagnosis::Diagnosis;
use timeline::{Counter, ProcessIndex, Timeline, counters as counter_names};

/// As many steps as a wide screen has columns.
const MOST_STEPS: usize = 400;
const MOST_FUNCTIONS: usize = 100;
const MOST_THREADS: usize = 200;
const MOST_PROCESSES: usize = 200;

/// None: nothing repeats in the window.
pub fn steps(timeline: &Timeline, diagnosis: &Diagnosis, zero: u64) -> Option<Steps> {
    let steps = &diagnosis.steps;
    if steps.source == StepSource::Whole || steps.count() == 0 {
        return None;
    }
    let all: Vec<(u64, u64)> = steps.measured().map(|step| (step.start.saturating_sub(zero), step.dur())).collect();
    let seconds = timeline.duration() as f64 / 1e9;
    Some(Steps {
        name: steps.name.clone(),
        source: steps.source.name(),
        confidence: steps.confidence,
        count: all.len() as u64,
        per_second: if seconds > 0.0 { all.len() as f64 / seconds } else { 0.0 },
        p50_ns: steps.p50(),
        p99_ns: steps.p99(),
        slowest_ns: steps.max(),
        recent: all[all.len().saturating_sub(MOST_STEPS)..].to_vec(),
    })
}

/// Empty where there are too few samples to say a share.
pub fn functions(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis) -> Vec<Function> {
    let Some(samples) = metrics.samples.as_ref().filter(|_| !diagnosis.too_few_samples) else { return Vec::new() };
    let share = |count: u64| 100.0 * count as f64 / samples.active.max(1) as f64;
    let row = |function: &analysis::SampledFunction| {
        let name = timeline.names.get(function.name);
        Function {
            name: name.text.to_string(),
            file: name.file.to_string(),
            line: name.line,
            own_percent: share(function.own),
            total_percent: share(function.total),
        }
    };
    samples.functions.iter().take(MOST_FUNCTIONS).map(row).collect()
}

pub fn processes(timeline: &Timeline, metrics: &Metrics) -> Vec<Process> {
    let window = timeline.duration();
    let row = |one: &analysis::ProcessMetrics| {
        let process = &timeline.processes[one.process.0 as usize];
        Process {
            pid: process.pid,
            name: process.program.clone(),
            rank: process.rank,
            threads: one.threads,
            cpu_percent: one.cpu_ns.and_then(|used| percent(used, window)),
            rss_bytes: newest(timeline, one.process, counter_names::RSS_BYTES),
            ended: process.ended_ns.is_some_and(|ended| ended <= timeline.end),
        }
    };
    metrics.processes.iter().take(MOST_PROCESSES).map(row).collect()
}

pub fn threads(timeline: &Timeline, metrics: &Metrics) -> Vec<Thread> {
    let window = timeline.duration();
    let row = |one: &analysis::ThreadMetrics| {
        let track = &timeline.tracks[one.track.0 as usize];
        Thread {
            pid: timeline.process(track).pid,
            tid: track.tid,
            name: track.name.to_string(),
            cpu_percent: one.cpu_ns.and_then(|used| percent(used, window)),
            waited_percent: one.waited_ns.and_then(|waited| percent(waited, window)),
        }
    };
    let known = metrics.threads.iter().filter(|one| one.cpu_ns.is_some() || one.active_samples > 0);
    known.take(MOST_THREADS).map(row).collect()
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// The last reading of a counter of a process.
fn newest(timeline: &Timeline, process: ProcessIndex, name: &str) -> Option<u64> {
    let own = |counter: &&Counter| counter.process == Some(process) && counter.tid.is_none() && &*counter.name == name;
    timeline.counters.iter().find(own)?.value.last().and_then(|value| u64::try_from(*value).ok())
}
