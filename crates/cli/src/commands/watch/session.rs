//! What goes on while memory is watched: sampling by the clock, alerts, what the watched program asks for, and the end.

use super::options::Options;
use super::stream::{Request, Stream};
use super::words::{said, shown};
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::terminal;
use recorder::readings::{self, Group};
use recorder::watched;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use telemetry::alerts::Thresholds;
use telemetry::collect::{DeviceCollector, HostCollector, MemoryCollector, Reading};
use telemetry::sink::{Limits, Sink};
use telemetry::track::{Tracked, Tracker};
use telemetry::{EventType, Identity};

/// Watches what the options say until it ends. Telemetry goes into the folder; without one, and without a stream, each sample is a line
/// for people.
pub fn watch(settings: &Settings, options: &Options, folder: Option<&Path>) -> Result<Ending, Failure> {
    // Before there is a folder of nothing.
    if let Some(pid) = options.pid.filter(|pid| readings::resident(*pid).is_none()) {
        return Err(recorder::Error::NoSuchProcess { pid }.into());
    }
    let mut session = Session::begin(settings, options, folder)?;
    let ending = session.follow(options)?;
    session.end(options.pid);
    Ok(ending)
}

pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// What goes on while something is tracked.
pub struct Session<'a> {
    pub(super) tracker: Tracker,
    pub(super) settings: &'a Settings,
    folder: Option<&'a Path>,
    interval: Duration,
    next: Instant,
    pub(super) began_ns: u64,
    pub(super) group: Group,
    pub(super) kills_before: Option<u64>,
    pub(super) last: Vec<Reading>,
    stream: Option<Stream>,
}

impl<'a> Session<'a> {
    fn begin(settings: &'a Settings, options: &Options, folder: Option<&'a Path>) -> Result<Session<'a>, Failure> {
        let thresholds = options.thresholds()?;
        let began_ns = now_ns();
        let name = format!("{}-{}", began_ns / 1_000_000_000, std::process::id());
        let sink = folder.map(|folder| {
            Sink::create(folder, &name, Limits::default()).map_err(|error| {
                Failure::writing(folder.display(), &error).with_hint("choose another place with --output")
            })
        });
        let sink = sink.transpose()?;
        let stream = options.stream.then(Stream::new);
        let mut tracker =
            Tracker::new(tracked(options, name), thresholds, collectors(settings, stream.is_some()), sink);
        let tracker_pid = stream.is_some().then(|| json!({ "tracker_pid": std::process::id() }));
        let stream = stream.map(|(stream, put)| {
            tracker.listen(put);
            stream
        });
        tracker.mark(EventType::Start, began_ns, tracker_pid.unwrap_or_else(|| json!({})));
        Ok(Session {
            tracker,
            settings,
            folder,
            interval: options.interval,
            next: Instant::now(),
            began_ns,
            group: Group::default(),
            kills_before: None,
            last: Vec::new(),
            stream,
        })
    }

    fn follow(&mut self, options: &Options) -> Result<Ending, Failure> {
        if options.argv.is_empty() {
            let root = options.pid;
            if let Some(pid) = root {
                self.group = Group::of(pid);
            }
            // However it ends: somebody who follows a process stops when it is enough.
            watched::follow(root, options.duration, || self.tend(root))?;
            return Ok(Ending::FINE);
        }
        let mut first = true;
        let exit = watched::run(&options.argv, |pid| {
            if std::mem::take(&mut first) {
                self.tracker.follow(pid);
                self.group = Group::of(pid);
                self.kills_before = self.group.read().oom_kills;
            }
            self.tend(Some(pid))
        })?;
        if let (recorder::Exit::Signal(libc::SIGKILL), Some(folder)) = (exit, self.folder) {
            self.explain(folder);
        }
        Ok(exit.into())
    }

    /// A round, if it is time for one; until when the next can wait.
    fn tend(&mut self, root: Option<u32>) -> Duration {
        self.answer(root);
        let now = Instant::now();
        if now >= self.next {
            self.sample(root);
            // What was missed is not made up for.
            self.next = (self.next + self.interval).max(now);
        }
        self.next.saturating_duration_since(Instant::now())
    }

    fn sample(&mut self, root: Option<u32>) {
        let mut pids = root.map(readings::with_children).unwrap_or_default();
        // Whoever streams is started by the program, and is no part of it.
        pids.retain(|pid| *pid != std::process::id());
        let (readings, alerts) = self.tracker.round(now_ns(), &pids);
        if self.stream.is_none() {
            alerts.iter().for_each(|alert| self.settings.say(said(alert)));
        }
        if self.folder.is_none() && self.stream.is_none() {
            readings.iter().for_each(|reading| self.settings.say(shown(reading)));
        }
        if !readings.is_empty() {
            self.last = readings;
        }
    }

    /// Does what the tracked program asks for.
    fn answer(&mut self, root: Option<u32>) {
        let Some(stream) = &mut self.stream else { return };
        let requests = stream.requests();
        let mut refused = 0;
        for request in requests {
            let done = match request {
                Request::Sample => {
                    self.sample(root);
                    true
                }
                Request::Event(said) => said.told().is_some_and(|told| self.tracker.tell(told).is_ok()),
                Request::Thresholds { warning, critical } => {
                    let thresholds = Thresholds { warning, critical, ..self.tracker.thresholds() };
                    self.tracker.set_thresholds(thresholds).is_ok()
                }
            };
            refused += u64::from(!done);
        }
        if let Some(stream) = &self.stream {
            stream.missed.refused.fetch_add(refused, Ordering::Relaxed);
        }
    }

    /// What a streaming tracker could not keep or pass on.
    fn missed(&self) -> serde_json::Value {
        let Some(Stream { missed, .. }) = &self.stream else { return json!({}) };
        let sink = self.tracker.sink();
        json!({
            "events_written": sink.map(|sink| sink.written),
            "events_lost": sink.map(|sink| sink.lost),
            "why_lost": sink.and_then(|sink| sink.why_lost.clone()),
            "events_not_streamed": missed.not_streamed.load(Ordering::Relaxed),
            "requests_refused": missed.refused.load(Ordering::Relaxed),
        })
    }

    fn end(mut self, root: Option<u32>) {
        self.answer(root);
        let missed = self.missed();
        self.tracker.mark(EventType::Stop, now_ns(), missed);
        if let Some(stream) = self.stream.take() {
            self.tracker.listen(|_| ());
            stream.finish();
        }
        let (Some(folder), Some(sink)) = (self.folder, self.tracker.sink()) else { return };
        if sink.lost > 0 {
            let why = sink.why_lost.as_deref().unwrap_or_default();
            terminal::say(format_args!(
                "{} of {} events could not be written: {why}",
                sink.lost,
                sink.lost + sink.written
            ));
        }
        self.settings.say(format_args!(
            "{} events in {}; `inferscope query summary {}` shows them",
            sink.written,
            folder.display(),
            folder.display()
        ));
    }
}

fn tracked(options: &Options, session: String) -> Tracked {
    Tracked {
        pid: options.pid.map_or(-1, i64::from),
        host: Some(readings::host().hostname).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".into()),
        session,
        identity: Identity::of(|name| std::env::var(name).ok()),
        interval_ms: options.interval.as_millis() as u64,
    }
}

/// Host memory, and that of the devices that there are. `quiet`: whoever reads the stream sees what is there.
fn collectors(settings: &Settings, quiet: bool) -> Vec<Box<dyn MemoryCollector>> {
    let mut collectors: Vec<Box<dyn MemoryCollector>> = vec![Box::new(HostCollector::default())];
    match DeviceCollector::find() {
        Ok(devices) => collectors.push(Box::new(devices)),
        Err(_) if quiet => {}
        Err(why) => settings.say(format_args!("only host memory is sampled: {why}")),
    }
    collectors
}
