//! How long a thread that seemed to run had no core: a sample cannot tell, the kernel's counter of each thread can.

use super::IdleInputs;
use crate::stats::curve::growth;
use crate::stats::seek::seek;
use timeline::{TrackIndex, counters as counter_names};

/// How much of a stretch in which a thread seemed to run it had no core.
pub fn without_core(queued: &[(u64, u64, f64)], near: &mut usize, start: u64, end: u64) -> u64 {
    seek(queued, near, |stretch| stretch.1 <= start);
    match queued.get(*near) {
        Some((from, _, part)) if *from <= start => ((end - start) as f64 * part) as u64,
        _ => 0,
    }
}

/// The run-queue counter of a thread: what it grew by is given to the time in which samples show the thread running.
pub fn queued(inputs: IdleInputs, track: TrackIndex) -> Vec<(u64, u64, f64)> {
    let timeline = inputs.timeline;
    let own = &timeline.tracks[track.0 as usize];
    let mine = |counter: &&timeline::Counter| {
        counter.process == Some(own.process)
            && counter.tid == Some(own.tid)
            && &*counter.name == counter_names::RUNQUEUE_WAIT_NS
    };
    let Some(counter) = timeline.counters.iter().find(mine) else { return Vec::new() };
    let times = &timeline.samples.time[own.samples.clone()];
    let part = |(start, end, grown): (u64, u64, u64)| {
        let from = own.samples.start + times.partition_point(|time| *time < start);
        let to = own.samples.start + times.partition_point(|time| *time < end);
        let active = (from..to).filter(|index| timeline.samples.get(*index).active).count();
        let runs = if to > from { active as f64 / (to - from) as f64 } else { 1.0 };
        let part = grown as f64 / (runs * (end.saturating_sub(start)) as f64).max(1.0);
        (start, end, part.clamp(0.0, 1.0))
    };
    growth(timeline, counter).into_iter().filter(|stretch| stretch.2 > 0).map(part).collect()
}
