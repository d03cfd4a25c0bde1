//! What the sampler of one process may cost: a fifth of a core. Where a sample takes too long for the rate that was asked for
//! (thousands of threads, a rate of 1000, a slow machine), it is taken less often.

use std::time::Duration;

/// One part in this of a core.
const SHARE: u32 = 5;
/// What may be saved up for samples that cost more than the others, as the first one does.
const MOST_CREDIT: Duration = Duration::from_millis(500);

pub(super) struct Budget {
    credit: Duration,
    debt: Duration,
}

impl Budget {
    pub fn new() -> Budget {
        Budget { credit: MOST_CREDIT, debt: Duration::ZERO }
    }

    /// `cost` of processor time was spent, `passed` after the last time. Returns how long to pause.
    pub fn spend(&mut self, passed: Duration, cost: Duration) -> Duration {
        let earned = self.credit + passed / SHARE;
        let owed = self.debt + cost;
        self.credit = earned.saturating_sub(owed).min(MOST_CREDIT);
        self.debt = owed.saturating_sub(earned);
        self.debt * SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples taken in ten seconds at 100 Hz, where each costs so much.
    fn samples(cost: impl Fn(u32) -> Duration) -> (u32, Duration) {
        let interval = Duration::from_millis(10);
        let (mut budget, mut time, mut last) = (Budget::new(), Duration::ZERO, Duration::ZERO);
        let (mut spent, mut taken) = (Duration::ZERO, 0);
        while time < Duration::from_secs(10) {
            let pause = budget.spend(time - last, cost(taken));
            last = time;
            (spent, taken) = (spent + cost(taken), taken + 1);
            time += interval.max(pause);
        }
        (taken, spent)
    }

    #[test]
    fn what_is_cheap_is_never_paused_and_what_is_not_takes_a_fifth() {
        assert_eq!(samples(|_| Duration::from_millis(1)).0, 1000);
        // Now and then one may cost a lot.
        assert!(samples(|number| Duration::from_millis(if number % 100 == 50 { 60 } else { 1 })).0 > 990);
        for millis in [3, 10, 80] {
            let (taken, spent) = samples(|_| Duration::from_millis(millis));
            let most = Duration::from_millis(2000 + millis) + MOST_CREDIT;
            assert!(taken < 900 && spent >= Duration::from_secs(2) && spent <= most, "{taken} samples took {spent:?}");
        }
    }
}
