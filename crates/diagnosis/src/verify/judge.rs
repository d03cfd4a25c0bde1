//! What the measured change says about the predicted one.

use super::interval::Interval;

/// What the analysis says that a step would gain, in percent of its time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PredictedGain {
    pub low: f64,
    pub mid: f64,
    pub high: f64,
}

impl From<replay::Gain> for PredictedGain {
    fn from(gain: replay::Gain) -> PredictedGain {
        PredictedGain { low: gain.low, mid: gain.mid, high: gain.high }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Faster, and by as much as was said.
    Confirmed,
    /// Faster, but by less than the least that was said.
    Less,
    /// Faster by more than the most that was said.
    More,
    /// Faster; nothing was said before.
    Faster,
    Slower,
    /// Whatever it does is too small to matter.
    NoDifference,
    CannotTell,
}

/// Within one percent either way a change is no reason to keep or to drop a fix.
const MIN_CHANGE: f64 = 0.01;

/// The predicted gain is in percent of the step; the measured change is a fraction, negative when faster.
pub fn judge(predicted: Option<PredictedGain>, measured: Interval) -> Outcome {
    let (least, most) = (-measured.high, -measured.low);
    match predicted {
        _ if most < 0.0 => Outcome::Slower,
        _ if least <= 0.0 && -least <= MIN_CHANGE && most <= MIN_CHANGE => Outcome::NoDifference,
        // It may be nothing, and it is not what was said.
        Some(gain) if least <= 0.0 && most < gain.low / 100.0 => Outcome::Less,
        _ if least <= 0.0 => Outcome::CannotTell,
        None => Outcome::Faster,
        Some(gain) if most < gain.low / 100.0 => Outcome::Less,
        Some(gain) if least > gain.high / 100.0 => Outcome::More,
        Some(_) => Outcome::Confirmed,
    }
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Confirmed => "confirmed",
            Outcome::Less => "less",
            Outcome::More => "more",
            Outcome::Faster => "faster",
            Outcome::Slower => "slower",
            Outcome::NoDifference => "no-difference",
            Outcome::CannotTell => "cannot-tell",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(predicted: Option<(f64, f64)>, low: f64, high: f64) -> Outcome {
        let gain = predicted.map(|(low, high)| PredictedGain { low, mid: (low + high) / 2.0, high });
        judge(gain, Interval { mid: (low + high) / 2.0, low, high })
    }

    #[test]
    fn every_word_has_its_case() {
        let said = Some((12.0, 22.0));
        assert_eq!(judged(said, -0.178, -0.149), Outcome::Confirmed);
        assert_eq!(judged(said, -0.30, -0.21), Outcome::Confirmed, "the two overlap");
        assert_eq!(judged(said, -0.08, -0.04), Outcome::Less);
        assert_eq!(judged(said, -0.05, 0.03), Outcome::Less, "whatever it is, it is not 12 %");
        assert_eq!(judged(said, -0.40, -0.30), Outcome::More);
        assert_eq!(judged(said, -0.20, 0.05), Outcome::CannotTell);
        assert_eq!(judged(said, 0.02, 0.05), Outcome::Slower);
        assert_eq!(judged(None, -0.08, -0.04), Outcome::Faster);
        assert_eq!(judged(None, -0.05, 0.03), Outcome::CannotTell);
        assert_eq!(judged(None, -0.005, 0.004), Outcome::NoDifference);
        assert_eq!(judged(said, -0.005, 0.004), Outcome::NoDifference);
    }
}
