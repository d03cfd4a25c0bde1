//! How far a number may be off by chance, from the spread of the steps: half of a 95 % interval.

use super::Measured;

/// Fewer steps show no spread that can be trusted.
pub const LEAST_STEPS: usize = 5;
/// Fewer steps have no 99th percentile beside the longest.
const LEAST_TAIL: usize = 100;
const Z: f64 = 1.96;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noise {
    /// The difference is larger than chance explains.
    Real,
    /// Steps that are all alike could differ by as much.
    Within,
    /// Too few steps to know.
    Unknown,
}

impl Noise {
    pub fn name(self) -> &'static str {
        match self {
            Noise::Real => "real",
            Noise::Within => "noise",
            Noise::Unknown => "unknown",
        }
    }

    pub fn of(a: Measured, b: Measured) -> Noise {
        match (a.error, b.error) {
            (Some(x), Some(y)) if (b.value - a.value).abs() > x.hypot(y) => Noise::Real,
            (Some(_), Some(_)) => Noise::Within,
            _ => Noise::Unknown,
        }
    }
}

/// The mean of `count` values with this sum and sum of squares.
pub fn mean(count: usize, sum: f64, squares: f64) -> Measured {
    let n = count.max(1) as f64;
    let value = sum / n;
    let variance = (squares / n - value * value).max(0.0) * n / (n - 1.0).max(1.0);
    Measured { value, error: (count >= LEAST_STEPS).then(|| Z * (variance / n).sqrt()) }
}

pub fn mean_of(values: impl Iterator<Item = f64>) -> Measured {
    let (mut count, mut sum, mut squares) = (0, 0.0, 0.0);
    for value in values {
        count += 1;
        sum += value;
        squares += value * value;
    }
    mean(count, sum, squares)
}

/// A percentile of sorted values; its interval lies between two of them, whatever their distribution.
pub fn percentile(sorted: &[f64], percent: usize) -> Measured {
    let count = sorted.len();
    let at = |rank: usize| sorted.get(rank.clamp(1, count.max(1)) - 1).copied().unwrap_or(0.0);
    let value = at((count * percent).div_ceil(100));
    let least = if percent > 90 { LEAST_TAIL } else { LEAST_STEPS };
    let (n, p) = (count as f64, percent as f64 / 100.0);
    let reach = Z * (n * p * (1.0 - p)).sqrt();
    let (low, high) = (at((n * p - reach).floor().max(1.0) as usize), at((n * p + reach).ceil() as usize + 1));
    Measured { value, error: (count >= least).then(|| (value - low).max(high - value)) }
}

/// Whether one of two lists of steps tends to be longer than the other: the test of Mann and Whitney, for which it does not
/// matter how the times are spread. Both are sorted.
pub fn of_ranks(a: &[f64], b: &[f64]) -> Noise {
    let (n, m) = (a.len() as f64, b.len() as f64);
    if a.len().min(b.len()) < LEAST_STEPS {
        return Noise::Unknown;
    }
    // For each of a: how many of b are shorter; one that is equal counts half.
    let shorter = |x: f64| {
        let (below, up_to) = (b.partition_point(|y| *y < x), b.partition_point(|y| *y <= x));
        (below + up_to) as f64 / 2.0
    };
    let wins: f64 = a.iter().map(|x| shorter(*x)).sum();
    // Equal times tell nothing, and make the spread of the sum smaller.
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    let ties: f64 = all.chunk_by(|x, y| x == y).map(|same| (same.len() as f64).powi(3) - same.len() as f64).sum();
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    let away = (wins - n * m / 2.0).abs();
    if away > Z * variance.max(0.0).sqrt() { Noise::Real } else { Noise::Within }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_have_no_error_and_few_have_none_that_is_known() {
        assert_eq!(mean_of([3.0; 20].into_iter()), Measured { value: 3.0, error: Some(0.0) });
        assert_eq!(mean_of([3.0; 4].into_iter()), Measured { value: 3.0, error: None });
        assert_eq!(percentile(&[1.0, 2.0], 50), Measured { value: 1.0, error: None });
        assert_eq!(percentile(&[], 99), Measured { value: 0.0, error: None });
        assert_eq!(percentile(&[1.0; 99], 99).error, None);
    }

    #[test]
    fn a_spread_makes_an_error() {
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        let median = percentile(&sorted, 50);
        assert_eq!((median.value, median.error), (50.0, Some(11.0)));
        let real = |b| Noise::of(median, Measured { value: b, error: Some(1.0) });
        assert_eq!((real(55.0), real(62.0)), (Noise::Within, Noise::Real));
        assert_eq!(Noise::of(median, Measured { value: 99.0, error: None }), Noise::Unknown);
        assert_eq!(Noise::of(Measured::exactly(1.0), Measured::exactly(1.0)), Noise::Within);
    }

    #[test]
    fn ranks_tell_lists_apart_whatever_their_spread() {
        let a = [70.0, 71.0, 72.0, 73.0, 74.0, 81.0];
        let b = [100.0, 101.0, 107.0, 120.0, 150.0, 166.0];
        assert_eq!((of_ranks(&a, &b), of_ranks(&b, &a)), (Noise::Real, Noise::Real));
        assert_eq!((of_ranks(&a, &a), of_ranks(&[5.0; 9], &[5.0; 7])), (Noise::Within, Noise::Within));
        assert_eq!(of_ranks(&[5.0; 9], &[6.0; 7]), Noise::Real);
        assert_eq!(of_ranks(&a[..4], &b), Noise::Unknown);
    }
}
