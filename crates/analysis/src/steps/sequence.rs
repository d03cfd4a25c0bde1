//! Steps of a program that marks none, from what it asks of a device: the same sequence of kernels again and again. A step runs
//! from the launch of the first kernel of a period to that of the next. How periods are found stands in `periods`.

use super::Step;
use super::periods::{self, Period, Token};
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, Timeline, TrackIndex};

/// What `--step` calls it, and what reports call the source.
pub const NAME: &str = "kernel-sequence";

/// Fewer whole ones are no rhythm.
const FEWEST: usize = 3;

#[derive(Debug)]
pub struct Found {
    pub steps: Vec<Step>,
    /// Launches of a usual period.
    pub launches: usize,
    /// How much of a period is in the usual one too, on average, 0 to 1.
    pub alike: f64,
    pub confidence: f64,
    /// Begun, but the recording ended.
    pub unfinished: u64,
}

/// What repeats, and how often.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Repeats {
    /// Of a usual period.
    pub launches: u64,
    pub times: u64,
    /// 0 to 1.
    pub alike: f64,
}

impl Found {
    pub fn repeats(&self) -> Repeats {
        Repeats { launches: self.launches as u64, times: self.steps.len() as u64, alike: self.alike }
    }
}

/// None: no sequence repeats well enough to be called steps.
pub fn find(timeline: &Timeline) -> Option<Found> {
    let threads = if timeline.gpu.work.linked().is_empty() { streams(timeline) } else { threads(timeline) };
    let mut best: HashMap<u32, (TrackIndex, &[Token], Period)> = HashMap::new();
    for (track, tokens) in &threads {
        let Some(period) = periods::find(tokens) else { continue };
        let process = timeline.tracks[track.0 as usize].process.0;
        let better = |other: &Period| period.confidence > other.confidence;
        if best.get(&process).is_none_or(|(_, _, other)| better(other)) {
            best.insert(process, (*track, tokens, period));
        }
    }
    let mut all: Vec<_> = best.into_values().collect();
    all.sort_by_key(|(track, _, _)| *track);
    let (_, _, first) = all.iter().max_by(|a, b| a.2.confidence.total_cmp(&b.2.confidence))?;
    let (launches, alike, confidence) = (first.length, first.alike, first.confidence);
    let mut found = Found { steps: Vec::new(), launches, alike, confidence, unfinished: 0 };
    for (track, tokens, period) in &all {
        steps(timeline, *track, tokens, period, &mut found);
    }
    (found.steps.len() >= FEWEST).then_some(found)
}

fn steps(timeline: &Timeline, track: TrackIndex, tokens: &[Token], period: &Period, found: &mut Found) {
    let step = |start: u64, end: u64| Step { track, start, end, index: 0, warmup: false, outlier: false };
    let starts = |place: usize| tokens[period.starts[place]].start;
    for place in 1..period.starts.len() {
        found.steps.push(step(starts(place - 1), starts(place)));
    }
    // The last is whole where as much follows as usual, up to the odd launch.
    let Some(last) = period.starts.last() else { return };
    let rest = &tokens[*last..tokens.len().min(last + period.length)];
    if 10 * rest.len() < 9 * period.length {
        found.unfinished += 1;
        return;
    }
    let ends = |token: &Token| {
        let work = &timeline.gpu.work;
        let ended = work.of_launch(token.slice as usize).iter().map(|index| work.end(*index as usize)).max();
        token.end.max(ended.unwrap_or(0))
    };
    let end = rest.iter().map(ends).max().unwrap_or(0).min(timeline.end);
    found.steps.push(step(starts(period.starts.len() - 1), end));
}

/// Where no launch was recorded: what each stream did, as if its process had launched each piece when it began.
fn streams(timeline: &Timeline) -> Vec<(TrackIndex, Vec<Token>)> {
    let work = &timeline.gpu.work;
    let mut ids: HashMap<(u32, u32), u32> = HashMap::new();
    let mut all = Vec::new();
    for stream in &timeline.gpu.streams {
        let Some(track) = timeline.tracks.iter().position(|track| track.process == stream.process) else { continue };
        let mut tokens = Vec::with_capacity(stream.work.len());
        for index in stream.work.clone().filter(|index| work.kind(*index).is_busy()) {
            let next = ids.len() as u32;
            let id = *ids.entry((work.name[index], work.more(index).detail & 0xff)).or_insert(next);
            let (start, end) = (work.start[index], work.end(index));
            tokens.push(Token { id, start, end, slice: u32::MAX, waited: 0, weight: 1 });
        }
        if tokens.len() >= periods::FEWEST {
            all.push((TrackIndex(track as u32), tokens));
        }
    }
    all
}

/// What each thread asked devices for, in its order. Threads with little to say are left out.
fn threads(timeline: &Timeline) -> Vec<(TrackIndex, Vec<Token>)> {
    let (work, slices) = (&timeline.gpu.work, &timeline.slices);
    let waits: Vec<bool> =
        (0..timeline.names.len() as u32).map(|name| timeline.names.call(NameIndex(name)).waits()).collect();
    let mut ids: HashMap<(u32, u32, u32), u32> = HashMap::new();
    let launch = |index: &u32| work.launch(*index as usize);
    let mut launched = work.linked().chunk_by(|a, b| launch(a) == launch(b)).peekable();
    let mut all = Vec::new();
    for (number, track) in timeline.tracks.iter().enumerate() {
        let (mut tokens, mut waited) = (Vec::new(), 0u64);
        let mut passed = track.slices.start;
        while let Some(pieces) = launched.next_if(|pieces| launch(&pieces[0]).is_some_and(|at| at < track.slices.end)) {
            let Some(slice) = launch(&pieces[0]) else { continue };
            let Some(first) = pieces.iter().find(|piece| work.kind(**piece as usize).is_busy()) else { continue };
            for index in passed..slice {
                if slices.kind(index) == SliceKind::ApiCall && waits[slices.name[index] as usize] {
                    waited = waited.saturating_add(slices.dur[index]);
                }
            }
            passed = slice;
            // A graph is one thing however many nodes it has; copies differ by what they copy to what.
            let more = work.more(*first as usize);
            let next = ids.len() as u32;
            let id = *ids.entry((work.name[*first as usize], more.graph, more.detail & 0xff)).or_insert(next);
            let start = slices.start[slice];
            let end = start.saturating_add(slices.dur[slice]);
            tokens.push(Token { id, start, end, slice: slice as u32, waited, weight: pieces.len() as u32 });
        }
        if tokens.len() >= periods::FEWEST {
            all.push((TrackIndex(number as u32), tokens));
        }
    }
    all
}
