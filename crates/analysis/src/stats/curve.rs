//! Curves over the recording: cores in use, memory held, work queued, how long launches take, each in buckets of equal length, with gaps where nothing was
//! measured.

use crate::stats::times::Times;
use std::ops::Range;
use timeline::{Counter, ProcessIndex, Timeline, counters as counter_names};

/// Enough for the widest terminal; a report may join neighbours.
pub const BUCKETS: usize = 240;

#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// None: nothing was measured in this bucket.
    pub buckets: Vec<Option<f64>>,
    pub bucket_ns: u64,
    pub mean: f64,
    pub peak: Peak,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Peak {
    pub value: f64,
    /// After the start of the recording.
    pub at: u64,
}

impl Curve {
    /// What was measured, each bucket at its begin: it holds until the next. `start` is that of the recording.
    pub fn held(&self, start: u64) -> impl Iterator<Item = (u64, f64)> + '_ {
        let at = move |bucket: usize| start.saturating_add((bucket as u64).saturating_mul(self.bucket_ns));
        self.buckets.iter().enumerate().filter_map(move |(bucket, value)| Some((at(bucket), (*value)?)))
    }
}

/// Buckets over the whole recording.
struct Grid {
    start: u64,
    width: u64,
    count: usize,
}

impl Grid {
    fn new(timeline: &Timeline) -> Grid {
        let width = (timeline.duration() / BUCKETS as u64 + 1).max(1);
        Grid { start: timeline.start, width, count: (timeline.duration() / width + 1) as usize }
    }

    /// When a bucket begins and ends.
    fn span(&self, bucket: usize) -> Range<u64> {
        let begin = self.start.saturating_add((bucket as u64).saturating_mul(self.width));
        begin..begin.saturating_add(self.width)
    }

    /// The buckets that a span touches, with how much of it lies in each.
    fn share(&self, from: u64, to: u64, mut each: impl FnMut(usize, u64)) {
        let (from, to) = (from.saturating_sub(self.start), to.saturating_sub(self.start));
        let first = (from / self.width) as usize;
        for bucket in first..self.count.min((to / self.width) as usize + 1) {
            let begin = (bucket as u64).saturating_mul(self.width);
            let inside = to.min(begin.saturating_add(self.width)).saturating_sub(from.max(begin));
            if inside > 0 {
                each(bucket, inside);
            }
        }
    }
}

/// Counters by process, so that many processes with many counters stay linear.
pub struct ByProcess<'a>(Vec<Vec<&'a Counter>>);

impl<'a> ByProcess<'a> {
    pub fn new(timeline: &'a Timeline) -> ByProcess<'a> {
        let mut all = vec![Vec::new(); timeline.processes.len()];
        for counter in &timeline.counters {
            if let Some(process) = counter.process {
                all[process.0 as usize].push(counter);
            }
        }
        ByProcess(all)
    }

    /// A series of the process as a whole.
    pub fn whole(&self, process: ProcessIndex, name: &str) -> Option<&'a Counter> {
        self.0[process.0 as usize].iter().copied().find(|counter| counter.tid.is_none() && &*counter.name == name)
    }

    /// The series that stand for a process's CPU time: its own if there is one, else those of its threads.
    pub fn cpu(&self, process: ProcessIndex) -> Vec<&'a Counter> {
        match self.whole(process, counter_names::CPU_NS) {
            Some(counter) => vec![counter],
            None => self.0[process.0 as usize].iter().copied().filter(|c| &*c.name == counter_names::CPU_NS).collect(),
        }
    }
}

/// A count that only grows, as spans over which it grew: (from, to, by how much). A process that started during the
/// recording had counted nothing before.
pub fn growth(timeline: &Timeline, counter: &Counter) -> Vec<(u64, u64, u64)> {
    let born = counter
        .process
        .and_then(|process| timeline.processes[process.0 as usize].started_ns)
        .filter(|started| *started >= timeline.start && counter.time.first().is_some_and(|first| started <= first));
    let mut last = born.map(|time| (time, 0));
    let mut spans = Vec::new();
    for (time, value) in counter.time.iter().copied().zip(counter.value.iter().copied()) {
        if let Some((before, count)) = last
            && let Ok(grown) = u64::try_from(value.saturating_sub(count))
        {
            spans.push((before, time, grown));
        }
        last = Some((time, value));
    }
    spans
}

pub fn cpu(timeline: &Timeline) -> Option<Curve> {
    let grid = Grid::new(timeline);
    let mut used = vec![0.0f64; grid.count];
    let mut seen = vec![false; grid.count];
    let counters = ByProcess::new(timeline);
    for process in 0..timeline.processes.len() as u32 {
        for counter in counters.cpu(ProcessIndex(process)) {
            for (from, to, grown) in growth(timeline, counter) {
                let length = to.saturating_sub(from).max(1);
                grid.share(from, to, |bucket, inside| {
                    used[bucket] += grown as f64 * inside as f64 / length as f64;
                    seen[bucket] = true;
                });
            }
        }
    }
    let last = timeline.duration() - (grid.count as u64 - 1) * grid.width;
    let width = |bucket: usize| if bucket + 1 == grid.count { last.max(1) } else { grid.width };
    let cores = |bucket: usize| used[bucket] / width(bucket) as f64;
    let buckets: Vec<_> = (0..grid.count).map(|bucket| seen[bucket].then(|| cores(bucket))).collect();
    let mean = used.iter().sum::<f64>() / timeline.duration().max(1) as f64;
    finish(buckets, &grid, mean, None)
}

/// The sum over processes of a size that is read now and then. A process counts from its first reading to its end.
pub fn memory(timeline: &Timeline, name: &str) -> Option<Curve> {
    let mut changes: Vec<(u64, usize, Option<i64>)> = Vec::new();
    let counters = timeline.counters.iter().filter(|c| c.process.is_some() && c.tid.is_none() && &*c.name == name);
    for (series, counter) in counters.enumerate() {
        let readings = counter.time.iter().zip(&counter.value).map(|(time, value)| (*time, series, Some(*value)));
        changes.extend(readings);
        let process = counter.process.map(|process| &timeline.processes[process.0 as usize]);
        let last = counter.time.last().copied().unwrap_or(0);
        changes.push((process.and_then(|process| process.ended_ns).unwrap_or(last).max(last), series, None));
    }
    // An end comes after a reading of the same moment.
    changes.sort_by_key(|(time, series, value)| (*time, value.is_none(), *series));
    let grid = Grid::new(timeline);
    let mut buckets: Vec<Option<f64>> = vec![None; grid.count];
    let mut current: Vec<i64> = vec![0; timeline.counters.len()];
    let (mut sum, mut living, mut peak) = (0i64, 0usize, Peak { value: 0.0, at: 0 });
    let mut alive = vec![false; timeline.counters.len()];
    let (mut area, mut covered) = (0.0, 0u64);
    for (place, (time, series, value)) in changes.iter().enumerate() {
        living =
            living + usize::from(value.is_some() && !alive[*series]) - usize::from(value.is_none() && alive[*series]);
        alive[*series] = value.is_some();
        sum = sum.saturating_sub(current[*series]).saturating_add(value.unwrap_or(0));
        current[*series] = value.unwrap_or(0);
        if sum as f64 > peak.value {
            peak = Peak { value: sum as f64, at: time.saturating_sub(timeline.start) };
        }
        let until = changes.get(place + 1).map_or(*time, |next| next.0);
        if living > 0 {
            area += sum as f64 * (until - time) as f64;
            covered += until - time;
            grid.share(*time, until.max(time + 1), |bucket, _| {
                buckets[bucket] = Some(buckets[bucket].unwrap_or(0.0).max(sum as f64));
            });
        }
    }
    let mean = if covered > 0 { area / covered as f64 } else { peak.value };
    finish(buckets, &grid, mean, Some(peak))
}

/// How many things are begun and not ended, from the sorted times of both: the highest of each bucket, and of all.
pub fn level(
    timeline: &Timeline,
    begun: impl Iterator<Item = u64>,
    ended: impl Iterator<Item = u64>,
) -> Option<(Curve, u64)> {
    let grid = Grid::new(timeline);
    let mut buckets = vec![Some(0.0f64); grid.count];
    let (mut level, mut highest, mut area) = (0i64, 0i64, 0.0);
    let mut peak = Peak { value: 0.0, at: 0 };
    let (mut begins, mut ends) = (begun.fuse(), ended.fuse());
    let (mut begin, mut end) = (begins.next(), ends.next());
    // The bucket of the last stretch, with its begin and end: mostly that of the next too, and then nothing is divided.
    let (mut last, mut from, mut to) = (0, u64::MAX, 0);
    loop {
        // What ends when another begins has ended.
        let time = match (begin, end) {
            (None, None) => break,
            (Some(time), other) if other.is_none_or(|other| time < other) => {
                (level, begin) = (level + 1, begins.next());
                time
            }
            (_, other) => {
                (level, end) = (level - 1, ends.next());
                other?
            }
        };
        if level > highest {
            highest = level;
            peak = Peak { value: level as f64, at: time.saturating_sub(timeline.start) };
        }
        let until = begin.into_iter().chain(end).min().unwrap_or(time);
        if level > 0 && until > time {
            area += level as f64 * (until - time) as f64;
            let most = level as f64;
            if from <= time && until <= to {
                buckets[last] = buckets[last].map(|before| before.max(most));
                continue;
            }
            grid.share(time, until, |bucket, _| {
                buckets[bucket] = buckets[bucket].map(|before| before.max(most));
                last = bucket;
                Range { start: from, end: to } = grid.span(bucket);
            });
        }
    }
    let highest = peak.value as u64;
    Some((finish(buckets, &grid, area / timeline.duration().max(1) as f64, Some(peak))?, highest))
}

/// Times by the moment at which they began: the median of each bucket, and all of them together. None: there are none. `began` need not
/// be in order, but is fastest where neighbours are near each other.
pub fn medians(timeline: &Timeline, began: impl Iterator<Item = (u64, u64)>) -> Option<(Curve, Times)> {
    let grid = Grid::new(timeline);
    let mut times: Vec<Times> = vec![Times::default(); grid.count];
    let mut peak = Peak { value: -1.0, at: 0 };
    // The bucket of the last: mostly that of the next too, and then nothing is divided.
    let (mut last, mut span) = (0, grid.span(0));
    for (at, time) in began {
        if !span.contains(&at) {
            last = ((at.saturating_sub(grid.start) / grid.width) as usize).min(grid.count - 1);
            span = grid.span(last);
        }
        times[last].push(time);
        if time as f64 > peak.value {
            peak = Peak { value: time as f64, at: at.saturating_sub(timeline.start) };
        }
    }
    let (mut all, mut buckets) = (Times::default(), Vec::with_capacity(grid.count));
    for mut times in times {
        buckets.push((times.count() > 0).then(|| times.percentile(50) as f64));
        all.append(times);
    }
    let mean = all.total() as f64 / all.count().max(1) as f64;
    Some((finish(buckets, &grid, mean, Some(peak))?, all))
}

fn finish(buckets: Vec<Option<f64>>, grid: &Grid, mean: f64, peak: Option<Peak>) -> Option<Curve> {
    let highest = buckets.iter().enumerate().filter_map(|(bucket, value)| value.map(|value| (bucket, value)));
    let (bucket, value) = highest.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let peak = peak.unwrap_or(Peak { value, at: bucket as u64 * grid.width });
    Some(Curve { buckets, bucket_ns: grid.width, mean, peak })
}
