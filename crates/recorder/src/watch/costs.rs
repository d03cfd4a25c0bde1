//! What each source of outside samples costs for one process, measured by reading it: for `doctor`.

use crate::outcome::SourceCost;
use crate::pace::cpu_time;
use std::fs;

/// Readings of each file; the cheapest counts, for the first one warms caches.
const READINGS: usize = 3;

pub(crate) fn measure(pid: u32) -> Vec<SourceCost> {
    let own = |file: &str| format!("/proc/{pid}/{file}");
    let thread = |file: &str| format!("/proc/{pid}/task/{pid}/{file}");
    let mut sources = vec![
        (own("stat"), "resident memory, page faults"),
        (own("smaps_rollup"), "PSS, swap (at most once a second)"),
        (own("numa_maps"), "NUMA placement (at most every 2 seconds)"),
        (thread("schedstat"), "CPU and run-queue time of a thread"),
        (thread("status"), "context switches of a thread"),
    ];
    let pressure = crate::memory::pressure::FILES.map(|file| (format!("/proc/pressure/{file}"), "pressure (PSI)"));
    sources.extend(pressure);
    sources.into_iter().map(|(file, what)| measure_one(file, what)).collect()
}

fn measure_one(file: String, what: &str) -> SourceCost {
    let readings = (0..READINGS).map(|_| cpu_time(|| fs::read(&file)));
    let best = readings.min_by_key(|(_, cost)| *cost);
    let (cost_ns, reason) = match best {
        Some((Ok(_), cost)) => (cost.as_nanos() as u64, String::new()),
        Some((Err(error), _)) => (0, error.to_string()),
        None => (0, String::new()),
    };
    SourceCost { file, what: what.into(), cost_ns, available: reason.is_empty(), reason }
}
