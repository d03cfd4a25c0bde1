//! What a rule says: a [`Finding`] with its place, its gain and its proof, or an [`Abstention`] with its reason.

use crate::share::Share;
use timeline::TrackIndex;

#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The rule's code.
    pub code: &'static str,
    /// One sentence that names the place and the number.
    pub title: String,
    pub place: Place,
    /// What the step would gain. None: the data shows the problem, but not what it costs.
    pub gain: Option<Gain>,
    pub severity: Severity,
    /// 0 to 1, from the data.
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
    /// What to do, the exact line to type where there is one.
    pub actions: Vec<String>,
    /// How to see that it helped.
    pub verify: String,
}

/// How the title of a finding begins by which nothing is wrong. Whether that is so is said by its rule, never by this.
const HEALTHY: &str = "Healthy: ";

/// The title of what is as it should be.
pub fn healthy_title(fact: &str) -> String {
    format!("{HEALTHY}{fact}")
}

/// The inverse of [`healthy_title`].
pub fn healthy_fact(title: &str) -> &str {
    title.get(HEALTHY.len()..).unwrap_or_default()
}

/// Where in the program. What is not known is not said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    pub module: Option<String>,
    pub kernel: Option<String>,
    pub api: Option<String>,
}

/// Percent of the step's time, 0 to 100.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    pub low: f64,
    pub mid: f64,
    pub high: f64,
    pub by: GainBy,
    /// The change that it is the gain of, where one was asked for.
    pub change: Option<ChangeId>,
}

/// One of the changes that rules asked for while they looked at a case. `gain` keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeId(pub(crate) u32);

/// What a gain rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GainBy {
    /// The recorded steps were replayed with the blamed work gone, or as fast as other work of the same recording.
    Replay,
    /// The time that the blamed work takes, as it was recorded or sampled: what waits for it is not known.
    Recorded,
    /// How much of the blamed work a fix takes away is not recorded. Its bounds are known: the ends of the range. The middle is what lies half
    /// way between, or what the evidence says.
    Bounded,
    /// Bounds too; the middle is what the same fix brought elsewhere, which the evidence says.
    Prior,
}

impl GainBy {
    pub fn name(self) -> &'static str {
        match self {
            GainBy::Replay => "replay",
            GainBy::Recorded => "recorded",
            GainBy::Bounded => "bounded",
            GainBy::Prior => "prior",
        }
    }

    /// What to say after a gain that the recording alone does not show.
    pub fn proviso(self) -> &'static str {
        match self {
            GainBy::Replay | GainBy::Recorded => "",
            GainBy::Bounded => ", within its bounds",
            GainBy::Prior => ", by what was seen elsewhere",
        }
    }
}

impl Gain {
    /// From what was recorded, in percent of the step. In order whatever comes: the middle is what is known best.
    pub fn recorded(low: f64, mid: f64, high: f64) -> Gain {
        let number = |percent: f64| if percent.is_nan() { 0.0 } else { percent.clamp(0.0, 100.0) };
        let [low, mid, high] = [low, mid, high].map(number);
        Gain { low: low.min(mid), mid, high: high.max(mid), by: GainBy::Recorded, change: None }
    }

    /// Between nothing and so many percent, and no more is known.
    pub fn up_to(most: f64) -> Gain {
        Gain::recorded(most, most, most).at_most()
    }

    /// This is the most: a fix may bring all of it or nothing.
    pub fn at_most(self) -> Gain {
        Gain { low: 0.0, mid: self.mid / 2.0, by: GainBy::Bounded, ..self }
    }

    /// Nanoseconds of a step that takes so long: low, mid, high.
    pub fn ns(&self, step_ns: u64) -> [i64; 3] {
        [self.low, self.mid, self.high].map(|percent| (percent / 100.0 * step_ns as f64).round() as i64)
    }

    pub fn share(&self) -> Share {
        Share { low: self.low / 100.0, mid: self.mid / 100.0, high: self.high / 100.0 }
    }
}

impl From<Share> for Gain {
    fn from(share: Share) -> Gain {
        Gain::recorded(100.0 * share.low, 100.0 * share.mid, 100.0 * share.high)
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
    pub fn said(text: impl Into<String>) -> Evidence {
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
    pub code: &'static str,
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::Gain;

    #[test]
    fn a_gain_is_in_order_whatever_it_is_made_of() {
        let of = |low, mid, high| {
            let gain = Gain::recorded(low, mid, high);
            [gain.low, gain.mid, gain.high]
        };
        assert_eq!(of(1.0, 29.0, 4.0), [1.0, 29.0, 29.0]);
        assert_eq!(of(9.0, 5.0, 700.0), [5.0, 5.0, 100.0]);
        assert_eq!(of(f64::NAN, f64::NAN, f64::NAN), [0.0; 3]);
    }
}
