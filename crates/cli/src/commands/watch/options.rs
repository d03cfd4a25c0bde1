//! What `track` and `monitor` both ask: what to sample, how often, and when to warn.

use crate::failure::Failure;
use clap::Args;
use std::ffi::OsString;
use std::time::Duration;
use telemetry::alerts::Thresholds;

#[derive(Args, Debug)]
pub struct Options {
    /// Follow this process and its children
    #[arg(long, value_name = "PID", value_parser = crate::args::pid, conflicts_with = "argv")]
    pub(super) pid: Option<u32>,

    /// Seconds between samples
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = interval)]
    pub(super) interval: Duration,

    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = crate::args::seconds, conflicts_with = "argv")]
    pub(super) duration: Option<Duration>,

    /// Warn when this much of the memory is used: 80% or 0.8; `off` for never
    #[arg(long, value_name = "SHARE", default_value = "80%", value_parser = threshold)]
    warn: Threshold,

    /// The same, critical
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = threshold)]
    critical: Threshold,

    /// Seconds that memory has to stay above a threshold before it is an alert
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    hold: f64,

    /// Print each event as a JSON line, and take phases and counters as JSON lines on stdin, until it ends
    #[arg(long, conflicts_with = "argv")]
    pub(super) stream: bool,

    /// The command and its arguments [default: the whole machine]
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) argv: Vec<OsString>,
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

impl Options {
    pub fn thresholds(&self) -> Result<Thresholds, Failure> {
        if !(0.0..=86_400.0).contains(&self.hold) {
            return Err(Failure::usage("--hold must be between 0 and 86400 seconds"));
        }
        let hold_ns = (self.hold * 1e9) as u64;
        let thresholds =
            Thresholds { warning: self.warn.0, critical: self.critical.0, hold_ns, ..Thresholds::default() };
        match thresholds.contradiction() {
            None => Ok(thresholds),
            Some(why) => Err(Failure::usage(format_args!("--warn and --critical: {why}"))),
        }
    }
}
