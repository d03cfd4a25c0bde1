//! What every thread of the program ran, and how long it waited for a core, while steps were open.

use crate::rule::Case;
use analysis::host::series::Nature;
use analysis::steps::windows::StepSpans;
use std::collections::HashMap;
use timeline::{ProcessIndex, TrackIndex, counters as counter_names};

pub struct Thread {
    pub process: ProcessIndex,
    pub tid: i32,
    pub ran: f64,
    pub waited: f64,
}

/// What every thread ran and waited while a step was open anywhere.
pub fn threads(case: &Case, steps: &StepSpans) -> Vec<Thread> {
    let mut all: HashMap<(ProcessIndex, i32), (Option<f64>, Option<f64>)> = HashMap::new();
    let evenly = |_, _| None;
    for counter in &case.timeline.counters {
        let (Some(process), Some(tid)) = (counter.process, counter.tid) else { continue };
        let place = match &*counter.name {
            counter_names::CPU_NS => 0,
            counter_names::RUNQUEUE_WAIT_NS => 1,
            _ => continue,
        };
        let growth = case.readings.inside(counter, steps, TrackIndex(0), &Nature::Time(&evenly));
        let both = all.entry((process, tid)).or_default();
        *if place == 0 { &mut both.0 } else { &mut both.1 } = growth.map(|growth| growth.tally.part);
    }
    let known = all
        .into_iter()
        .filter_map(|((process, tid), (ran, waited))| Some(Thread { process, tid, ran: ran?, waited: waited? }));
    let mut threads: Vec<Thread> = known.collect();
    threads.sort_by(|a, b| b.waited.total_cmp(&a.waited).then((a.process, a.tid).cmp(&(b.process, b.tid))));
    threads
}
