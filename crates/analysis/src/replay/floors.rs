//! What the recording itself shows to be the least, usual and most cost of the small things: from a launch to its start in an
//! idle stream, from one work to the next in a busy one, a wait that has nothing to wait for.

use super::Assume;
use super::graph::Graph;
use std::collections::HashMap;

/// So many times the 95th percentile is out of the usual.
const LONG: i64 = 10;

#[derive(Debug, Default)]
pub struct Floors {
    /// Least, usual, most: the 5th, 50th and 95th percentile of what was recorded. By the name of the call: a launch of a graph
    /// takes longer to start than one of a kernel.
    latencies: HashMap<u32, [i64; 3]>,
    latency: [i64; 3],
    gap: [i64; 3],
    /// The shortest recorded call by name, without what it waited.
    shortest: HashMap<u32, i64>,
    /// From the end of work to the return of a wait for it.
    returns: [i64; 3],
}

impl Floors {
    pub fn measure(graph: &Graph) -> Floors {
        let (mut by_name, mut gaps, mut returns) = (HashMap::<u32, Vec<i64>>::new(), Vec::new(), Vec::new());
        for job in &graph.jobs {
            let Some(call) = (job.call as usize).checked_sub(1).map(|call| graph.calls[call]) else { continue };
            let before = (job.before as usize).checked_sub(1).map_or(i64::MIN, |before| graph.jobs[before].end);
            let warmup = (call.step as usize).checked_sub(1).is_none_or(|step| !graph.steps[step].measured);
            if before <= call.begin && !warmup {
                by_name.entry(call.name).or_default().push((job.start - call.begin).max(0));
            } else if before >= call.end && job.start >= before {
                gaps.push(job.start - before);
            }
        }
        let mut shortest: HashMap<u32, i64> = HashMap::new();
        for call in &graph.calls {
            let least = shortest.entry(call.name).or_insert(i64::MAX);
            let waited = (call.wait as usize).checked_sub(1).map(|job| graph.jobs[job].end);
            let waited = waited.filter(|end| *end > call.begin).map(|end| end.min(call.end));
            *least = (*least).min(call.end - waited.unwrap_or(call.begin));
            returns.extend(waited.map(|end| call.end - end));
        }
        let three = |mut all: Vec<i64>| {
            all.sort_unstable();
            let at = |percent: usize| all.get(all.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0);
            [at(5), at(50), at(95)]
        };
        let latency = three(by_name.values().flatten().copied().collect());
        let latencies = by_name.into_iter().map(|(name, all)| (name, three(all))).collect();
        Floors { latencies, latency, gap: three(gaps), shortest, returns: three(returns) }
    }

    /// Of a call with this name.
    pub fn latency(&self, name: u32, assume: Assume) -> i64 {
        self.latencies.get(&name).unwrap_or(&self.latency)[assume as usize]
    }

    /// Longer than this from a launch to its start, something else held the work back.
    pub fn explained(&self) -> i64 {
        LONG.saturating_mul(self.latency[Assume::Worst as usize].max(self.gap[Assume::Worst as usize]))
    }

    pub fn gap(&self, assume: Assume) -> i64 {
        self.gap[assume as usize]
    }

    pub fn returns(&self, assume: Assume) -> i64 {
        self.returns[assume as usize]
    }

    pub fn shortest(&self, name: u32) -> i64 {
        self.shortest.get(&name).copied().unwrap_or(0)
    }
}
