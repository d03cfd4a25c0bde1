//! What a replay changes: how long each work and call takes, which are gone, how much of the host's own code stays. Made from
//! changes by `apply`; a plan without any is the recording.

use super::graph::Graph;
use crate::assumption::Assumption;
use analysis::steps::spans::Spans;
use std::collections::HashMap;

pub struct Plan {
    /// Of each job.
    pub dur: Vec<i64>,
    pub gone: Vec<bool>,
    /// Of each call: a cost that replaces what it took, and any wait. None: as recorded.
    pub cost: Vec<Option<i64>>,
    /// What recording added to each call: it goes from what the call takes.
    pub recording: i64,
    pub cuts: Vec<Cut>,
    /// Jobs that start so long after the begin of their call at the most.
    pub latency: HashMap<u32, i64>,
    /// The longest gap between two works of a stream that nothing else explains.
    pub gap: Option<i64>,
    /// What a change had to leave as it was, and why.
    pub notes: Vec<Assumption>,
    /// Of each change that rests on samples: how many show it, of how many in the steps.
    pub sampled: Vec<(u64, u64)>,
    zero: u64,
}

/// Host code that takes another time: by thread.
pub struct Cut {
    pub spans: Vec<Spans>,
    /// What stays of it.
    pub factor: f64,
}

impl Plan {
    pub fn unchanged(graph: &Graph) -> Plan {
        Plan {
            dur: graph.jobs.iter().map(|job| job.end - job.start).collect(),
            gone: vec![false; graph.jobs.len()],
            cost: vec![None; graph.calls.len()],
            recording: 0,
            cuts: Vec::new(),
            latency: HashMap::new(),
            gap: None,
            notes: Vec::new(),
            sampled: Vec::new(),
            zero: graph.timeline.start,
        }
    }

    /// The same without what recording adds to each call.
    pub fn unrecorded(graph: &Graph, recording: i64) -> Plan {
        Plan { recording, ..Plan::unchanged(graph) }
    }

    /// What a call that waits for nothing takes.
    pub fn call(&self, index: usize, recorded: i64) -> i64 {
        (self.cost[index].unwrap_or(recorded) - self.recording).max(0)
    }

    /// How long the host code between two recorded moments of a thread takes.
    pub fn host(&self, track: u32, from: i64, to: i64) -> i64 {
        let between = to - from;
        if between <= 0 || self.cuts.is_empty() {
            return between;
        }
        let at = |time: i64| u64::try_from(time).unwrap_or(0).saturating_add(self.zero);
        let (from, to) = (at(from), at(to));
        let cuts = self.cuts.iter().filter_map(|cut| Some((cut.spans.get(track as usize)?, cut.factor)));
        let left = match self.cuts.len() {
            1 => {
                cuts.map(|(spans, factor)| spans.overlap(from, to) as f64 * (factor - 1.0)).sum::<f64>()
                    + between as f64
            }
            _ => together(&cuts.collect::<Vec<_>>(), from, to, between),
        };
        (left.round() as i64).max(0)
    }
}

/// Where cuts lie in each other (a function in the one that calls it), what stays of both is the product: what is removed twice
/// is gone once.
fn together(cuts: &[(&Spans, f64)], from: u64, to: u64, between: i64) -> f64 {
    let inside = |spans: &Spans| -> Vec<(u64, u64)> {
        let first = spans.all().partition_point(|span| span.1 <= from);
        let those = spans.all()[first..].iter().take_while(|span| span.0 < to);
        those.map(|span| (span.0.max(from), span.1.min(to))).collect()
    };
    let all: Vec<(Vec<(u64, u64)>, f64)> = cuts.iter().map(|(spans, factor)| (inside(spans), *factor)).collect();
    let mut edges: Vec<u64> = all.iter().flat_map(|cut| &cut.0).flat_map(|span| [span.0, span.1]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut at = vec![0; all.len()];
    let mut left = between as f64;
    for edge in edges.windows(2) {
        let mut stays = 1.0;
        for ((spans, factor), at) in all.iter().zip(&mut at) {
            while spans.get(*at).is_some_and(|span| span.1 <= edge[0]) {
                *at += 1;
            }
            if spans.get(*at).is_some_and(|span| span.0 <= edge[0]) {
                stays *= factor;
            }
        }
        left += (edge[1] - edge[0]) as f64 * (stays - 1.0);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_twice_is_gone_once() {
        let (outer, inner, apart) =
            (Spans::union(vec![(10, 60)]), Spans::union(vec![(20, 30), (40, 70)]), Spans::union(vec![(80, 200)]));
        let left = |cuts: &[(&Spans, f64)]| together(cuts, 0, 100, 100);
        assert_eq!(left(&[(&outer, 0.0), (&inner, 0.0)]), 40.0);
        assert_eq!(left(&[(&outer, 0.5), (&inner, 0.5)]), 100.0 - 20.0 * 0.5 - 30.0 * 0.75 - 10.0 * 0.5);
        assert_eq!(left(&[(&outer, 0.0), (&apart, 2.0)]), 70.0);
        assert_eq!(left(&[]), 100.0);
    }
}
