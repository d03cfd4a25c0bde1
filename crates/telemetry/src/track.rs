//! Tracks memory: asks the collectors at intervals, writes what they say into a sink, and says when it becomes too much.

use crate::alerts::{Alerts, Thresholds};
use crate::collect::{MemoryCollector, Reading};
use crate::event::{Counters, Event, EventType, Source};
use crate::identity::Identity;
use crate::sink::Sink;
use serde_json::json;
use std::borrow::Cow;
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
    sources: BTreeMap<(Cow<'static, str>, i64), Arc<Source>>,
    /// By device: who measures how full it is, and its alerts. Two that measure the same device would say everything twice.
    alerts: BTreeMap<i64, (Arc<str>, Alerts)>,
    peaks: BTreeMap<i64, u64>,
    /// Collectors that gave nothing the last time.
    silent: Vec<&'static str>,
    sink: Option<Sink>,
    /// The last events, for a bundle.
    recent: VecDeque<Event>,
    /// Who else wants every event.
    listener: Option<Listener>,
}

type Listener = Box<dyn FnMut(&Event)>;

/// What the tracked program itself says: a phase that begins, or counters that only its framework knows.
#[derive(Clone, PartialEq, Debug)]
pub struct Told {
    pub time_ns: u64,
    pub kind: EventType,
    pub collector: String,
    pub device_id: i64,
    pub counters: Counters,
    pub context: Option<String>,
    /// A JSON object.
    pub metadata: Option<String>,
}

/// A program that makes up a collector for each event must not fill the memory.
const MOST_SOURCES: usize = 256;

/// Nor one that makes up a device for each: alerts are for the first ones.
const MOST_DEVICES: usize = 1024;

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
            listener: None,
        }
    }

    /// Every event from now on also goes to `each`.
    pub fn listen(&mut self, each: impl FnMut(&Event) + 'static) {
        self.listener = Some(Box::new(each));
    }

    /// Other thresholds from now on. Err: why they cannot be followed; the ones before stay.
    pub fn set_thresholds(&mut self, thresholds: Thresholds) -> Result<(), String> {
        if let Some(why) = thresholds.contradiction() {
            return Err(why);
        }
        self.thresholds = thresholds;
        self.alerts.clear();
        Ok(())
    }

    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// An event of the tracked program's own. Err: why it cannot be true.
    pub fn tell(&mut self, told: Told) -> Result<(), &'static str> {
        if let Some(why) = told.counters.contradiction() {
            return Err(why);
        }
        if self.sources.len() >= MOST_SOURCES {
            self.sources.clear();
        }
        let Told { time_ns, kind, collector, device_id, counters, context, metadata } = told;
        let name: Arc<str> = collector.as_str().into();
        let source = self.source(collector, device_id);
        let context = context.map(Into::into);
        let metadata = metadata.map(Into::into);
        self.keep(Event { time_ns, kind, source: Arc::clone(&source), counters, context, metadata });
        if kind == EventType::Sample {
            self.judge(&name, source, counters, time_ns);
        }
        Ok(())
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
        let (kind, share) = self.judge(collector, source, reading.counters, time_ns)?;
        Some(Alert {
            kind,
            device_id: reading.device_id,
            name: reading.name.clone(),
            share,
            counters: reading.counters,
        })
    }

    /// Whether a sample is an alert, which is kept, and the share of the memory that is used.
    fn judge(
        &mut self,
        collector: &str,
        source: Arc<Source>,
        counters: Counters,
        time_ns: u64,
    ) -> Option<(EventType, f64)> {
        let share = counters.share_used()?;
        let thresholds = self.thresholds;
        if self.alerts.len() >= MOST_DEVICES && !self.alerts.contains_key(&source.device_id) {
            return None;
        }
        let first = || (collector.into(), Alerts::new(thresholds));
        let (measures, alerts) = self.alerts.entry(source.device_id).or_insert_with(first);
        if **measures != *collector {
            return None;
        }
        let kind = alerts.see(time_ns, share)?;
        let metadata = Some(json!({ "share_used": share }).to_string().into());
        self.keep(Event { time_ns, kind, source, counters, context: None, metadata });
        Some((kind, share))
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
        if let Some(listener) = &mut self.listener {
            listener(&event);
        }
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(event);
    }

    fn source(&mut self, collector: impl Into<Cow<'static, str>>, device_id: i64) -> Arc<Source> {
        let collector = collector.into();
        let Tracked { pid, host, session, identity, interval_ms } = &self.tracked;
        let made = |(collector, device_id): &(Cow<'static, str>, i64)| {
            Arc::new(Source {
                collector: collector.to_string(),
                sampling_interval_ms: *interval_ms,
                pid: *pid,
                host: host.clone(),
                device_id: *device_id,
                session: session.clone(),
                identity: identity.clone(),
            })
        };
        Arc::clone(self.sources.entry((collector, device_id)).or_insert_with_key(made))
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

    fn tracker(script: &[Option<u64>]) -> Tracker {
        let script = Script(script.iter().copied().collect());
        let tracked =
            Tracked { pid: 1, host: "h".into(), session: "s".into(), identity: Identity::default(), interval_ms: 100 };
        Tracker::new(tracked, Thresholds::default(), vec![Box::new(script)], None)
    }

    fn told(kind: EventType, collector: &str, device_id: i64, used: u64) -> Told {
        Told {
            time_ns: 9,
            kind,
            collector: collector.into(),
            device_id,
            counters: Counters { used: Some(used), total: Some(100), ..Counters::default() },
            context: Some("load".into()),
            metadata: None,
        }
    }

    #[test]
    fn what_the_program_says_is_kept_and_heard() {
        let mut tracker = tracker(&[Some(85)]);
        let heard = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let into = std::rc::Rc::clone(&heard);
        tracker.listen(move |event| into.borrow_mut().push((event.kind, event.source.device_id)));
        tracker.round(1, &[1]);
        use EventType::{PhaseEnter, Sample, Warning};
        tracker.tell(told(PhaseEnter, "phases", -1, 99)).unwrap();
        // The device is measured from outside already; another is not.
        tracker.tell(told(Sample, "framework", 0, 99)).unwrap();
        tracker.tell(told(Sample, "framework", 1, 85)).unwrap();
        assert!(tracker.tell(told(Sample, "framework", 1, 101)).is_err());
        let expected = [(Sample, 0), (Warning, 0), (PhaseEnter, -1), (Sample, 0), (Sample, 1), (Warning, 1)];
        assert_eq!(*heard.borrow(), expected);
        assert_eq!(tracker.recent().count(), 6);
    }

    #[test]
    fn thresholds_change_while_it_runs_and_sources_are_bounded() {
        let mut tracker = tracker(&[]);
        let none = Thresholds { warning: Some(0.9), critical: Some(0.8), ..Thresholds::default() };
        assert!(tracker.set_thresholds(none).is_err());
        tracker.set_thresholds(Thresholds { warning: Some(0.1), ..Thresholds::default() }).unwrap();
        for number in 0..1000 {
            tracker.tell(told(EventType::Sample, &format!("made-up-{number}"), 3, 20)).unwrap();
        }
        let alerts = tracker.recent().filter(|event| event.kind == EventType::Warning).count();
        assert_eq!(alerts, 1, "one collector measures a device");
        for number in 0..10_000 {
            tracker.tell(told(EventType::Sample, "made-up", 4 + number, 20)).unwrap();
        }
        assert!(tracker.sources.len() <= MOST_SOURCES && tracker.alerts.len() <= MOST_DEVICES);
    }

    #[test]
    fn rounds_become_events_and_alerts() {
        let mut tracker = tracker(&[Some(50), Some(85), Some(86), None, Some(97)]);
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
