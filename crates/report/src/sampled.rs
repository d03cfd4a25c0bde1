//! What samples stand for: each for the time until the next one, unless that is so far away that samples are missing.
//! Every export weighs samples by this, so that they agree.

use timeline::{Sample, StackIndex, Timeline, Track};

/// A sample and the time it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub sample: Sample,
    pub end: u64,
}

impl Extent {
    pub fn dur(&self) -> u64 {
        self.end - self.sample.time
    }
}

/// Time from one sample to the next as the recording was set; where that is not known, the mean seen on this track; 0 for
/// a lone sample of an unknown rate.
pub fn interval(timeline: &Timeline, track: &Track) -> u64 {
    match timeline.info.settings.rate_hz {
        Some(rate) if rate > 0.0 => (1e9 / rate) as u64,
        _ => {
            let times = &timeline.samples.time[track.samples.clone()];
            match times {
                [first, .., last] => last.saturating_sub(*first) / (times.len() as u64 - 1),
                _ => 0,
            }
        }
    }
}

/// The samples of a track in order of time. A sampler is late now and then, so a gap of up to two intervals belongs to the
/// sample before it; after a longer one nobody knows, and the sample stands for one interval.
pub fn extents<'a>(timeline: &'a Timeline, track: &Track) -> impl Iterator<Item = Extent> + 'a {
    let interval = interval(timeline, track);
    let range = track.samples.clone();
    range.clone().map(move |index| {
        let sample = timeline.samples.get(index);
        let whole = sample.time.saturating_add(interval);
        let next = if index + 1 < range.end { timeline.samples.time[index + 1] } else { whole };
        let end = if next - sample.time > interval.saturating_mul(2) { whole } else { next };
        Extent { sample, end }
    })
}

/// Samples in a row that saw the same; `seen` is the first of them, or None for a time without samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    pub start: u64,
    pub end: u64,
    pub seen: Option<Sample>,
}

/// The samples of a track and the holes between them, without a gap from the start of the recording to the last sample.
pub fn runs<'a>(timeline: &'a Timeline, track: &Track) -> impl Iterator<Item = Run> + 'a {
    let mut extents = extents(timeline, track).peekable();
    let mut at = timeline.start;
    std::iter::from_fn(move || {
        let first = *extents.peek()?;
        if first.sample.time > at {
            let hole = Run { start: at, end: first.sample.time, seen: None };
            at = hole.end;
            return Some(hole);
        }
        let mut run = Run { start: first.sample.time, end: first.sample.time, seen: Some(first.sample) };
        let same = |extent: &Extent, end| {
            Sample { time: first.sample.time, ..extent.sample } == first.sample && extent.sample.time <= end
        };
        while let Some(extent) = extents.next_if(|extent| same(extent, run.end)) {
            run.end = extent.end;
        }
        at = run.end;
        Some(run)
    })
}

/// Replaces `frames` by those of a stack, root first.
pub fn root_first(timeline: &Timeline, leaf: StackIndex, frames: &mut Vec<timeline::Frame>) {
    frames.clear();
    frames.extend(timeline.stacks.walk(leaf).map(|(_, frame)| frame));
    frames.reverse();
}
