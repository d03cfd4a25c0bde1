//! Counters inside the steps: how much of what a counter grew by between two readings falls into the steps. Readings are
//! rarer than steps, so beside the estimate stand the bounds that hold wherever in between it grew.

use crate::stats::curve::growth;
use crate::stats::share::Tally;
use crate::steps::windows::StepSpans;
use std::collections::HashMap;
use timeline::{Counter, ProcessIndex, Timeline, TrackIndex};

/// Finds the counters of the threads and processes that have steps.
pub struct Readings<'a> {
    timeline: &'a Timeline,
    by_owner: HashMap<(Option<ProcessIndex>, Option<i32>), Vec<&'a Counter>>,
}

/// What a counter did inside the steps.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// One stretch between two readings each: the growth inside the steps, and the time inside the steps.
    pub tally: Tally,
    /// No less and no more can have fallen into the steps.
    pub low: f64,
    pub high: f64,
    /// The stretches with the most growth: start, end, growth.
    pub most: Vec<(u64, u64, u64)>,
}

/// How growth spreads over the time between two readings.
pub enum Nature<'a> {
    /// A count, as likely at one moment as at another.
    Count,
    /// Nanoseconds, at most as many as passed, spread by a weight of one's own (None: evenly).
    Time(&'a dyn Fn(u64, u64) -> Option<f64>),
    /// Microseconds, at most as many as passed, spread evenly.
    Micros,
}

/// Evidence names so many stretches.
const MOST: usize = 3;

impl<'a> Readings<'a> {
    pub fn new(timeline: &'a Timeline, windows: &StepSpans) -> Readings<'a> {
        let mut by_owner: HashMap<_, Vec<&Counter>> = HashMap::from([((None, None), Vec::new())]);
        for (track, _) in windows.tracks() {
            let track = &timeline.tracks[track.0 as usize];
            by_owner.insert((Some(track.process), Some(track.tid)), Vec::new());
            by_owner.insert((Some(track.process), None), Vec::new());
        }
        for counter in &timeline.counters {
            if let Some(mine) = by_owner.get_mut(&(counter.process, counter.tid)) {
                mine.push(counter);
            }
        }
        Readings { timeline, by_owner }
    }

    /// A counter is written when it changes: after its last reading it did not, as far as it was read.
    fn rest(&self, counter: &Counter) -> Option<(u64, u64, u64)> {
        let last = *counter.time.last()?;
        let process = counter.process.and_then(|process| self.timeline.processes.get(process.0 as usize));
        let end = process.and_then(|process| process.ended_ns).unwrap_or(self.timeline.end);
        (end > last).then_some((last, end, 0))
    }

    fn find(&self, process: Option<ProcessIndex>, tid: Option<i32>, name: &str) -> Option<&'a Counter> {
        self.by_owner.get(&(process, tid))?.iter().copied().find(|counter| &*counter.name == name)
    }

    pub fn thread(&self, track: TrackIndex, name: &str) -> Option<&'a Counter> {
        let track = self.timeline.tracks.get(track.0 as usize)?;
        self.find(Some(track.process), Some(track.tid), name)
    }

    pub fn process(&self, process: ProcessIndex, name: &str) -> Option<&'a Counter> {
        self.find(Some(process), None, name)
    }

    pub fn host(&self, name: &str) -> Option<&'a Counter> {
        self.find(None, None, name)
    }

    pub fn of_process(&self, process: ProcessIndex) -> &[&'a Counter] {
        self.by_owner.get(&(Some(process), None)).map_or(&[], Vec::as_slice)
    }

    /// Growth inside the windows of `track`. None: it was not read while a step was open.
    pub fn inside(&self, counter: &Counter, windows: &StepSpans, track: TrackIndex, nature: &Nature) -> Option<Growth> {
        let mut sum = Growth::default();
        for (start, end, grown) in growth(self.timeline, counter).into_iter().chain(self.rest(counter)) {
            let length = end.saturating_sub(start);
            let inside = windows.overlap(track, start, end);
            if length == 0 || inside == 0 {
                continue;
            }
            let even = inside as f64 / length as f64;
            let (grown, low, high, share) = match nature {
                Nature::Count => (grown, if inside == length { grown } else { 0 }, grown, even),
                Nature::Time(weight) => {
                    let grown = grown.min(length);
                    let low = grown.saturating_sub(length - inside);
                    (grown, low, grown.min(inside), weight(start, end).unwrap_or(even))
                }
                Nature::Micros => {
                    let grown = grown.saturating_mul(1000).min(length);
                    (grown, grown.saturating_sub(length - inside), grown.min(inside), even)
                }
            };
            let mid = (grown as f64 * share).clamp(low as f64, high as f64);
            sum.tally.add(mid, inside as f64);
            sum.low += low as f64;
            sum.high += high as f64;
            if grown > 0 {
                sum.most.push((start, end, grown));
                if sum.most.len() > 64 {
                    sum.keep_most();
                }
            }
        }
        sum.keep_most();
        (sum.tally.stretches > 0).then_some(sum)
    }
}

impl Growth {
    fn keep_most(&mut self) {
        self.most.sort_by_key(|(start, _, grown)| (u64::MAX - grown, *start));
        self.most.truncate(MOST);
    }

    pub fn join(&mut self, other: &Growth) {
        self.tally.join(&other.tally);
        self.low += other.low;
        self.high += other.high;
        self.most.extend(&other.most);
        self.keep_most();
    }
}
