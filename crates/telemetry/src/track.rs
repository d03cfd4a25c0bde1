//! Tracks memory: asks the collectors at intervals, writes what they say into a sink, and says when it becomes too much.

use crate::alerts::{Alerts, Thresholds};
use crate::collect::{MemoryCollector, Reading};
use crate::event::{Counters, Event, EventType, Source};
use crate::identity::Identity;
use crate::sink::Sink;
use serde_json::json;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Who is tracked, as events say it.
#[derive(Clone, Debug)]
pub struct Tracked {
    pub pid: i64,
    pub host: String,
    pub session: String,
    pub identity: Identity,
    pub interval_ms: u64,
}

pub struct Tracker {
    tracked: Tracked,
    thresholds: Thresholds,
    collectors: Vec<Box<dyn MemoryCollector>>,
    sources: BTreeMap<(&'static str, i64), Arc<Source>>,
    alerts: BTreeMap<i64, Alerts>,
    peaks: BTreeMap<i64, u64>,
    /// Collectors that gave nothing the last time.
    silent: Vec<&'static str>,
    sink: Option<Sink>,
    /// The last events, for a bundle.
    recent: VecDeque<Event>,
}

/// Five minutes at ten a second and one device.
const MOST_RECENT: usize = 3_000;

/// What a round found that somebody may want to be told.
#[derive(Clone, PartialEq, Debug)]
pub struct Alert {
    pub kind: EventType,
    pub device_id: i64,
    pub name: String,
    pub share: f64,
    pub counters: Counters,
}

impl Tracker {
    pub fn new(
        tracked: Tracked,
        thresholds: Thresholds,
        collectors: Vec<Box<dyn MemoryCollector>>,
        sink: Option<Sink>,
    ) -> Tracker {
        Tracker {
            tracked,
            thresholds,
            collectors,
            sources: BTreeMap::new(),
            alerts: BTreeMap::new(),
            peaks: BTreeMap::new(),
            silent: Vec::new(),
            sink,
            recent: VecDeque::new(),
        }
    }

    pub fn sink(&self) -> Option<&Sink> {
        self.sink.as_ref()
    }

    /// The last events, oldest first.
    pub fn recent(&self) -> impl Iterator<Item = &Event> {
        self.recent.iter()
    }

    /// The process that is tracked, once it runs: events from now on are of it.
    pub fn follow(&mut self, pid: u32) {
        self.tracked.pid = i64::from(pid);
        self.sources.clear();
    }

    pub fn pid(&self) -> i64 {
        self.tracked.pid
    }

    /// The first and the last event of a session.
    pub fn mark(&mut self, kind: EventType, time_ns: u64, metadata: serde_json::Value) {
        let source = self.source("inferscope.track", -1);
        let metadata = Some(metadata).filter(|metadata| metadata.as_object().is_some_and(|object| !object.is_empty()));
        let metadata = metadata.map(|metadata| metadata.to_string().into());
        self.keep(Event { time_ns, kind, source, counters: Counters::default(), context: None, metadata });
    }

    /// One round. What is returned is new: an alert that lasts is said once.
    pub fn round(&mut self, time_ns: u64, pids: &[u32]) -> (Vec<Reading>, Vec<Alert>) {
        let (mut all, mut alerts) = (Vec::new(), Vec::new());
        let mut collectors = std::mem::take(&mut self.collectors);
        for collector in &mut collectors {
            let readings = collector.read(pids);
            self.degraded(collector.name(), readings.is_empty(), time_ns);
            for reading in readings {
                alerts.extend(self.take(collector.name(), &reading, time_ns));
                all.push(reading);
            }
        }
        self.collectors = collectors;
        (all, alerts)
    }

    fn take(&mut self, collector: &'static str, reading: &Reading, time_ns: u64) -> Option<Alert> {
        let source = self.source(collector, reading.device_id);
        let metadata = reading.process_bytes.map(|bytes| json!({ "process_bytes": bytes }).to_string().into());
        let event = |kind, metadata| Event {
            time_ns,
            kind,
            source: Arc::clone(&source),
            counters: reading.counters,
            context: None,
            metadata,
        };
        self.keep(event(EventType::Sample, metadata));
        if let Some(used) = reading.counters.used {
            let peak = self.peaks.entry(reading.device_id).or_insert(used);
            // A new peak by less is noise.
            if used as f64 > *peak as f64 * 1.01 {
                *peak = used;
                self.keep(event(EventType::Peak, None));
            }
        }
        let share = reading.counters.share_used()?;
        let thresholds = self.thresholds;
        let kind =
            self.alerts.entry(reading.device_id).or_insert_with(|| Alerts::new(thresholds)).see(time_ns, share)?;
        self.keep(event(kind, Some(json!({ "share_used": share }).to_string().into())));
        Some(Alert {
            kind,
            device_id: reading.device_id,
            name: reading.name.clone(),
            share,
            counters: reading.counters,
        })
    }

    /// A collector that falls silent, or speaks again, is an event.
    fn degraded(&mut self, collector: &'static str, is_silent: bool, time_ns: u64) {
        let was_silent = self.silent.contains(&collector);
        if is_silent == was_silent {
            return;
        }
        let kind = if is_silent { EventType::CollectorDegraded } else { EventType::CollectorRecovered };
        if is_silent {
            self.silent.push(collector);
        } else {
            self.silent.retain(|silent| *silent != collector);
        }
        let source = self.source(collector, -1);
        self.keep(Event { time_ns, kind, source, counters: Counters::default(), context: None, metadata: None });
    }

    fn keep(&mut self, event: Event) {
        if let Some(sink) = &mut self.sink {
            sink.append(&event);
        }
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(event);
    }

    fn source(&mut self, collector: &'static str, device_id: i64) -> Arc<Source> {
        let Tracked { pid, host, session, identity, interval_ms } = &self.tracked;
        let made = || {
            Arc::new(Source {
                collector: collector.to_owned(),
                sampling_interval_ms: *interval_ms,
                pid: *pid,
                host: host.clone(),
                device_id,
                session: session.clone(),
                identity: identity.clone(),
            })
        };
        Arc::clone(self.sources.entry((collector, device_id)).or_insert_with(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Capabilities;

    /// Says what it is told to, round by round.
    struct Script(VecDeque<Option<u64>>);

    impl MemoryCollector for Script {
        fn name(&self) -> &'static str {
            "script"
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities { used: true, total: true, ..Capabilities::default() }
        }

        fn read(&mut self, _: &[u32]) -> Vec<Reading> {
            let used = self.0.pop_front().flatten();
            let of = |used| Reading {
                device_id: 0,
                name: "device".into(),
                counters: Counters { used: Some(used), total: Some(100), ..Counters::default() },
                process_bytes: Some(used / 2),
            };
            used.map(of).into_iter().collect()
        }
    }

    #[test]
    fn rounds_become_events_and_alerts() {
        let script = Script([Some(50), Some(85), Some(86), None, Some(97)].into());
        let tracked =
            Tracked { pid: 1, host: "h".into(), session: "s".into(), identity: Identity::default(), interval_ms: 100 };
        let mut tracker = Tracker::new(tracked, Thresholds::default(), vec![Box::new(script)], None);
        let said: Vec<EventType> =
            (0..5).flat_map(|round| tracker.round(round, &[1]).1).map(|alert| alert.kind).collect();
        assert_eq!(said, [EventType::Warning, EventType::Critical]);
        let names: Vec<&str> = tracker.recent().map(|event| event.kind.name()).collect();
        let expected = [
            "sample",
            "sample",
            "peak",
            "warning",
            "sample",
            "peak",
            "collector_degraded",
            "collector_recovered",
            "sample",
            "peak",
            "critical",
        ];
        assert_eq!(names, expected);
        assert_eq!(tracker.recent().next().unwrap().metadata.as_deref(), Some("{\"process_bytes\":25}"));
    }
}
