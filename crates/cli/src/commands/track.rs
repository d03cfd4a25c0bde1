//! `inferscope track` and `inferscope monitor`: memory of a command, a process or the whole machine, sampled from outside. `track` keeps it and
//! explains a death by memory; `monitor` only shows it.

mod stream;

use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::terminal;
use clap::Args;
use diagnosis::failed_request::Stage;
use recorder::readings::{self, Group};
use recorder::watched;
use report::bytes;
use report::telemetry::{PostMortem, sentences};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stream::{Request, Stream};
use telemetry::alerts::Thresholds;
use telemetry::bundle::{Bundle, Retention};
use telemetry::collect::{DeviceCollector, HostCollector, MemoryCollector, Reading};
use telemetry::death::Seen;
use telemetry::query::OUT_OF_MEMORY;
use telemetry::sink::{Limits, Sink};
use telemetry::track::{Alert, Tracked, Tracker};
use telemetry::{EventType, Identity};

/// Where telemetry goes if nothing else is said.
pub const FOLDER: &str = "inferscope-telemetry";

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope track -- python serve.py      until it ends; exit code unchanged
  inferscope track --pid 4711 --interval 1 --warn 85% --critical 95%
  inferscope monitor --duration 10         the whole machine, shown, not kept
  inferscope query summary                 what was tracked

Samples from outside, so the program is not slowed down. A program that dies of
memory leaves a bundle in the folder that says why: oom_dump_*/metadata.json")]
pub struct Track {
    /// Track this process
    #[arg(long, value_name = "PID", value_parser = crate::args::pid, conflicts_with = "argv")]
    pid: Option<u32>,

    /// Seconds between samples
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = interval)]
    interval: Duration,

    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = crate::args::seconds, conflicts_with = "argv")]
    duration: Option<Duration>,

    /// Warn when this much of the memory is used: 80% or 0.8; `off` for never
    #[arg(long, value_name = "SHARE", default_value = "80%", value_parser = threshold)]
    warn: Threshold,

    /// The same, critical
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = threshold)]
    critical: Threshold,

    /// Seconds that memory has to stay above a threshold before it is an alert
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    hold: f64,

    /// Keep telemetry in this folder [default: ./inferscope-telemetry]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Print each event as a JSON line, and take phases and counters as JSON lines on stdin, until it ends
    #[arg(long, conflicts_with = "argv")]
    stream: bool,

    /// The command and its arguments [default: the whole machine]
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    argv: Vec<OsString>,
}

/// A share of memory. None: never.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Threshold(Option<f64>);

fn threshold(text: &str) -> Result<Threshold, String> {
    if text == "off" {
        return Ok(Threshold(None));
    }
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    share
        .map(|share| Threshold(Some(share)))
        .ok_or_else(|| "must be a share of memory, such as 80% or 0.8, or off".into())
}

/// Faster than a hundred a second tells nothing more and costs.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = crate::args::seconds(text)?;
    if seconds >= Duration::from_millis(10) { Ok(seconds) } else { Err("must be at least 0.01 seconds".into()) }
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// What goes on while something is tracked.
struct Session<'a> {
    tracker: Tracker,
    settings: &'a Settings,
    interval: Duration,
    next: Instant,
    /// Whether every sample is shown.
    shows: bool,
    began_ns: u64,
    group: Group,
    kills_before: Option<u64>,
    last: Vec<Reading>,
    stream: Option<Stream>,
}

pub fn run(settings: &Settings, track: &Track, keeps: bool) -> Result<Ending, Failure> {
    let thresholds = Thresholds {
        warning: track.warn.0,
        critical: track.critical.0,
        hold_ns: hold(track)?,
        ..Thresholds::default()
    };
    if let Some(why) = thresholds.contradiction() {
        return Err(Failure::usage(format_args!("--warn and --critical: {why}")));
    }
    let folder = track.output.clone().unwrap_or_else(|| FOLDER.into());
    if track.output.is_some() && !keeps {
        return Err(Failure::usage("`monitor` keeps nothing: use `inferscope track --output`, or leave out --output"));
    }
    let began_ns = now_ns();
    let session = format!("{}-{}", began_ns / 1_000_000_000, std::process::id());
    let sink = keeps.then(|| Sink::create(&folder, &session, Limits::default())).transpose();
    let sink = sink
        .map_err(|error| Failure::writing(folder.display(), &error).with_hint("choose another place with --output"))?;
    let tracked = Tracked {
        pid: track.pid.map_or(-1, i64::from),
        host: readings::host().hostname,
        session,
        identity: Identity::of(|name| std::env::var(name).ok()),
        interval_ms: track.interval.as_millis() as u64,
    };
    let stream = track.stream.then(Stream::new);
    let mut collectors: Vec<Box<dyn MemoryCollector>> = vec![Box::new(HostCollector::default())];
    match DeviceCollector::find() {
        Ok(devices) => collectors.push(Box::new(devices)),
        Err(_) if track.stream => {}
        Err(why) => settings.say(format_args!("only host memory is tracked: {why}")),
    }
    let mut tracker = Tracker::new(tracked, thresholds, collectors, sink);
    let stream = stream.map(|(stream, put)| {
        tracker.listen(put);
        stream
    });
    let mut session = Session {
        tracker,
        settings,
        interval: track.interval,
        next: Instant::now(),
        shows: !keeps && !track.stream,
        began_ns,
        group: Group::default(),
        kills_before: None,
        last: Vec::new(),
        stream,
    };
    let tracker_pid = track.stream.then(|| json!({ "tracker_pid": std::process::id() }));
    session.tracker.mark(EventType::Start, began_ns, tracker_pid.unwrap_or_else(|| json!({})));
    let ending = session.follow(track, &folder)?;
    session.answer(track.pid);
    let missed = session.missed();
    session.tracker.mark(EventType::Stop, now_ns(), missed);
    session.conclude(keeps.then_some(&folder));
    Ok(ending)
}

fn hold(track: &Track) -> Result<u64, Failure> {
    let fits = track.hold >= 0.0 && track.hold <= 86_400.0;
    if fits { Ok((track.hold * 1e9) as u64) } else { Err(Failure::usage("--hold must be between 0 and 86400 seconds")) }
}

impl Session<'_> {
    fn follow(&mut self, track: &Track, folder: &Path) -> Result<Ending, Failure> {
        if track.argv.is_empty() {
            let root = track.pid;
            if let Some(pid) = root {
                self.group = Group::of(pid);
            }
            // However it ends: somebody who follows a process stops when it is enough.
            watched::follow(root, track.duration, || self.tend(root))?;
            return Ok(Ending::FINE);
        }
        let mut first = true;
        let exit = watched::run(&track.argv, |pid| {
            if std::mem::take(&mut first) {
                self.tracker.follow(pid);
                self.group = Group::of(pid);
                self.kills_before = self.group.read().oom_kills;
            }
            self.tend(Some(pid))
        })?;
        if let (recorder::Exit::Signal(libc::SIGKILL), false) = (exit, self.shows) {
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
        if self.shows {
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

    /// The command was killed: writes the bundle, if it was for memory.
    fn explain(&mut self, folder: &Path) {
        let died_ns = now_ns();
        let group = self.group.read();
        let share = self.last.iter().find(|reading| reading.device_id < 0).and_then(|host| host.counters.share_used());
        let seen =
            Seen { killed: true, code: 137, kills: self.kills_before.zip(group.oom_kills), limit: group.limit, share };
        let Some(death) = seen.death() else { return };
        self.tracker.mark(EventType::Error, died_ns, json!({ "reason": OUT_OF_MEMORY }));
        let events: Vec<_> = self.tracker.recent().collect();
        let mortem = PostMortem {
            death: &death,
            began_ns: self.began_ns,
            died_ns,
            events: &events,
            request: None,
            stage: Stage::Unknown,
            recorded: false,
        };
        let sentences = sentences(&mortem);
        sentences.iter().for_each(|sentence| self.settings.say(sentence));
        let pid = u32::try_from(self.tracker.pid()).unwrap_or(0);
        let bundle = Bundle {
            death,
            backend: "host",
            pid,
            time_ns: died_ns,
            began_ns: self.began_ns,
            events,
            sentences,
            failed_request: serde_json::Value::Null,
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        };
        match bundle.write(folder, Retention::default()) {
            Ok(place) => self.settings.say(format_args!("post-mortem in {}", place.display())),
            Err(error) => terminal::say(format_args!("cannot write the post-mortem: {error}")),
        }
    }

    fn conclude(mut self, folder: Option<&Path>) {
        if let Some(stream) = self.stream.take() {
            self.tracker.listen(|_| ());
            stream.finish();
        }
        let (Some(folder), Some(sink)) = (folder, self.tracker.sink()) else { return };
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

fn place(reading_name: &str, device_id: i64) -> String {
    if device_id < 0 { reading_name.to_owned() } else { format!("device {device_id} ({reading_name})") }
}

fn said(alert: &Alert) -> String {
    let used = alert.counters.used.map_or(String::new(), |used| format!(", {}", bytes(used)));
    format!("{}: {} {:.0} % full{used}", alert.kind.name(), place(&alert.name, alert.device_id), alert.share * 100.0)
}

fn shown(reading: &Reading) -> String {
    let counters = &reading.counters;
    let used = counters.used.zip(counters.total).map_or("not reported".into(), |(used, total)| {
        format!("{} of {} used ({:.0} %)", bytes(used), bytes(total), used as f64 / total.max(1) as f64 * 100.0)
    });
    let held = reading.process_bytes.map_or(String::new(), |held| format!(", {} by this program", bytes(held)));
    format!("{}: {used}{held}", place(&reading.name, reading.device_id))
}
