//! Stretches of time that do not overlap, and how much of any other stretch lies in them.

use crate::stats::seek::seek;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spans {
    /// By start; each ends before the next starts.
    all: Vec<(u64, u64)>,
    /// The length of all before each block of them.
    before: Vec<u64>,
}

/// So many are added up for each question; a sum for each would take half as much room as they do.
const BLOCK: usize = 64;

impl Spans {
    /// The union of stretches in any order; empty ones are left out.
    pub fn union(mut all: Vec<(u64, u64)>) -> Spans {
        // Streams come one after the other and each in order: the sort finds those runs.
        all.sort();
        // In place: of millions of kernels, a second list would cost more than joining them.
        let mut joined = 0;
        for place in 0..all.len() {
            let (start, end) = all[place];
            if start >= end {
                continue;
            }
            match all[..joined].last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => {
                    all[joined] = (start, end);
                    joined += 1;
                }
            }
        }
        all.truncate(joined);
        Spans::of(all)
    }

    fn of(all: Vec<(u64, u64)>) -> Spans {
        let mut sum = 0;
        let blocks = all.chunks(BLOCK).map(|block| {
            let before = sum;
            sum += length(block);
            before
        });
        let before = blocks.collect();
        Spans { all, before }
    }

    pub fn all(&self) -> &[(u64, u64)] {
        &self.all
    }

    /// From the start of the first to the end of the last.
    pub fn ends(&self) -> Option<(u64, u64)> {
        Some((self.all.first()?.0, self.all.last()?.1))
    }

    /// How much of a stretch lies in these.
    pub fn overlap(&self, start: u64, end: u64) -> u64 {
        self.overlap_near(&mut 0, start, end)
    }

    /// The same for who asks for one stretch after the other: `near` is where the last one was.
    pub fn overlap_near(&self, near: &mut usize, start: u64, end: u64) -> u64 {
        let mut up_to = |time: u64| {
            seek(&self.all, near, |span| span.0 < time);
            match *near {
                0 => 0,
                place => {
                    let (last, block) = (self.all[place - 1], (place - 1) / BLOCK);
                    self.before[block] + length(&self.all[block * BLOCK..place - 1]) + time.min(last.1) - last.0
                }
            }
        };
        if end <= start {
            return 0;
        }
        let before = up_to(start);
        up_to(end) - before
    }

    /// What is in these and not in the others.
    pub fn minus(&self, others: &Spans) -> Spans {
        let mut left = Vec::new();
        let mut at = 0;
        for (start, end) in &self.all {
            let mut from = *start;
            while others.all.get(at).is_some_and(|other| other.1 <= from) {
                at += 1;
            }
            let mut next = at;
            while let Some((begin, stop)) = others.all.get(next).filter(|other| other.0 < *end) {
                if *begin > from {
                    left.push((from, *begin));
                }
                from = from.max(*stop);
                next += 1;
            }
            if from < *end {
                left.push((from, *end));
            }
        }
        Spans::of(left)
    }
}

fn length(spans: &[(u64, u64)]) -> u64 {
    spans.iter().map(|(start, end)| end - start).sum()
}

/// Joins stretches as they come. Those that come by their starts, as the work of a stream does, are never all kept.
#[derive(Default)]
pub struct Union {
    all: Vec<(u64, u64)>,
    unsorted: bool,
}

impl Union {
    /// Room for so many.
    pub fn with_room(count: usize) -> Union {
        Union { all: Vec::with_capacity(count), unsorted: false }
    }

    #[inline]
    pub fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        match self.all.last_mut() {
            Some(last) if start >= last.0 && start <= last.1 => last.1 = last.1.max(end),
            Some(last) => {
                self.unsorted |= start < last.0;
                self.all.push((start, end));
            }
            None => self.all.push((start, end)),
        }
    }

    pub fn spans(mut self) -> Spans {
        self.all.shrink_to_fit();
        if self.unsorted { Spans::union(self.all) } else { Spans::of(self.all) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_counts_once() {
        let spans = Spans::union(vec![(30, 40), (0, 10), (5, 12), (12, 15), (20, 20), (31, 33)]);
        assert_eq!(spans.all(), [(0, 15), (30, 40)]);
        assert_eq!(
            [(0, 100), (10, 35), (15, 30), (35, 10), (39, u64::MAX)].map(|(a, b)| spans.overlap(a, b)),
            [25, 10, 0, 0, 1]
        );
        assert_eq!(Spans::default().overlap(0, 9), 0);
    }

    #[test]
    fn joined_one_by_one_they_are_the_same_in_any_order() {
        let all: Vec<(u64, u64)> = (0..400u64).map(|at| (at * 37 % 1000, at * 37 % 1000 + at % 13)).collect();
        let of = |all: &[(u64, u64)]| {
            let mut union = Union::default();
            all.iter().for_each(|(start, end)| union.add(*start, *end));
            union.spans()
        };
        let mut sorted = all.clone();
        sorted.sort_unstable();
        let whole = Spans::union(all.clone());
        assert_eq!((of(&all), of(&sorted)), (whole.clone(), whole.clone()));
    }

    #[test]
    fn what_is_left_without_the_others() {
        let of = |all: &[(u64, u64)]| Spans::union(all.to_vec());
        let copies = of(&[(0, 10), (20, 30), (40, 50)]);
        assert_eq!(copies.minus(&of(&[(2, 4), (6, 25), (29, 60)])).all(), [(0, 2), (4, 6), (25, 29)]);
        assert_eq!(copies.minus(&Spans::default()), copies);
    }
}
