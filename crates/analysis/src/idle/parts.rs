//! Where the gaps of a device are, and how they are cut into parts that follow each other, each for a thread of its own. The cuts
//! may lie inside a window, for a recording may have few of them.

use super::busy::Busy;
use crate::stats::seek::further;
use crate::steps::windows::Window;
use std::ops::Range;
use timeline::parallel::{self, Task};

/// Some gaps of a device, by their numbers. A window has a gap in front of each of its spans, and one after the last; one of no
/// length has a number, too.
pub type Part = Range<usize>;

pub struct Inside {
    /// The spans of the device that lie in each window, or reach into it.
    spans: Vec<Range<usize>>,
    /// The number of the first gap of each window, and of all gaps at the end.
    first: Vec<usize>,
    /// Of each window: its start, its first work, the end of its last work, its end.
    pub zones: Vec<[u64; 4]>,
}

/// Fewer gaps than this are done before a thread has started.
const WORTH_A_PART: usize = 10_000;
/// So many windows are found among the spans by one thread.
const WINDOWS_EACH: usize = 8_192;
/// More than there are cores, for one part takes longer than another; the same on every machine.
const MOST: usize = 64;

impl Inside {
    /// Both are by time, and none of either overlap. `parts`: of the windows; None: as many as they are worth.
    pub fn new(windows: &[Window], spans: &[Busy], parts: Option<usize>) -> Inside {
        let each = parts.map_or(WINDOWS_EACH, |parts| windows.len().div_ceil(parts).max(1));
        let (mut inside, mut zones) = (vec![0..0; windows.len()], vec![[0; 4]; windows.len()]);
        let found = inside.chunks_mut(each).zip(zones.chunks_mut(each));
        let tasks = windows.chunks(each).zip(found).map(|(windows, (inside, zones))| {
            Box::new(move || {
                let mut next = 0;
                for (window, (inside, zone)) in windows.iter().zip(inside.iter_mut().zip(zones)) {
                    next = further(spans, next, |span| span.1 <= window.start);
                    *inside = next..further(spans, next, |span| span.0 < window.end);
                    *zone = zones_of(window, &spans[inside.clone()]);
                }
            }) as Task
        });
        parallel::run(spans.len(), tasks.collect(), || ());
        Inside { zones, ..Inside::of(inside) }
    }

    fn of(spans: Vec<Range<usize>>) -> Inside {
        let mut count = 0;
        let mut first = vec![0];
        first.extend(spans.iter().map(|spans| {
            count += spans.len() + 1;
            count
        }));
        Inside { spans, first, zones: Vec::new() }
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

fn zones_of(window: &Window, spans: &[Busy]) -> [u64; 4] {
    let [first, last] = match spans {
        [] => [window.end; 2],
        all => [all[0].0.max(window.start), all[all.len() - 1].1.min(window.end)],
    };
    [window.start, first, last, window.end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gap_is_in_one_part_in_order_however_many_there_are() {
        // The ends of the spans of each window, from start to end.
        let some: [&[(usize, usize)]; 6] =
            [&[], &[(0, 0)], &[(3, 9)], &[(0, 2), (2, 2), (2, 40), (39, 41)], &[(5, 5); 9], &[(0, 100)]];
        for ends in some {
            let inside = Inside::of(ends.iter().map(|(start, end)| *start..*end).collect());
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
