//! Shares with their error: how sure a part of the whole is, from how often it was seen and how much it varies from step
//! to step. Nothing here knows what is being counted.

/// A fraction of the whole and the 95 % interval around it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Share {
    pub low: f64,
    pub mid: f64,
    pub high: f64,
}

/// Half the width of a 95 % interval, in standard errors.
const Z: f64 = 1.959_964;

impl Share {
    pub fn exactly(mid: f64) -> Share {
        Share { low: mid, mid, high: mid }
    }

    pub fn scaled(self, by: f64) -> Share {
        Share { low: self.low * by, mid: self.mid * by, high: self.high * by }
    }

    /// How likely the true share is above `level`, given the interval.
    pub fn surely_above(self, level: f64) -> f64 {
        let error = (self.high - self.low) / (2.0 * Z);
        if error > 0.0 {
            normal((self.mid - level) / error)
        } else if self.mid > level {
            1.0
        } else {
            0.0
        }
    }
}

/// Adds up parts of wholes, one pair a step (or any other stretch in which one thing leads to the next), so that the error
/// comes from how much the stretches differ and not from counting neighbours as if they were independent.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tally {
    pub part: f64,
    pub whole: f64,
    pub stretches: u64,
    part_squared: f64,
    product: f64,
    whole_squared: f64,
}

impl Tally {
    pub fn add(&mut self, part: f64, whole: f64) {
        if whole > 0.0 {
            self.part += part;
            self.whole += whole;
            self.stretches += 1;
            self.part_squared += part * part;
            self.product += part * whole;
            self.whole_squared += whole * whole;
        }
    }

    pub fn join(&mut self, other: &Tally) {
        self.part += other.part;
        self.whole += other.whole;
        self.stretches += other.stretches;
        self.part_squared += other.part_squared;
        self.product += other.product;
        self.whole_squared += other.whole_squared;
    }

    pub fn mid(&self) -> f64 {
        if self.whole > 0.0 { (self.part / self.whole).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The variance of the share by how the stretches differ. None with fewer than two.
    fn variance(&self) -> Option<f64> {
        let (count, mid) = (self.stretches as f64, self.mid());
        let squares = self.part_squared - 2.0 * mid * self.product + mid * mid * self.whole_squared;
        (self.stretches >= 2).then(|| count / (count - 1.0) * squares.max(0.0) / (self.whole * self.whole))
    }

    /// For parts and wholes that are numbers of samples: Wilson's interval, widened where samples of one step resemble
    /// each other.
    pub fn sampled(&self) -> Share {
        if self.whole <= 0.0 {
            return Share { low: 0.0, mid: 0.0, high: 1.0 };
        }
        let mid = self.mid();
        let simple = mid * (1.0 - mid) / self.whole;
        let effect = match self.variance() {
            Some(variance) if simple > 0.0 => (variance / simple).clamp(1.0, self.whole.max(1.0)),
            _ => 1.0,
        };
        wilson(mid, self.whole / effect)
    }

    /// For parts and wholes that were measured (nanoseconds): the sum is exact, the interval is the spread over stretches.
    pub fn measured(&self) -> Share {
        let (mid, error) = (self.mid(), Z * self.variance().unwrap_or(0.0).sqrt());
        Share { low: (mid - error).max(0.0), mid, high: (mid + error).min(1.0) }
    }

    /// How sure it is that this is no accident: by the stretches in which it was seen, of which those with little of it count for little.
    pub fn repeats(&self) -> f64 {
        laplace(self.effective())
    }

    /// So many stretches with the same part each would tell as much: (Σx)²/Σx². All of it in one counts as one, wherever traces of it are.
    pub fn effective(&self) -> f64 {
        if self.part_squared > 0.0 { self.part * self.part / self.part_squared } else { 0.0 }
    }
}

/// Laplace's rule: what was seen each of so many times is seen the next time with this chance.
pub fn again(times: usize) -> f64 {
    laplace(times as f64)
}

fn laplace(times: f64) -> f64 {
    (times + 1.0) / (times + 2.0)
}

pub fn wilson(mid: f64, count: f64) -> Share {
    if count <= 0.0 {
        return Share { low: 0.0, mid: 0.0, high: 1.0 };
    }
    let mid = if mid.is_nan() { 0.0 } else { mid.clamp(0.0, 1.0) };
    let square = Z * Z / count;
    let centre = (mid + square / 2.0) / (1.0 + square);
    let half = Z / (1.0 + square) * (mid * (1.0 - mid) / count + square / (4.0 * count)).sqrt();
    Share { low: (centre - half).clamp(0.0, mid), mid, high: (centre + half).clamp(mid, 1.0) }
}

/// The normal distribution function, to seven digits (Abramowitz and Stegun, 26.2.17).
fn normal(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series =
        t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * series;
    if x >= 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn wilson_is_what_the_tables_say() {
        let share = wilson(0.3, 100.0);
        assert!(close(share.low, 0.2189) && close(share.high, 0.3958), "{share:?}");
        assert_eq!(wilson(0.0, 0.0), Share { low: 0.0, mid: 0.0, high: 1.0 });
        assert!(close(wilson(0.0, 20.0).high, 0.1611) && wilson(0.0, 20.0).low == 0.0);
        assert_eq!((wilson(f64::NAN, 20.0).mid, wilson(1.5, 20.0).mid), (0.0, 1.0));
    }

    #[test]
    fn samples_of_one_step_that_resemble_each_other_count_for_less() {
        let (mut alike, mut mixed) = (Tally::default(), Tally::default());
        for step in 0..20 {
            alike.add(if step % 2 == 0 { 10.0 } else { 0.0 }, 10.0);
            mixed.add(5.0, 10.0);
        }
        let (alike, mixed) = (alike.sampled(), mixed.sampled());
        assert_eq!(alike.mid, mixed.mid);
        assert!(alike.high - alike.low > 2.5 * (mixed.high - mixed.low));
    }

    #[test]
    fn what_was_seen_more_often_is_surer() {
        let of = |parts: &[f64]| {
            let mut tally = Tally::default();
            parts.iter().for_each(|part| tally.add(*part, 10.0));
            tally.repeats()
        };
        // A stretch in which it did not happen is no proof of it.
        assert_eq!(of(&[1.0, 0.0, 0.0]), of(&[1.0]));
        assert!(of(&[]) < of(&[1.0]) && of(&[1.0]) < of(&[1.0, 1.0]) && of(&[1.0; 1000]) < 1.0);
        assert_eq!(of(&[3.0; 14]), again(14));
        // Nearly all of it in one of them: that was seen once.
        let mut one = [0.1; 14];
        one[3] = 9.0;
        assert!(of(&one) < again(1) + 0.05, "{}", of(&one));
    }

    #[test]
    fn nothing_seen_is_nothing_claimed() {
        let nothing = Tally::default();
        assert_eq!((nothing.mid(), nothing.sampled().high, nothing.measured().high), (0.0, 1.0, 0.0));
        assert!(close(normal(1.96), 0.975) && close(normal(-1.96), 0.025) && close(normal(0.0), 0.5));
        assert_eq!(Share::exactly(0.2).surely_above(0.1), 1.0);
    }
}
