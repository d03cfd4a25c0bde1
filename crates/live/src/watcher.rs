//! Follows a recording: reads the window that ends now, or where a finished one was wound to, and makes the model of it.

use crate::build;
use crate::history::History;
use crate::model::{Clock, Model, State};
use diagnosis::Options;
use diagnosis::RuleSettings;
use std::path::Path;
use std::time::{Duration, Instant};
use timeline::{Follow, OpenError, Timeline};

/// Long enough for steps of seconds and a few hundred samples, short enough that what was mended is gone from it soon.
pub const WINDOW: Duration = Duration::from_secs(30);

/// Where the window ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Now; of a finished recording, its end.
    Newest,
    /// So many nanoseconds after the start of the recording.
    At(u64),
}

pub struct Watcher {
    follow: Follow,
    window: u64,
    rules: RuleSettings,
    /// Whether the recorder is at work; asked anew for every model.
    lives: Box<dyn Fn() -> bool + Send>,
    history: History,
    /// When the recording began and, if it has, ended.
    span: Option<(u64, Option<u64>)>,
}

impl Watcher {
    pub fn new(trace: &Path, window: Duration, rules: RuleSettings, lives: Box<dyn Fn() -> bool + Send>) -> Watcher {
        let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        Watcher { follow: Follow::new(trace), window, rules, lives, history: History::default(), span: None }
    }

    /// The window that ends there, analysed.
    pub fn look(&mut self, position: Position) -> Result<Model, OpenError> {
        let began = Instant::now();
        let lives = (self.lives)();
        let (started, ended) = self.span(lives)?;
        let until = match (position, ended) {
            (Position::At(after), _) => started.saturating_add(after).min(ended.unwrap_or_else(now)),
            (Position::Newest, Some(ended)) => ended,
            (Position::Newest, None) => now(),
        };
        let timeline = self.follow.read(until.saturating_sub(self.window).max(started)..=until)?;
        let state = match (lives, ended) {
            (true, _) => State::Recording,
            (false, Some(_)) if timeline.info.state != timeline::State::Recording => State::Ended,
            _ => State::Unfinished,
        };
        let newest = newest(&timeline);
        let clock = Clock {
            start_ns: timeline.start.saturating_sub(started),
            end_ns: until.saturating_sub(started),
            recorded_ns: ended.unwrap_or(until).saturating_sub(started),
            lag_ns: (state == State::Recording).then(|| now().saturating_sub(newest.unwrap_or(started))),
            cost_ns: 0,
        };
        let trace = self.follow.folder().display().to_string();
        let options = Options { rules: self.rules.clone(), ..Options::default() };
        let mut model = build::model(&timeline, &options, &trace, state, clock);
        self.history.add(&mut model.findings, model.clock.end_ns);
        model.clock.cost_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(model)
    }

    /// When the recording began and ended. One that is finished, or whose recorder is gone, is asked once.
    fn span(&mut self, lives: bool) -> Result<(u64, Option<u64>), OpenError> {
        if let Some(span @ (_, ended)) = self.span
            && ended.is_some() != lives
        {
            return Ok(span);
        }
        let span = if lives {
            // Nothing has ended in this moment, so only what is known of the recording as a whole comes back.
            (self.follow.read(u64::MAX - 1..=u64::MAX)?.info.started_ns.unwrap_or(0), None)
        } else {
            let all = timeline::open(self.follow.folder())?;
            (all.start, Some(all.end))
        };
        self.span = Some(span);
        Ok(span)
    }
}

/// `CLOCK_MONOTONIC`, which every time of a trace is of.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// The last moment that anything in the window is of.
fn newest(timeline: &Timeline) -> Option<u64> {
    let slices = (0..timeline.slices.len()).map(|index| timeline.slices.get(index)).filter(|slice| !slice.open);
    let slices = slices.map(|slice| slice.end()).max();
    let samples = timeline.samples.time.iter().copied().max();
    let counters = timeline.counters.iter().filter_map(|counter| counter.time.last().copied()).max();
    slices.max(samples).max(counters)
}
