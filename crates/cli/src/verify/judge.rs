//! What the measured change says about the predicted one, in one word for programs and one sentence for people.

use super::interval::Interval;

/// What the analysis says that a step would gain, in percent of its time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    pub low: f64,
    pub mid: f64,
    pub high: f64,
}

impl From<replay::Gain> for Gain {
    fn from(gain: replay::Gain) -> Gain {
        Gain { low: gain.low, mid: gain.mid, high: gain.high }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
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
const NOTHING: f64 = 0.01;

/// The predicted gain is in percent of the step; the measured change is a fraction, negative when faster.
pub fn judge(predicted: Option<Gain>, measured: Interval) -> Verdict {
    let (least, most) = (-measured.high, -measured.low);
    match predicted {
        _ if most < 0.0 => Verdict::Slower,
        _ if least <= 0.0 && -least <= NOTHING && most <= NOTHING => Verdict::NoDifference,
        // It may be nothing, and it is not what was said.
        Some(gain) if least <= 0.0 && most < gain.low / 100.0 => Verdict::Less,
        _ if least <= 0.0 => Verdict::CannotTell,
        None => Verdict::Faster,
        Some(gain) if most < gain.low / 100.0 => Verdict::Less,
        Some(gain) if least > gain.high / 100.0 => Verdict::More,
        Some(_) => Verdict::Confirmed,
    }
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::Less => "less",
            Verdict::More => "more",
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no-difference",
            Verdict::CannotTell => "cannot-tell",
        }
    }
}

/// `predicted −18 % (−12 to −22), measured −16.4 % (95 % interval −17.8 to −14.9): confirmed`.
pub fn sentence(predicted: Option<Gain>, measured: Interval, verdict: Verdict) -> String {
    let interval = format!("{} to {}", number(measured.low), number(measured.high));
    let said = match verdict {
        Verdict::Confirmed => "confirmed".to_owned(),
        Verdict::Less if measured.high >= 0.0 => "not confirmed: if it gains anything, less than predicted".to_owned(),
        Verdict::Less => "faster, but by less than predicted".to_owned(),
        Verdict::More => "faster, by more than predicted".to_owned(),
        Verdict::Faster => "faster".to_owned(),
        Verdict::Slower => "slower: leave it".to_owned(),
        Verdict::NoDifference => "no difference that matters".to_owned(),
        Verdict::CannotTell => {
            format!("cannot tell: the interval is {interval} %; more rounds (--rounds) or a quieter machine would")
        }
    };
    let before = match predicted {
        Some(gain) => format!(
            "predicted {} % ({} to {}), ",
            number(-gain.mid / 100.0),
            number(-gain.low / 100.0),
            number(-gain.high / 100.0)
        ),
        None => String::new(),
    };
    format!("{before}measured {} % (95 % interval {interval}): {said}", number(measured.mid))
}

/// A fraction in percent, with its sign: `−16.4`, `+3.0`. Two wild runs give intervals without an end, which is all to say.
pub fn number(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent > 1000.0 {
        return "over +1000".into();
    }
    let digits = if percent.abs() >= 99.95 { 0 } else { 1 };
    let text = format!("{:.digits$}", percent.abs());
    match percent {
        _ if text.trim_matches(['0', '.']).is_empty() => "0.0".into(),
        _ if percent < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(predicted: Option<(f64, f64)>, low: f64, high: f64) -> Verdict {
        let gain = predicted.map(|(low, high)| Gain { low, mid: (low + high) / 2.0, high });
        judge(gain, Interval { mid: (low + high) / 2.0, low, high })
    }

    #[test]
    fn every_word_has_its_case() {
        let said = Some((12.0, 22.0));
        assert_eq!(judged(said, -0.178, -0.149), Verdict::Confirmed);
        assert_eq!(judged(said, -0.30, -0.21), Verdict::Confirmed, "the two overlap");
        assert_eq!(judged(said, -0.08, -0.04), Verdict::Less);
        assert_eq!(judged(said, -0.05, 0.03), Verdict::Less, "whatever it is, it is not 12 %");
        assert_eq!(judged(said, -0.40, -0.30), Verdict::More);
        assert_eq!(judged(said, -0.20, 0.05), Verdict::CannotTell);
        assert_eq!(judged(said, 0.02, 0.05), Verdict::Slower);
        assert_eq!(judged(None, -0.08, -0.04), Verdict::Faster);
        assert_eq!(judged(None, -0.05, 0.03), Verdict::CannotTell);
        assert_eq!(judged(None, -0.005, 0.004), Verdict::NoDifference);
        assert_eq!(judged(said, -0.005, 0.004), Verdict::NoDifference);
    }

    #[test]
    fn the_sentence_says_both_with_their_ranges() {
        let gain = Some(Gain { low: 12.0, mid: 18.0, high: 22.0 });
        let measured = Interval { mid: -0.164, low: -0.178, high: -0.149 };
        assert_eq!(
            sentence(gain, measured, Verdict::Confirmed),
            "predicted −18.0 % (−12.0 to −22.0), measured −16.4 % (95 % interval −17.8 to −14.9): confirmed"
        );
        let wide = Interval { mid: 0.01, low: -0.03, high: 0.05 };
        let said = sentence(None, wide, Verdict::CannotTell);
        assert!(said.contains("cannot tell: the interval is −3.0 to +5.0 %"), "{said}");
        assert_eq!(number(2.8e9), "over +1000");
        assert_eq!((number(-0.00004), number(1.5), number(0.0304)), ("0.0".into(), "+150".into(), "+3.0".into()));
    }
}
