//! What the recording itself shows to be the least, usual and most cost of the small things: from a launch to its start in an
//! idle stream, from one work to the next in a busy one, from the end of work to the return of a wait for it.

use super::{Call, Graph, Job};
use crate::assume::Assume;
use std::collections::HashMap;

/// So many times the 95th percentile is out of the usual.
const LONG: i64 = 10;

/// Of what was recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usual {
    /// The 5th, 50th and 95th percentile.
    three: [i64; 3],
    quarter: i64,
    /// What is longer is out of the usual: three times the middle half above that half, as statistics say it, and not so long
    /// that no device takes it.
    pub most: i64,
}

impl Usual {
    fn of(mut all: Vec<i64>) -> Usual {
        all.sort_unstable();
        let at = |percent: usize| all.get(all.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0);
        let above = (at(75) - at(25)).saturating_mul(4).min(LONGEST_NS.max(at(25).saturating_mul(3)));
        Usual {
            three: [at(5), at(50), at(95)],
            quarter: at(25),
            most: at(25).saturating_add(above).saturating_add(JITTER_NS),
        }
    }

    /// However many there are: what is longer is none of its kind.
    fn at_most(mut self, longest: i64) -> Usual {
        self.most = self.most.min(longest);
        self.three = self.three.map(|one| one.min(longest));
        self
    }

    pub fn at(&self, assume: Assume) -> i64 {
        self.three[assume as usize]
    }

    fn apart(&self) -> i64 {
        self.three[2] - self.three[0]
    }
}

/// Both clocks and the device's own work differ by this from one time to the next, however alike the others are.
const JITTER_NS: i64 = 2_000;
/// A launch or an event that takes this much longer than a quarter of its kind has waited for something.
const LONGEST_NS: i64 = 100_000;

/// From a launch call to the start of its work. A launch of a graph takes long and its first node starts near the call's end,
/// whatever the call took; a kernel starts some microseconds after its call began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    pub from_end: bool,
    pub usual: Usual,
}

impl Latency {
    /// What the time is counted from.
    pub fn anchor(&self, begin: i64, end: i64) -> i64 {
        if self.from_end { end } else { begin }
    }
}

#[derive(Debug, Default)]
pub struct Floors {
    /// By the name of the call.
    latencies: HashMap<u32, Latency>,
    latency: Latency,
    /// Between two works of a stream: launched one by one, or as nodes of a graph.
    gaps: [Usual; 2],
    /// The shortest recorded call by name, without what it waited.
    shortest: HashMap<u32, i64>,
    /// By the name of the call that waits.
    returns: HashMap<u32, Usual>,
    any_return: Usual,
}

impl Floors {
    pub fn measure(graph: &Graph) -> Floors {
        let mut by_name: HashMap<u32, [Vec<i64>; 2]> = HashMap::new();
        let mut gaps: [Vec<i64>; 2] = Default::default();
        for job in &graph.jobs {
            let Some(call) = (job.call as usize).checked_sub(1).map(|call| graph.calls[call]) else { continue };
            let end = |place: u32| (place as usize).checked_sub(1).map_or(i64::MIN, |other| graph.jobs[other].end);
            let (before, after) = (end(job.before), end(job.after));
            let warmup = (call.step as usize).checked_sub(1).is_none_or(|step| !graph.steps[step].measured);
            if after > before.max(call.begin) {
                // It waited for another stream.
            } else if before <= call.begin && !warmup {
                let [from_begin, from_end] = by_name.entry(call.name).or_default();
                from_begin.push((job.start - call.begin).max(0));
                from_end.push(job.start - call.end);
            } else if before >= call.end && job.start >= before {
                gaps[kind(graph, job)].push(job.start - before);
            }
        }
        let all: Vec<i64> = by_name.values().flat_map(|[from_begin, _]| from_begin).copied().collect();
        let waits: Vec<bool> = waiting(graph);
        let latencies = by_name.into_iter().map(|(name, samples)| (name, latency(samples, waits[name as usize])));
        let latencies = latencies.collect();
        let (shortest, returns) = calls(graph);
        let any_return = Usual::of(returns.values().flatten().copied().collect());
        let returns = returns.into_iter().map(|(name, all)| (name, Usual::of(all))).collect();
        let latency = Latency { from_end: false, usual: Usual::of(all) };
        Floors {
            latencies,
            latency,
            gaps: gaps.map(|all| Usual::of(all).at_most(LONGEST_NS)),
            shortest,
            returns,
            any_return,
        }
    }

    /// Of a call with this name.
    pub fn latency(&self, name: u32) -> Latency {
        self.latencies.get(&name).copied().unwrap_or(self.latency)
    }

    /// From the begin of any call to the start of its work in an idle stream, as it usually is.
    pub fn soonest(&self) -> i64 {
        self.latency.usual.at(Assume::Usual)
    }

    /// Longer than this from a launch to its start, something else held the work back.
    pub fn explained(&self) -> i64 {
        let gap = self.gaps.iter().map(|gap| gap.at(Assume::Worst)).max().unwrap_or(0);
        LONG.saturating_mul(self.latency.usual.at(Assume::Worst).max(gap))
    }

    /// Of works that are launched one by one: what they could do, as the shortest of them do.
    pub fn shortest_gap(&self, assume: Assume) -> i64 {
        match assume {
            Assume::Best => 0,
            Assume::Usual => self.gaps[0].at(Assume::Best),
            Assume::Worst => self.gaps[0].quarter,
        }
    }

    pub fn gap(&self, graph: &Graph, job: &Job) -> Usual {
        self.gaps[kind(graph, job)]
    }

    pub fn returns(&self, name: u32, assume: Assume) -> i64 {
        self.returns.get(&name).unwrap_or(&self.any_return).at(assume)
    }

    pub fn shortest(&self, name: u32) -> i64 {
        self.shortest.get(&name).copied().unwrap_or(0)
    }
}

/// From the end of the call where that varies by far less. Not of calls that wait for their own work: they end after it.
fn latency([from_begin, from_end]: [Vec<i64>; 2], waits: bool) -> Latency {
    let (from_begin, from_end) = (Usual::of(from_begin), Usual::of(from_end));
    match !waits && 2 * from_end.apart() < from_begin.apart() {
        true => Latency { from_end: true, usual: from_end },
        false => Latency { from_end: false, usual: from_begin },
    }
}

/// By name: whether any such call waits for work.
fn waiting(graph: &Graph) -> Vec<bool> {
    let mut waits = vec![false; graph.timeline.names.len()];
    graph.calls.iter().filter(|call| call.wait != 0 && !call.room).for_each(|call| waits[call.name as usize] = true);
    waits
}

/// By name: the shortest call without what it waited, and the returns from waits.
fn calls(graph: &Graph) -> (HashMap<u32, i64>, HashMap<u32, Vec<i64>>) {
    let (mut shortest, mut returns) = (HashMap::<u32, i64>::new(), HashMap::<u32, Vec<i64>>::new());
    for call in &graph.calls {
        let least = shortest.entry(call.name).or_insert(i64::MAX);
        let waited = waited(graph, call);
        *least = (*least).min(call.end - waited.unwrap_or(call.begin));
        if let Some(end) = waited {
            returns.entry(call.name).or_default().push(call.end - end);
        }
    }
    (shortest, returns)
}

/// Until when a call waited, if it did.
fn waited(graph: &Graph, call: &Call) -> Option<i64> {
    let end = (call.wait as usize).checked_sub(1).map(|job| graph.jobs[job].end)?;
    (end > call.begin).then_some(end.min(call.end))
}

fn kind(graph: &Graph, job: &Job) -> usize {
    usize::from((job.call as usize).checked_sub(1).is_some_and(|call| graph.calls[call].jobs > 1))
}
