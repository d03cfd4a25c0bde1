//! The flight recorder of `inferscope run`: samples host memory while a command runs, and, when it has died of memory, writes a bundle beside its trace and says
//! why. What is only possible is said as that, and makes no bundle.

use crate::config::Settings;
use crate::ending::Ending;
use crate::terminal;
use crate::verdict::Verdict;
use diagnosis::failed_request::{self, FailedRequest, Stage};
use recorder::readings::{self, Group};
use report::telemetry::{PostMortem, sentences};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use telemetry::alerts::Thresholds;
use telemetry::bundle::{Bundle, Retention};
use telemetry::collect::{HostCollector, MemoryCollector};
use telemetry::death::{Death, NEARLY_FULL, Seen};
use telemetry::query::OUT_OF_MEMORY;
use telemetry::track::{Tracked, Tracker};
use telemetry::{Counters, Event, EventType, Identity, Source};

/// A growing process is seen near its end, and reading a few small files so often costs a thousandth of a core.
const INTERVAL: Duration = Duration::from_millis(100);
/// Looking for children reads a file for each thread.
const CHILDREN: Duration = Duration::from_secs(1);
/// A program that ends later after a failed request has done something else in between.
const ENDS_SOON_NS: u64 = 10_000_000_000;

/// Memory of the host while a command runs.
pub struct HostMemory {
    tracker: Tracker,
    began_ns: u64,
    group: Group,
    kills_before: Option<u64>,
    share: Option<f64>,
    pids: Vec<u32>,
    next: Instant,
    next_children: Instant,
}

impl HostMemory {
    /// Before the command starts, in the group that it will be in.
    pub fn new() -> HostMemory {
        let tracked = Tracked {
            pid: -1,
            host: readings::host().hostname,
            session: String::new(),
            identity: Identity::of(|name| std::env::var(name).ok()),
            interval_ms: INTERVAL.as_millis() as u64,
        };
        let collectors: Vec<Box<dyn MemoryCollector>> = vec![Box::new(HostCollector::default())];
        let never = Thresholds { warning: None, critical: None, ..Thresholds::default() };
        let group = Group::of(std::process::id());
        let now = Instant::now();
        HostMemory {
            tracker: Tracker::new(tracked, never, collectors, None),
            began_ns: now_ns(),
            kills_before: group.read().oom_kills,
            group,
            share: None,
            pids: Vec::new(),
            next: now,
            next_children: now,
        }
    }

    /// Called again and again while the command runs.
    pub fn look(&mut self, pid: u32) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        if self.tracker.pid() < 0 {
            self.tracker.follow(pid);
        }
        if now >= self.next_children {
            self.pids = readings::with_children(pid);
            self.next_children = now + CHILDREN;
        }
        let (readings, _) = self.tracker.round(now_ns(), &self.pids);
        if let Some(share) = readings.first().and_then(|reading| reading.counters.share_used()) {
            self.share = Some(share);
        }
        self.next = now + INTERVAL;
    }

    /// The command has ended. Says why, if it was for memory, and leaves a bundle beside the trace.
    pub fn explain(&self, settings: &Settings, ending: Ending, trace: &Path, verdict: Option<&Verdict>) {
        if ending == Ending::FINE {
            return;
        }
        let failed = verdict.and_then(|verdict| failed_request::last(&verdict.timeline, &verdict.diagnosis));
        let group = self.group.read();
        let seen = Seen {
            killed: ending.code() == 128 + libc::SIGKILL,
            code: ending.code(),
            kills: self.kills_before.zip(group.oom_kills),
            limit: group.limit,
            share: self.share,
        };
        // Whoever stops a program ends it, whatever failed just before.
        let stopped = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].iter().any(|signal| ending.code() == 128 + signal);
        let of_request =
            failed.as_ref().filter(|failed| !stopped && !failed.went_on && failed.until_end <= ENDS_SOON_NS);
        let death = match (seen.death(), of_request) {
            (None, Some(failed)) => Death::RequestFailed { bytes: failed.bytes },
            (None, None) => return self.say_what_is_known(settings, ending, failed.as_ref()),
            (Some(death), _) => death,
        };
        let of_request = of_request.filter(|_| matches!(death, Death::RequestFailed { .. }));
        self.write(settings, trace, verdict, death, of_request);
    }

    /// Nothing proves that it was memory.
    fn say_what_is_known(&self, settings: &Settings, ending: Ending, failed: Option<&FailedRequest>) {
        if let Some(failed) = failed {
            settings.say(report::telemetry::failed_request::of_survivor(failed));
        }
        if let Some(share) = self.share.filter(|share| *share >= NEARLY_FULL && failed.is_none()) {
            settings.say(report::telemetry::ended_while_full(ending.code(), share));
        }
    }

    fn write(
        &self,
        settings: &Settings,
        trace: &Path,
        verdict: Option<&Verdict>,
        death: Death,
        request: Option<&FailedRequest>,
    ) {
        let died_ns = now_ns();
        let error = self.error(died_ns, &death, request);
        let events: Vec<&Event> = self.tracker.recent().chain([&error]).collect();
        let stage = verdict.map_or(Stage::Unknown, |verdict| {
            let died = request.map_or(verdict.timeline.end, |request| request.time);
            failed_request::stage(&verdict.diagnosis.steps, died)
        });
        let mortem = PostMortem {
            death: &death,
            began_ns: self.began_ns,
            died_ns,
            events: &events,
            request,
            stage,
            recorded: verdict.is_some(),
        };
        let sentences = sentences(&mortem);
        sentences.iter().for_each(|sentence| settings.say(sentence));
        let folder = trace.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let bundle = Bundle {
            death,
            backend: if request.is_some() { "cuda" } else { "host" },
            pid: request.map_or(self.tracker.pid(), |request| request.pid).try_into().unwrap_or(0),
            time_ns: died_ns,
            began_ns: self.began_ns,
            events,
            sentences,
            failed_request: request.map_or(Value::Null, report::telemetry::failed_request::json),
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        };
        match bundle.write(folder, Retention::default()) {
            Ok(place) => settings.say(format_args!("post-mortem in {}", place.display())),
            Err(error) => terminal::say(format_args!("cannot write the post-mortem: {error}")),
        }
    }

    /// The event that ended it.
    fn error(&self, died_ns: u64, death: &Death, request: Option<&FailedRequest>) -> Event {
        let counters = request.map_or_else(Counters::default, |request| Counters {
            allocated: request.allocated,
            reserved: request.reserved,
            used: request.device_total.zip(request.device_free).map(|(total, free)| total.saturating_sub(free)),
            free: request.device_free,
            total: request.device_total,
            ..Counters::default()
        });
        let source = Source {
            collector: "inferscope.run".into(),
            sampling_interval_ms: INTERVAL.as_millis() as u64,
            pid: request.map_or(self.tracker.pid(), |request| request.pid),
            host: readings::host().hostname,
            device_id: request.and_then(|request| request.device).map_or(-1, i64::from),
            session: String::new(),
            identity: Identity::of(|name| std::env::var(name).ok()),
        };
        let mut metadata = json!({ "reason": OUT_OF_MEMORY, "death": death.reason() });
        if let Some(request) = request {
            metadata["requested_bytes"] = request.bytes.into();
        }
        Event {
            time_ns: died_ns,
            kind: EventType::Error,
            source: Arc::new(source),
            counters,
            context: None,
            metadata: Some(metadata.to_string().into()),
        }
    }
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
