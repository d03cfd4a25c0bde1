//! How well a way of cutting a recording into steps explains it, as one number between 0 and 1: the product of
//!
//! - **what it explains**: the share of kernel time that is launched inside, and of the time in which its threads run or another thread holds them up. Both count, and
//!   the weaker counts most (the geometric mean): a range around the data loader has half of the thread and none of the kernels, one
//!   of a library has the kernels and none of the thread. Where neither was recorded, the share of its threads' time stands in;
//! - **regularity**: how often it comes, `n / (n + 1)`, and how much alike its durations are, `1 / √(1 + s)`, where `s` is the standard
//!   deviation of their logarithms. Requests differ by a factor of two and more and still are steps, hence the root;
//! - **nesting**: half, where it lies inside another that repeats: a part of a step explains the step's kernels as well as the step
//!   does, and the outermost that repeats is what is waited for;
//! - **gaps**: `(1 + r) / 2`, where `r` is the share of kernel time that *runs* inside. A call that only launches returns before its
//!   kernels have run; the turn of the loop that waits for them is the step. Half, and not all of it: a program that waits once, at its
//!   end, has steps too.

use super::evidence::Inside;
use super::reason::Holds;

/// Fewer samples in which its threads run say nothing about where they run: as many as the rules ask for.
const ENOUGH_SAMPLES: u64 = 20;

/// What is summed up of a candidate.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub count: u64,
    /// Of these, those inside another candidate.
    pub nested: u64,
    /// What overlaps on a thread counts once.
    pub time: u64,
    pub inside: Inside,
    /// What its threads have, from the first of any candidate on.
    pub thread_time: u64,
    pub thread_active: u64,
    /// All kernels of the recording.
    pub kernels: u64,
    mean: f64,
    squares: f64,
}

impl Measured {
    /// One more; `new` is how much of it lies outside of those before it on its thread.
    pub fn add(&mut self, dur: u64, new: u64, inside: Inside) {
        self.count += 1;
        self.time = self.time.saturating_add(new);
        self.include(inside);
        // Welford's running mean and sum of squares.
        let log = (dur.max(1) as f64).ln();
        let off = log - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (log - self.mean);
    }

    fn include(&mut self, inside: Inside) {
        self.inside.active += inside.active;
        self.inside.launched = self.inside.launched.saturating_add(inside.launched);
        self.inside.ran = self.inside.ran.saturating_add(inside.ran);
    }

    /// Both together, as if measured at once.
    pub fn join(&mut self, other: &Measured) {
        let (count, off) = ((self.count + other.count) as f64, other.mean - self.mean);
        if other.count > 0 {
            self.squares += other.squares + off * off * self.count as f64 * other.count as f64 / count;
            self.mean += off * other.count as f64 / count;
        }
        self.count += other.count;
        self.nested += other.nested;
        self.time = self.time.saturating_add(other.time);
        self.include(other.inside);
    }

    /// The share of all kernel time that is launched inside. None: there are no kernels.
    pub fn of_kernels(&self) -> Option<f64> {
        share(self.inside.launched, self.kernels)
    }

    /// The share of the time in which its threads run. None: too few samples.
    pub fn of_running(&self) -> Option<f64> {
        share(self.inside.active, self.thread_active).filter(|_| self.thread_active >= ENOUGH_SAMPLES)
    }

    pub fn of_time(&self) -> f64 {
        share(self.time, self.thread_time).unwrap_or(0.0)
    }

    pub fn holds(&self) -> Holds {
        Holds { kernels: self.of_kernels(), running: self.of_running(), time: self.of_time() }
    }

    /// What it explains. None: nothing was recorded that could lie outside.
    pub fn explained(&self) -> Option<f64> {
        match (self.of_kernels(), self.of_running()) {
            (Some(kernels), Some(running)) => Some((kernels * running).sqrt()),
            (one, other) => one.or(other),
        }
    }

    /// The same, with the share of time where nothing else is known.
    pub fn share(&self) -> f64 {
        self.explained().unwrap_or_else(|| self.of_time())
    }

    pub fn is_part(&self) -> bool {
        2 * self.nested > self.count
    }

    pub fn score(&self) -> f64 {
        self.share() * self.regularity() * self.nesting() * self.gaps()
    }

    fn regularity(&self) -> f64 {
        let count = self.count as f64;
        let deviation = (self.squares / count.max(1.0)).max(0.0).sqrt();
        count / (count + 1.0) / (1.0 + deviation).sqrt()
    }

    fn nesting(&self) -> f64 {
        1.0 - 0.5 * self.nested as f64 / self.count.max(1) as f64
    }

    fn gaps(&self) -> f64 {
        share(self.inside.ran, self.kernels).map_or(1.0, |ran| (1.0 + ran) / 2.0)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    // Threads whose steps overlap count what is launched meanwhile once each.
    (whole > 0).then(|| (part as f64 / whole as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(durations: &[u64]) -> Measured {
        let mut all = Measured { thread_time: 1000, ..Measured::default() };
        durations.iter().for_each(|dur| all.add(*dur, *dur, Inside::default()));
        all
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn what_is_explained_is_of_kernels_and_of_the_running_thread() {
        let mut one = Measured { time: 300, thread_time: 1000, ..Measured::default() };
        assert_eq!((one.explained(), one.share()), (None, 0.3));
        one.inside = Inside { active: 50, launched: 90, ran: 40 };
        (one.thread_active, one.kernels) = (200, 0);
        assert_eq!(one.explained(), Some(0.25));
        one.kernels = 100;
        assert!(near(one.explained().unwrap(), (0.9f64 * 0.25).sqrt()));
        one.thread_active = ENOUGH_SAMPLES - 1;
        assert_eq!(one.explained(), Some(0.9));
        one.kernels = 10;
        assert_eq!((one.of_kernels(), one.gaps()), (Some(1.0), 1.0), "never more than all");
        one.kernels = 80;
        assert!(near(one.gaps(), 0.75));
    }

    #[test]
    fn many_that_are_alike_are_more_regular() {
        assert!(near(measured(&[100; 3]).regularity(), 0.75));
        assert!(near(measured(&[100; 9]).regularity(), 0.9));
        // Logarithms of 1 and e²: one to either side of their mean.
        let apart = measured(&[1_000_000, 7_389_056, 1_000_000, 7_389_056]);
        assert!((apart.regularity() - 0.8 / 2f64.sqrt()).abs() < 1e-6, "{}", apart.regularity());
    }

    #[test]
    fn parts_of_another_count_half() {
        let mut one = measured(&[100; 4]);
        assert!(near(one.score(), 0.4 * 0.8) && !one.is_part());
        one.nested = 2;
        assert!(near(one.score(), 0.4 * 0.8 * 0.75) && !one.is_part());
        one.nested = 4;
        assert!(near(one.score(), 0.4 * 0.8 * 0.5) && one.is_part());
    }

    #[test]
    fn two_that_are_joined_are_as_measured_at_once() {
        let (mut one, other) = (measured(&[100, 200, 50]), measured(&[400, 30]));
        let whole = measured(&[100, 200, 50, 400, 30]);
        one.join(&other);
        assert!(near(one.regularity(), whole.regularity()) && one.time == whole.time && one.count == 5);
        one.join(&Measured::default());
        assert!(near(one.regularity(), whole.regularity()));
        let mut none = Measured::default();
        none.join(&whole);
        assert!(near(none.regularity(), whole.regularity()));
    }
}
