//! What a rule says: a [`Finding`] with its place, its gain and its proof, or an [`Abstention`] with its reason.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::rule_code::RuleCode;
use analysis::place::Place;
use analysis::stats::share::Share;
use replay::gain::{Gain, GainBy};
use timeline::TrackIndex;

#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The rule that says it.
    pub code: RuleCode,
    /// One sentence that names the place and the number. The last stage of a diagnosis puts before it that nothing is wrong, where that is so.
    pub title: String,
    pub place: Place,
    /// What the step would gain. None: the data shows the problem, but not what it costs.
    pub gain: Option<Gain>,
    pub severity: Severity,
    pub certainty: Certainty,
    pub evidence: Vec<Evidence>,
    /// What to do, the exact line to type where there is one.
    pub actions: Vec<Action>,
    /// How to see that it helped.
    pub verify: String,
}

impl Finding {
    /// 0 to 1, from the data.
    pub fn confidence(&self) -> f64 {
        self.certainty.confidence()
    }

    /// What its gain is taken for in percent, wherever that comes from: the middle, which measured fixes lie below as often as above. Not the mean of
    /// its range: where a recording shows little, that is drawn to the middle of everything.
    pub fn expected_gain(&self) -> Option<f64> {
        self.gain.map(|gain| gain.mid)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    Info,
    Low,
    Medium,
    High,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }

    /// Of a gain. Where only its bounds are known, the lower one is nothing, whatever there is to gain: then the middle counts.
    pub fn of_gain(gain: &Gain) -> Severity {
        match gain.by {
            GainBy::Replay | GainBy::Recorded => Severity::of(gain.share()),
            GainBy::Bounded | GainBy::Prior => Severity::of(Share::exactly(gain.mid / 100.0)),
        }
    }

    /// By what there is to gain at the least favourable end: a fifth of a step is worth a day of work, a twentieth is worth
    /// an hour, less is worth knowing.
    pub fn of(share: Share) -> Severity {
        match share.low {
            low if low >= 0.20 => Severity::High,
            low if low >= 0.05 => Severity::Medium,
            _ => Severity::Low,
        }
    }
}

/// One piece of proof. Times are the timeline's; with a track they are a range that a report can jump to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Evidence {
    pub text: String,
    pub start: Option<u64>,
    pub end: Option<u64>,
    pub track: Option<TrackIndex>,
    pub numbers: Vec<(String, f64)>,
}

impl Evidence {
    pub fn new(text: impl Into<String>) -> Evidence {
        Evidence { text: text.into(), ..Evidence::default() }
    }

    pub fn at(text: impl Into<String>, track: Option<TrackIndex>, start: u64, end: u64) -> Evidence {
        Evidence { text: text.into(), start: Some(start), end: Some(end), track, numbers: Vec::new() }
    }

    pub fn number(mut self, name: &str, value: f64) -> Evidence {
        self.numbers.push((name.to_owned(), value));
        self
    }
}

/// A rule that could not look, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Abstention {
    pub code: RuleCode,
    pub reason: String,
    /// Only PyTorch could have recorded what it lacks.
    pub needs_torch: bool,
}
