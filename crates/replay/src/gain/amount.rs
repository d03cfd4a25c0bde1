//! What a step would gain, with its bounds, and what that rests on.

use super::kind::ChangeKind;
use analysis::stats::share::Share;

/// Percent of the step's time, 0 to 100.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    pub low: f64,
    pub mid: f64,
    pub high: f64,
    pub by: GainBy,
    /// The change that it is the gain of, where one was asked for.
    pub change: Option<ChangeId>,
    pub kind: ChangeKind,
    /// Low, mid and high as the recording alone gives them, where measured fixes have corrected them since.
    pub derived: Option<[f64; 3]>,
}

/// One of the changes that rules asked for while they looked at a case: [`crate::ReplayedSteps`] keeps them.
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
            GainBy::Bounded => ", bounds only",
            GainBy::Prior => ", from measurements elsewhere",
        }
    }
}

impl Gain {
    const NONE: Gain = Gain {
        low: 0.0,
        mid: 0.0,
        high: 0.0,
        by: GainBy::Recorded,
        change: None,
        kind: ChangeKind::Other,
        derived: None,
    };

    /// By a replay, as it came out: negative where a step gets slower.
    pub(crate) fn replayed(low: f64, mid: f64, high: f64) -> Gain {
        Gain { low, mid, high, by: GainBy::Replay, ..Gain::NONE }
    }

    /// From what was recorded, in percent of the step. In order whatever comes: the middle is what is known best.
    pub fn recorded(low: f64, mid: f64, high: f64) -> Gain {
        let number = |percent: f64| if percent.is_nan() { 0.0 } else { percent.clamp(0.0, 100.0) };
        let [low, mid, high] = [low, mid, high].map(number);
        Gain { low: low.min(mid), mid, high: high.max(mid), ..Gain::NONE }
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
