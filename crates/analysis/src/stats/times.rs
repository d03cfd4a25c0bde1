//! Many durations, of which percentiles are wanted: half as large as they could be, and never sorted.

/// Nearly all fit into 32 bits, which is four seconds; the rest are kept beside them.
#[derive(Clone, Debug, Default)]
pub struct Times {
    short: Vec<u32>,
    long: Vec<u64>,
}

impl Times {
    pub fn push(&mut self, time: u64) {
        match u32::try_from(time) {
            Ok(time) => self.short.push(time),
            Err(_) => self.long.push(time),
        }
    }

    pub fn append(&mut self, mut other: Times) {
        self.short.append(&mut other.short);
        self.long.append(&mut other.long);
    }

    pub fn count(&self) -> usize {
        self.short.len() + self.long.len()
    }

    pub fn total(&self) -> u64 {
        let short: u64 = self.short.iter().map(|time| u64::from(*time)).sum();
        self.long.iter().fold(short, |sum, time| sum.saturating_add(*time))
    }

    /// The smallest that `percent` of them do not exceed; 0 where there are none.
    pub fn percentile(&mut self, percent: usize) -> u64 {
        let place = (self.count() * percent).div_ceil(100).saturating_sub(1);
        match place.checked_sub(self.short.len()) {
            None => u64::from(*self.short.select_nth_unstable(place).1),
            Some(place) if place < self.long.len() => *self.long.select_nth_unstable(place).1,
            Some(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::percentile;
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let all: Vec<u64> = (0..1000u64).map(|number| number * 7_919 % 1000 * 10_000_000).collect();
        for count in [0, 1, 2, 3, 429, 430, 431, 1000] {
            let mut times = Times::default();
            all[..count].iter().for_each(|time| times.push(*time));
            let mut sorted = all[..count].to_vec();
            sorted.sort_unstable();
            for percent in [0, 1, 50, 95, 100] {
                assert_eq!(times.percentile(percent), percentile(&sorted, percent), "{count} {percent}");
            }
            assert_eq!((times.count(), times.total()), (count, sorted.iter().sum()));
        }
    }
}
