//! Where the gaps of a device are, and how they are cut into parts that follow each other, each for a thread of its own. The cuts
//! may lie inside a window, for a recording may have few of them.

use super::busy::Busy;
use super::near::further;
use crate::windows::Window;
use std::ops::Range;

/// Some gaps of a device, by their numbers. A window has a gap in front of each of its spans, and one after the last; one of no
/// length has a number, too.
pub type Part = Range<usize>;

pub struct Inside {
    /// The spans of the device that lie in each window, or reach into it.
    spans: Vec<Range<usize>>,
    /// The number of the first gap of each window, and of all gaps at the end.
    first: Vec<usize>,
}

/// Fewer gaps than this are done before a thread has started.
const WORTH_A_PART: usize = 10_000;
/// More than there are cores, for one part takes longer than another; the same on every machine.
const MOST: usize = 64;

impl Inside {
    /// Both are by time, and none of either overlap.
    pub fn new(windows: &[Window], spans: &[Busy]) -> Inside {
        let mut next = 0;
        let inside = |window: &Window| {
            next = further(spans, next, |span| span.1 <= window.start);
            next..further(spans, next, |span| span.0 < window.end)
        };
        Inside::of(windows.iter().map(inside).collect())
    }

    fn of(spans: Vec<Range<usize>>) -> Inside {
        let mut count = 0;
        let mut first = vec![0];
        first.extend(spans.iter().map(|spans| {
            count += spans.len() + 1;
            count
        }));
        Inside { spans, first }
    }

    /// The spans of a window.
    pub fn spans(&self, window: usize) -> Range<usize> {
        self.spans[window].clone()
    }

    /// How many parts the gaps are worth.
    pub fn worth(&self) -> usize {
        (self.gaps() / WORTH_A_PART).clamp(1, MOST)
    }

    /// So many parts, or fewer, with as many gaps each; the last may have less.
    pub fn cut(&self, parts: usize) -> Vec<Part> {
        let each = self.gaps().div_ceil(parts).max(1);
        (0..self.gaps()).step_by(each).map(|from| from..self.gaps().min(from + each)).collect()
    }

    /// The windows of a part, each with the spans in front of which its gaps are. One more than the window has: after the last.
    pub fn windows(&self, part: &Part) -> impl Iterator<Item = (usize, Range<usize>)> {
        let Range { start, end } = *part;
        let from = self.first.partition_point(|first| *first <= start).saturating_sub(1);
        let each = self.spans.iter().enumerate().skip(from).zip(self.first[from..].windows(2));
        each.take_while(move |(_, first)| first[0] < end).map(move |((place, spans), first)| {
            let [from, to] = [start.max(first[0]), end.min(first[1])].map(|gap| spans.start + gap - first[0]);
            (place, from..to)
        })
    }

    fn gaps(&self) -> usize {
        self.first.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gap_is_in_one_part_in_order_however_many_there_are() {
        let some = [vec![], vec![0..0], vec![3..9], vec![0..2, 2..2, 2..40, 39..41], vec![5..5; 9], vec![0..100]];
        for inside in some.map(Inside::of) {
            let spans = inside.spans.iter().cloned().enumerate();
            let all: Vec<(usize, usize)> =
                spans.flat_map(|(place, spans)| (spans.start..=spans.end).map(move |gap| (place, gap))).collect();
            for count in [1, 2, 3, 7, 16, 200] {
                let parts = inside.cut(count);
                assert!(parts.len() <= count);
                let windows = parts.iter().flat_map(|part| inside.windows(part));
                let walked: Vec<(usize, usize)> =
                    windows.flat_map(|(place, gaps)| gaps.map(move |gap| (place, gap))).collect();
                assert_eq!(walked, all, "in {count}");
            }
        }
    }
}
