//! A recording that is too short: so little time was looked at that, at the rate of sampling, too few samples fall into it for any
//! share of them to be told from another.

use crate::advice::{self, Recorder};
use crate::health;
use crate::phrase;
use crate::rule::Case;
use crate::seen::LEAST_SAMPLES;
use crate::share::{Share, wilson};
use timeline::Exit;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TooShort {
    /// The time that was looked at: all steps together, or the recording.
    pub ns: u64,
    pub samples: usize,
    /// How long it would have to be.
    pub least_ns: u64,
}

impl TooShort {
    /// None: it is long enough, or something else than its length is why there are few samples.
    pub fn of(case: &Case) -> Option<TooShort> {
        let (timeline, ns, samples) = (case.timeline, case.windows.total(), case.seen.all.len());
        let rate = timeline.info.settings.rate_hz.filter(|rate| *rate > 0.0)?;
        let least_ns = (LEAST_SAMPLES as f64 / rate * 1e9) as u64;
        // Recorded calls and what a device did are exact, however short.
        let told = case.breakdown.by_calls || !timeline.gpu.is_empty();
        let sampled = advice::is_python(timeline) && Recorder::of(timeline) == Recorder::Ours;
        let other_reason = health::failed(timeline, "stacks") || health::samples_damaged(timeline);
        let short = samples < LEAST_SAMPLES && ns > 0 && ns < least_ns;
        (short && sampled && !told && !other_reason).then_some(TooShort { ns, samples, least_ns })
    }

    /// What half of so few samples may stand for.
    fn half(&self) -> Share {
        wilson(0.5, self.samples as f64)
    }

    /// `too short: 34.0 ms, 3 samples`
    pub fn said(&self) -> String {
        format!("too short: {}, {}", phrase::duration(self.ns), phrase::counted(self.samples as u64, "sample"))
    }

    /// Why that says nothing.
    pub fn why(&self) -> String {
        match self.samples {
            0 => "no sample fell into it".into(),
            _ => format!("of so few, half may be {} of the time", phrase::percent_range(self.half())),
        }
    }

    /// What to do: a program that failed has to be mended first.
    pub fn to_do(&self, case: &Case) -> String {
        let least = phrase::duration(self.least_ns);
        match case.timeline.info.exit {
            Some(Exit::Code(0)) | None => {
                format!("Record a longer run, or repeat the work in it: {least} of it is the least for any share.")
            }
            Some(_) => format!(
                "See what the program printed before it ended; then record a run of {least} or more, the least for any share."
            ),
        }
    }
}

/// How the program ended, as a sentence. None: it was attached to, or goes on.
pub fn ended(exit: Option<Exit>) -> Option<String> {
    Some(match exit? {
        Exit::Code(0) => "The program ended by itself (exit code 0).".into(),
        Exit::Code(code) => format!("The program failed: exit code {code}."),
        Exit::Signal(signal) => format!("The program was killed by signal {signal}."),
    })
}
