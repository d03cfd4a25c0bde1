//! What creating a tensor and copying it takes of every step: the host's time before the copy, in it and after it, as far as samples show the
//! lines that create and move it there.

use super::recorded::Source;
use crate::measures::operators;
use crate::rule::Case;
use analysis::device::gpu::windows_of;
use analysis::place::Place;
use std::collections::HashMap;
use timeline::gpu::detail;
use timeline::{ProcessIndex, SliceKind, StackIndex, TrackIndex};

/// One copy of such a tensor, and the host's time around it: from the call before it, and to the call after it.
pub struct TensorUse {
    pub work: u32,
    /// The slice of its call.
    pub launch: u32,
    pub track: TrackIndex,
    pub before: (u64, u64),
    pub call: (u64, u64),
    pub after: (u64, u64),
}

pub struct Uses {
    pub process: ProcessIndex,
    pub ordinal: u32,
    pub all: Vec<TensorUse>,
    /// The part of the time before and after the copies that has to do with it.
    pub before_part: f64,
    pub after_part: f64,
    /// On average, in a use.
    pub host_ns: f64,
    pub call_ns: f64,
    /// Of each step, and how long that is.
    pub shares: Vec<(f64, f64)>,
}

/// Fewer samples do not tell what part of a stretch is what.
const MIN_SAMPLES: usize = 5;
/// A call takes so long whatever it copies; more than this and its copy is time in which the device had other work.
const CALL_NS: u64 = 20_000;
/// Where most of the time before the copy is spent on other lines, something else is made there.
const MAJORITY: f64 = 0.5;

/// None: there is no such copy in the steps, or its time is of other lines.
pub fn uses(case: &Case, source: &Source) -> Option<Uses> {
    let fits = |copy: &&analysis::device::gpu::moved::Copy| copy.is(detail::H2D) && copy.piece.bytes == source.bytes;
    let moved = case.moved().iter().max_by_key(|moved| moved.all.iter().filter(fits).count())?;
    let windows = windows_of(case, moved.process);
    let (mut all, mut steps) = (Vec::new(), Vec::new());
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for copy in moved.all.iter().filter(fits) {
        let count = counts.entry(copy.window).or_default();
        *count += 1;
        let window = windows.get(copy.window as usize)?;
        if !source.turns.is_empty() && !source.turns.contains(&(*count - 1)) {
            continue;
        }
        let Some(launch) = copy.piece.launch else { continue };
        all.push(around(case, copy.work, launch, window.start, window.end));
        steps.push((copy.window as usize, copy.piece.dur));
    }
    let seen = SampledLines::new(case);
    let mut places = source.places.clone();
    // The line that copies is known from samples in the copy's call.
    let in_calls = all.iter().flat_map(|one| seen.places(one.track, one.call)).cloned();
    in_calls.collect::<Vec<Place>>().into_iter().for_each(|place| {
        if !places.iter().any(|one| same(one, &place)) {
            places.push(place);
        }
    });
    let part = |of: fn(&TensorUse) -> (u64, u64)| {
        let in_it: Vec<bool> = all
            .iter()
            .flat_map(|one| seen.places(one.track, of(one)))
            .map(|place| places.iter().any(|own| same(own, place)))
            .collect();
        let own = in_it.iter().filter(|own| **own).count();
        (in_it.len() >= MIN_SAMPLES).then(|| own as f64 / in_it.len() as f64)
    };
    let (before_part, after_part) = (part(|one| one.before), part(|one| one.after).unwrap_or(0.0));
    let before_part = match (before_part, source.looked_ns) {
        (Some(part), _) if part < MAJORITY && source.looked_ns.is_none() => return None,
        (Some(part), _) => part,
        (None, Some(ns)) => {
            all.iter_mut().for_each(|one| one.before.0 = one.before.0.max(one.before.1.saturating_sub(ns)));
            1.0
        }
        (None, None) => return None,
    };
    let mut shares: Vec<(f64, f64)> = moved.windows.iter().map(|length| (0.0, *length as f64)).collect();
    let (mut host_ns, mut call_ns) = (0.0, 0.0);
    for (one, (window, dur)) in all.iter().zip(&steps) {
        let length = |span: (u64, u64)| span.1.saturating_sub(span.0) as f64;
        let host = before_part * length(one.before) + after_part * length(one.after);
        let call = length(one.call).min(dur.saturating_add(CALL_NS) as f64);
        shares[*window].0 += host + call;
        (host_ns, call_ns) = (host_ns + host, call_ns + call);
    }
    let count = all.len() as f64;
    (count > 0.0).then(|| Uses {
        process: moved.process,
        ordinal: moved.ordinal,
        all,
        before_part,
        after_part,
        host_ns: host_ns / count,
        call_ns: call_ns / count,
        shares,
    })
}

/// The calls that wait for the copy belong to it.
fn around(case: &Case, work: u32, launch: usize, start: u64, end: u64) -> TensorUse {
    let (timeline, slices) = (case.timeline, &case.timeline.slices);
    let track = timeline.tracks.partition_point(|track| track.slices.end <= launch);
    let range = timeline.tracks[track].slices.clone();
    let is_call = |index: &usize| slices.kind(*index) == SliceKind::ApiCall;
    let mut call = (slices.start[launch], slices.get(launch).end());
    // A call of the driver may lie in one of the runtime.
    let mut earlier = (range.start..launch).rev().filter(is_call).map(|index| slices.get(index).end());
    let from = earlier.find(|before| *before <= call.0).unwrap_or(call.0).max(start).min(call.0);
    let mut until = end;
    for index in (launch + 1..range.end).filter(is_call).take_while(|index| slices.start[*index] < end) {
        if !timeline.names.call(slices.get(index).name).waits() {
            until = slices.start[index];
            break;
        }
        call.1 = call.1.max(slices.get(index).end());
    }
    let after = (call.1, until.max(call.1));
    TensorUse { work, launch: launch as u32, track: TrackIndex(track as u32), before: (from, call.0), call, after }
}

fn same(one: &Place, other: &Place) -> bool {
    (&one.file, one.line) == (&other.file, other.line)
}

/// The line outside PyTorch of each sample of the steps, by thread and time.
struct SampledLines {
    by_track: HashMap<TrackIndex, Vec<(u64, Place)>>,
}

impl SampledLines {
    fn new(case: &Case) -> SampledLines {
        let mut known: HashMap<StackIndex, Place> = HashMap::new();
        let mut by_track: HashMap<TrackIndex, Vec<(u64, Place)>> = HashMap::new();
        for one in &case.samples.all {
            let sample = case.sample(one);
            let place = known.entry(sample.stack).or_insert_with(|| {
                operators::outer_line(case, sample.stack).map(|line| case.place(line)).unwrap_or_default()
            });
            by_track.entry(case.track(one)).or_default().push((sample.time, place.clone()));
        }
        by_track.values_mut().for_each(|all| all.sort_by_key(|one| one.0));
        SampledLines { by_track }
    }

    fn places(&self, track: TrackIndex, span: (u64, u64)) -> impl Iterator<Item = &Place> {
        let all = self.by_track.get(&track).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|one| one.0 < span.0);
        all[from..].iter().take_while(move |one| one.0 < span.1).map(|one| &one.1)
    }
}
