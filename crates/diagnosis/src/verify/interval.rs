//! How much slower or faster, and how sure that is: runs with and without a fix, taken in turn, in pairs.

/// A change of the time, as a fraction of the time without: -0.16 is 16 % faster.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    pub mid: f64,
    /// The 95 % interval.
    pub low: f64,
    pub high: f64,
}

/// Of each pair of runs the ratio is taken, so that what slows both (another program, a warmer chip) falls out; the logarithms
/// of ratios are as far from zero whether a thing gets twice as fast or twice as slow. Student's t for their mean. None: fewer
/// than two pairs, or a time of zero.
pub fn paired(without: &[f64], with: &[f64]) -> Option<Interval> {
    let logs: Vec<f64> = without.iter().zip(with).map(|(a, b)| (b / a).ln()).collect();
    if logs.len() < 2 || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = t95(logs.len() - 1) * (variance / count).sqrt();
    Some(Interval { mid: mean.exp_m1(), low: (mean - half).exp_m1(), high: (mean + half).exp_m1() })
}

/// Student's t for 95 %, both sides. Between rows the larger one counts.
fn t95(freedom: usize) -> f64 {
    const UP_TO_30: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => UP_TO_30[freedom - 1],
        31..40 => 2.042,
        40..60 => 2.021,
        60..120 => 2.000,
        120..1000 => 1.980,
        _ => 1.962,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slows_both_of_a_pair_falls_out() {
        let interval = paired(&[10.0, 20.0, 40.0], &[8.0, 16.0, 32.0]).unwrap();
        for value in [interval.mid, interval.low, interval.high] {
            assert!((value + 0.2).abs() < 1e-12, "{interval:?}");
        }
    }

    #[test]
    fn noise_widens_the_interval_as_the_textbook_says() {
        // Logarithms of the ratios 0.1, 0.2, 0.3: mean 0.2, standard error 0.1 / √3, t of two degrees 4.303.
        let with: Vec<f64> = [0.1f64, 0.2, 0.3].iter().map(|log| log.exp()).collect();
        let interval = paired(&[1.0; 3], &with).unwrap();
        let half = 4.303 * 0.1 / 3f64.sqrt();
        assert!((interval.low - (0.2 - half).exp_m1()).abs() < 1e-9, "{interval:?}");
        assert!((interval.high - (0.2 + half).exp_m1()).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn one_pair_says_nothing() {
        assert_eq!(paired(&[1.0], &[2.0]), None);
        assert_eq!(paired(&[1.0, 0.0], &[2.0, 1.0]), None);
    }

    #[test]
    fn the_interval_holds_what_it_promises() {
        // A small generator of our own: the same numbers on every machine.
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut held = 0;
        for _ in 0..2000 {
            // Sums of uniform numbers are nearly normal.
            let mut noise = |centre: f64| centre * (1.0 + 0.02 * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0));
            let without: Vec<f64> = (0..5).map(|_| noise(10.0)).collect();
            let with: Vec<f64> = (0..5).map(|_| noise(9.0)).collect();
            let interval = paired(&without, &with).unwrap();
            held += usize::from(interval.low <= -0.1 && -0.1 <= interval.high);
        }
        assert!((1860..=1940).contains(&held), "{held} of 2000");
    }
}
