//! Questions to telemetry: which events, and what they come to by session, rank or device. One pass over the events, in little memory.

use crate::event::{Event, EventType, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which events count. Empty lists and None: all.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Filter {
    pub from_ns: Option<u64>,
    pub to_ns: Option<u64>,
    pub kinds: Vec<EventType>,
    pub ranks: Vec<u32>,
    pub sessions: Vec<String>,
    pub devices: Vec<i64>,
    pub pids: Vec<i64>,
}

impl Filter {
    pub fn takes(&self, event: &Event) -> bool {
        let source = &event.source;
        self.from_ns.is_none_or(|from| event.time_ns >= from)
            && self.to_ns.is_none_or(|to| event.time_ns <= to)
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && (self.ranks.is_empty() || source.identity.rank.is_some_and(|rank| self.ranks.contains(&rank)))
            && (self.sessions.is_empty() || self.sessions.contains(&source.session))
            && (self.devices.is_empty() || self.devices.contains(&source.device_id))
            && (self.pids.is_empty() || self.pids.contains(&source.pid))
    }
}

/// What events are put together by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    Session,
    Rank,
    Device,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    pub events: u64,
    pub alerts: u64,
    /// Allocations that failed.
    pub ooms: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub peak_allocated: Option<u64>,
    pub peak_reserved: Option<u64>,
    pub peak_used: Option<u64>,
    /// The largest part of the device that was ever used.
    pub peak_share: Option<f64>,
    /// Times that go back: the clock was set, or files of several machines are mixed.
    pub out_of_order: u64,
}

/// A program and its tracker write at once, and one is a moment later.
const AT_ONCE_NS: u64 = 1_000_000_000;

/// The reason that an event of type `error` carries in its metadata when memory ran out.
pub const OUT_OF_MEMORY: &str = "out_of_memory";

/// Whether the event is of memory that ran out.
pub fn is_oom(event: &Event) -> bool {
    let reason = || serde_json::from_str::<serde_json::Value>(event.metadata.as_deref()?).ok()?.get("reason").cloned();
    event.kind == EventType::Error && reason().is_some_and(|reason| reason == OUT_OF_MEMORY)
}

impl Summary {
    fn add(&mut self, event: &Event) {
        let larger = |kept: &mut Option<u64>, new: Option<u64>| *kept = (*kept).max(new);
        self.out_of_order += u64::from(event.time_ns < self.last_ns.saturating_sub(AT_ONCE_NS));
        self.first_ns = if self.events == 0 { event.time_ns } else { self.first_ns.min(event.time_ns) };
        self.last_ns = self.last_ns.max(event.time_ns);
        self.events += 1;
        self.alerts += u64::from(event.kind.is_alert());
        self.ooms += u64::from(is_oom(event));
        larger(&mut self.peak_allocated, event.counters.allocated);
        larger(&mut self.peak_reserved, event.counters.reserved);
        larger(&mut self.peak_used, event.counters.used);
        if let Some(share) = event.counters.share_used() {
            self.peak_share = Some(self.peak_share.map_or(share, |peak| peak.max(share)));
        }
    }
}

/// Which ranks of a job said something, so that it can be said of which there is nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranks {
    /// By job and its size.
    seen: BTreeMap<(Option<String>, u32), BTreeSet<u32>>,
    last: Option<Arc<Source>>,
}

/// Of one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingRanks {
    pub job: Option<String>,
    pub world_size: u32,
    pub missing: u32,
    /// The first of them.
    pub first: Vec<u32>,
}

impl Ranks {
    /// Jobs beyond that are of files that somebody made up.
    const MOST_JOBS: usize = 1024;
    const NAMED: usize = 8;

    pub fn add(&mut self, event: &Event) {
        if self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &event.source)) {
            return;
        }
        self.last = Some(Arc::clone(&event.source));
        let identity = &event.source.identity;
        if let Some((rank, size)) = identity.rank.zip(identity.world_size) {
            let job = (identity.job.clone(), size);
            if self.seen.len() < Ranks::MOST_JOBS || self.seen.contains_key(&job) {
                self.seen.entry(job).or_default().insert(rank);
            }
        }
    }

    /// Of each job that has ranks of which there is no event.
    pub fn missing(&self) -> Vec<MissingRanks> {
        let of = |((job, size), seen): (&(Option<String>, u32), &BTreeSet<u32>)| MissingRanks {
            job: job.clone(),
            world_size: *size,
            missing: size.saturating_sub(seen.len() as u32),
            first: (0..*size).filter(|rank| !seen.contains(rank)).take(Ranks::NAMED).collect(),
        };
        self.seen.iter().map(of).filter(|job| job.missing > 0).collect()
    }
}

/// Gathers summaries by what was asked for.
pub struct Summaries {
    by: By,
    found: BTreeMap<String, Summary>,
    /// Events of one source follow each other: the one before is looked at first.
    last: Option<(Arc<Source>, String)>,
}

impl Summaries {
    pub fn by(by: By) -> Summaries {
        Summaries { by, found: BTreeMap::new(), last: None }
    }

    pub fn add(&mut self, event: &Event) {
        if self.last.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, &event.source)) {
            self.last = Some((Arc::clone(&event.source), self.key(event)));
        }
        let Some((_, key)) = &self.last else { return };
        match self.found.get_mut(key) {
            Some(summary) => summary.add(event),
            None => self.found.entry(key.clone()).or_default().add(event),
        }
    }

    fn key(&self, event: &Event) -> String {
        let source = &event.source;
        match self.by {
            By::Session if source.session.is_empty() => "(no session)".into(),
            By::Session => source.session.clone(),
            By::Rank => source.identity.rank.map_or("(no rank)".into(), |rank| format!("rank {rank}")),
            By::Device if source.device_id < 0 => "host".into(),
            By::Device => format!("device {}", source.device_id),
        }
    }

    pub fn finish(self) -> BTreeMap<String, Summary> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Counters;
    use crate::identity::Identity;

    fn event(time_ns: u64, rank: u32, kind: EventType, used: u64, reason: Option<&str>) -> Event {
        let identity = Identity { rank: Some(rank), world_size: Some(4), ..Identity::default() };
        Event {
            time_ns,
            kind,
            source: Arc::new(Source { session: "s".into(), identity, ..Source::default() }),
            counters: Counters { used: Some(used), total: Some(100), ..Counters::default() },
            context: None,
            metadata: reason.map(|reason| format!("{{\"reason\":\"{reason}\"}}").into()),
        }
    }

    #[test]
    fn events_are_put_together_by_rank() {
        const SECOND: u64 = 1_000_000_000;
        let mut summaries = Summaries::by(By::Rank);
        summaries.add(&event(10, 0, EventType::Sample, 30, None));
        summaries.add(&event(3 * SECOND, 0, EventType::Error, 90, Some(OUT_OF_MEMORY)));
        summaries.add(&event(SECOND, 0, EventType::Error, 10, Some("disk")));
        summaries.add(&event(3 * SECOND - 5, 0, EventType::Sample, 10, None));
        summaries.add(&event(5, 1, EventType::Sample, 5, None));
        let found = summaries.finish();
        let zero = &found["rank 0"];
        assert_eq!((zero.events, zero.alerts, zero.ooms, zero.out_of_order), (4, 2, 1, 1));
        assert_eq!(
            (zero.first_ns, zero.last_ns, zero.peak_used, zero.peak_share),
            (10, 3 * SECOND, Some(90), Some(0.9))
        );
        assert_eq!((found["rank 1"].peak_used, found["rank 1"].peak_allocated), (Some(5), None));
    }

    #[test]
    fn ranks_of_which_there_is_nothing_are_missing() {
        let mut ranks = Ranks::default();
        [0, 1, 3, 3].iter().for_each(|rank| ranks.add(&event(1, *rank, EventType::Sample, 1, None)));
        let missing = ranks.missing();
        assert_eq!((missing.len(), missing[0].missing, missing[0].world_size), (1, 1, 4));
        assert_eq!(missing[0].first, [2]);
        ranks.add(&event(1, 2, EventType::Sample, 1, None));
        assert!(ranks.missing().is_empty());
        // A job of four thousand million.
        let mut huge = event(1, 7, EventType::Sample, 1, None);
        let identity = Identity { rank: Some(7), world_size: Some(u32::MAX), ..Identity::default() };
        huge.source = Arc::new(Source { identity, ..Source::default() });
        ranks.add(&huge);
        assert_eq!(ranks.missing()[0].first, [0, 1, 2, 3, 4, 5, 6, 8]);
    }

    #[test]
    fn a_filter_takes_what_it_names() {
        let one = event(10, 2, EventType::Sample, 1, None);
        let takes = |filter: Filter| filter.takes(&one);
        assert!(
            takes(Filter::default()) && takes(Filter { ranks: vec![1, 2], from_ns: Some(10), ..Filter::default() })
        );
        assert!(
            !takes(Filter { from_ns: Some(11), ..Filter::default() })
                && !takes(Filter { to_ns: Some(9), ..Filter::default() })
        );
        assert!(!takes(Filter { kinds: vec![EventType::Peak], ..Filter::default() }));
        assert!(!takes(Filter { sessions: vec!["t".into()], ..Filter::default() }));
    }
}
