//! What each process and thread used: CPU time, waiting, memory. Numbers that were not read are `None`.

use crate::stats::curve::{ByProcess, growth};
use timeline::{Counter, ProcessIndex, Timeline, TrackIndex, counters as counter_names};

/// The thread number of rows that are about no thread in particular.
const WHOLE_PROCESS: i32 = 0;

#[derive(Clone, PartialEq, Debug)]
pub struct ProcessMetrics {
    pub process: ProcessIndex,
    pub threads: usize,
    pub cpu_ns: Option<u64>,
    pub peak_rss: Option<u64>,
    pub peak_pss: Option<u64>,
    pub peak_swap: Option<u64>,
    pub major_faults: Option<u64>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ThreadMetrics {
    pub track: TrackIndex,
    pub cpu_ns: Option<u64>,
    /// Ready to run, but waiting for a core.
    pub waited_ns: Option<u64>,
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    pub samples: u64,
    pub active_samples: u64,
}

pub fn processes(timeline: &Timeline) -> Vec<ProcessMetrics> {
    let counters = ByProcess::new(timeline);
    let mut threads = vec![0; timeline.processes.len()];
    for track in timeline.tracks.iter().filter(|track| track.tid != WHOLE_PROCESS) {
        threads[track.process.0 as usize] += 1;
    }
    let measure = |index: u32| {
        let process = ProcessIndex(index);
        let peak =
            |name| counters.whole(process, name)?.value.iter().max().and_then(|value| u64::try_from(*value).ok());
        // It is read seldom: the highest of one or two readings, taken while the process began, would not be its peak.
        let pss = counters.whole(process, counter_names::PSS_BYTES).is_some_and(|counter| counter.value.len() >= 3);
        let cpu = counters.cpu(process);
        let used = || cpu.iter().fold(0u64, |sum, counter| sum.saturating_add(grown(timeline, counter)));
        ProcessMetrics {
            process,
            threads: threads[index as usize],
            cpu_ns: (!cpu.is_empty()).then(used),
            peak_rss: peak(counter_names::RSS_BYTES),
            peak_pss: pss.then(|| peak(counter_names::PSS_BYTES)).flatten(),
            peak_swap: peak(counter_names::SWAP_BYTES),
            major_faults: counters.whole(process, counter_names::MAJOR_FAULTS).map(|counter| grown(timeline, counter)),
        }
    };
    (0..timeline.processes.len() as u32).map(measure).collect()
}

pub fn threads(timeline: &Timeline) -> Vec<ThreadMetrics> {
    let mut by_thread: std::collections::HashMap<(ProcessIndex, i32), Vec<&Counter>> = Default::default();
    for counter in &timeline.counters {
        if let (Some(process), Some(tid)) = (counter.process, counter.tid) {
            by_thread.entry((process, tid)).or_default().push(counter);
        }
    }
    let measure = |index: usize| {
        let track = &timeline.tracks[index];
        let counters = by_thread.get(&(track.process, track.tid)).map(Vec::as_slice).unwrap_or_default();
        let sum = |name: &str| counters.iter().find(|c| &*c.name == name).map(|counter| grown(timeline, counter));
        let active = track.samples.clone().filter(|sample| timeline.samples.get(*sample).active).count();
        ThreadMetrics {
            track: TrackIndex(index as u32),
            cpu_ns: sum(counter_names::CPU_NS),
            waited_ns: sum(counter_names::RUNQUEUE_WAIT_NS),
            voluntary_switches: sum(counter_names::VOLUNTARY_SWITCHES),
            involuntary_switches: sum(counter_names::INVOLUNTARY_SWITCHES),
            samples: track.samples.len() as u64,
            active_samples: active as u64,
        }
    };
    let mut threads: Vec<_> = (0..timeline.tracks.len()).map(measure).collect();
    threads.sort_by_key(|thread| {
        let slices = timeline.tracks[thread.track.0 as usize].slices.len();
        (u64::MAX - thread.cpu_ns.unwrap_or(0), u64::MAX - thread.active_samples, usize::MAX - slices, thread.track)
    });
    threads
}

fn grown(timeline: &Timeline, counter: &Counter) -> u64 {
    growth(timeline, counter).iter().fold(0, |sum, span| sum.saturating_add(span.2))
}
