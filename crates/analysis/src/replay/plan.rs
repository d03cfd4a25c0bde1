//! What a replay changes: how long each work and call takes, which are gone, how much of the host's own code stays. Made from
//! changes by `apply`; a plan without any is the recording.

use super::graph::Graph;
use crate::spans::Spans;
use std::collections::HashMap;

pub struct Plan {
    /// Of each job.
    pub dur: Vec<i64>,
    pub gone: Vec<bool>,
    /// Of each call: a cost that replaces what it took, and any wait. None: as recorded.
    pub cost: Vec<Option<i64>>,
    pub cuts: Vec<Cut>,
    /// Jobs that start so long after the begin of their call at the most.
    pub latency: HashMap<u32, i64>,
    /// The longest gap between two works of a stream that nothing else explains.
    pub gap: Option<i64>,
    /// What a change had to leave as it was, and why.
    pub notes: Vec<String>,
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
            cuts: Vec::new(),
            latency: HashMap::new(),
            gap: None,
            notes: Vec::new(),
            zero: graph.timeline.start,
        }
    }

    /// How long the host code between two recorded moments of a thread takes.
    pub fn host(&self, track: u32, from: i64, to: i64) -> i64 {
        let between = to - from;
        if between <= 0 || self.cuts.is_empty() {
            return between;
        }
        let at = |time: i64| u64::try_from(time).unwrap_or(0).saturating_add(self.zero);
        let mut left = between as f64;
        for cut in &self.cuts {
            let inside = cut.spans.get(track as usize).map_or(0, |spans| spans.overlap(at(from), at(to)));
            left += inside as f64 * (cut.factor - 1.0);
        }
        (left.round() as i64).max(0)
    }
}
