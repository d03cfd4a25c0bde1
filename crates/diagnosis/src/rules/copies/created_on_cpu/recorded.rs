//! Tensors that a recording of ours shows to be created on the CPU and then copied to the GPU: by the values of operators where a look covers
//! both, else by samples of PyTorch's own code that fills memory, with that copy as the next work of the thread.

use super::stretches::{TensorUse, uses};
use super::{CODE, MIN_SHARE};
use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::calls_in_steps::times;
use crate::measures::{confidence, operators, proof};
use crate::rule::Case;
use analysis::dataflow::{self, Created};
use analysis::device::peaks::Peaks;
use analysis::frames::DEEP;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Share, Tally, again};
use replay::Change;
use replay::gain::Gain;
use std::collections::{BTreeMap, BTreeSet};
use timeline::gpu::detail;
use timeline::{NameIndex, SliceKind, TrackIndex, WorkKind};

/// What is created and moved, whatever showed it.
pub struct Source {
    /// The line that creates it first, then all others that have to do with it.
    pub places: Vec<Place>,
    pub bytes: u64,
    /// Which of a step's copies of so many bytes; empty: all.
    pub turns: BTreeSet<usize>,
    /// What creating it took while operators were looked at.
    pub looked_ns: Option<u64>,
    size: Vec<u64>,
    seen: f64,
    evidence: Evidence,
}

/// More of them say the same.
const MAX_SHOWN: usize = 3;
/// Fewer samples may be of anything.
const MIN_SAMPLES: usize = 3;
/// So many of a line's samples that fill memory come before the same copy.
const MIN_SAME_COPY: f64 = 0.8;

pub fn find(case: &Case) -> Vec<Finding> {
    let mut sources: Vec<Source> = case
        .dataflow()
        .created(case.timeline)
        .iter()
        .take(MAX_LINES)
        .filter_map(|one| by_operators(case, one))
        .collect();
    let sampled = by_samples(case);
    sources.extend(
        sampled.into_iter().filter(|one| sources.iter().all(|other| other.bytes != one.bytes)).collect::<Vec<_>>(),
    );
    let mut found: Vec<(f64, Finding)> = sources.iter().filter_map(|source| finding(case, source)).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(MAX_SHOWN).map(|(_, finding)| finding).collect()
}

/// The bytes of each copy to a device that calls of a thread in a stretch of time ask for.
fn copied(case: &Case, track: TrackIndex, start: u64, end: u64) -> Vec<u64> {
    let (slices, work) = (&case.timeline.slices, &case.timeline.gpu.work);
    let all = case.timeline.tracks[track.0 as usize].slices.clone();
    let from = all.start + slices.start[all.clone()].partition_point(|at| *at < start);
    let calls = (from..all.end).take_while(|index| slices.start[*index] < end);
    let pieces =
        calls.filter(|index| slices.kind(*index) == SliceKind::ApiCall).flat_map(|index| work.of_launch(index));
    let pieces = pieces.map(|piece| work.get(*piece as usize));
    let copies = pieces.filter(|piece| piece.kind == WorkKind::Memcpy && piece.copy().direction == detail::H2D);
    copies.map(|piece| piece.bytes).collect()
}

/// Lines that are asked about, those with most time first; and moves of one, beyond which copies of the same size are not told apart.
const MAX_LINES: usize = 64;
const MAX_MOVES: usize = 4096;

fn by_operators(case: &Case, one: &Created) -> Option<Source> {
    let looks = &case.dataflow().looks;
    if one.moves.len() > MAX_MOVES || looks.len() > MAX_MOVES {
        return None;
    }
    let slices = &case.timeline.slices;
    let track =
        |slice: usize| TrackIndex(case.timeline.tracks.partition_point(|track| track.slices.end <= slice) as u32);
    let of = |slice: &usize| copied(case, track(*slice), slices.start[*slice], slices.get(*slice).end());
    let own: Vec<u64> = one.moves.iter().flat_map(of).collect();
    let bytes = own.iter().copied().max()?;
    // Another copy of as many bytes may be of anything: the other steps do not tell them apart.
    let looks = looks.iter().filter(|look| one.moves.iter().any(|slice| track(*slice) == look.track));
    let all = looks.flat_map(|look| copied(case, look.track, look.span().0, look.span().1));
    if all.filter(|other| *other == bytes).count() != own.iter().filter(|other| **other == bytes).count() {
        return None;
    }
    let looked = one.makers.turns().count();
    Some(Source {
        places: one.lines.iter().map(|at| dataflow::place(at)).collect(),
        bytes,
        turns: BTreeSet::new(),
        looked_ns: Some(one.makers.ns()),
        size: one.size.clone(),
        seen: again(looked),
        evidence: Evidence::new(format!(
            "{} creates it from constants, ranges or random numbers: {} per step with recorded operators; moved at {}",
            one.name,
            phrase::duration(one.makers.ns()),
            phrase::line(&dataflow::place(one.moved_at))
        ))
        .number("ns", one.makers.ns() as f64),
    })
}

/// PyTorch's functions that give memory its first content.
const FILLING_OPERATORS: [&str; 13] = [
    "fill_",
    "full",
    "zero",
    "ones",
    "arange",
    "linspace",
    "logspace",
    "uniform",
    "normal_",
    "rand",
    "bernoulli",
    "eye",
    "tril_indices",
];

/// Whether it is such a function of the part of PyTorch that runs on CPUs.
fn fills(text: &str, file: &str) -> bool {
    let plain = text.strip_prefix("at::native::").map(|rest| rest.split(['(', '<']).next().unwrap_or(rest));
    let last = plain.and_then(|plain| plain.rsplit("::").next());
    file.contains("libtorch_cpu")
        && last.is_some_and(|last| FILLING_OPERATORS.iter().any(|fill| last.starts_with(fill)))
}

/// A line with samples that fill memory.
struct FillLine {
    place: Place,
    samples: usize,
    /// The copies that come next, by their bytes.
    copies: BTreeMap<u64, Vec<u32>>,
}

fn by_samples(case: &Case) -> Vec<Source> {
    let (timeline, slices, work) = (case.timeline, &case.timeline.slices, &case.timeline.gpu.work);
    let named = (0..timeline.names.len() as u32).map(|index| timeline.names.get(NameIndex(index)));
    let filling: Vec<bool> = named.map(|name| fills(&name.text, &name.file)).collect();
    if !filling.contains(&true) {
        return Vec::new();
    }
    let mut lines: BTreeMap<(String, u32), FillLine> = BTreeMap::new();
    for one in &case.samples.all {
        let sample = case.sample(one);
        let Some(line) = operators::outer_line(case, sample.stack) else { continue };
        let mut above = timeline.stacks.walk(sample.stack).take(DEEP).take_while(|(stack, _)| *stack != line);
        if !above.any(|(_, frame)| filling.get(frame.name.0 as usize).copied().unwrap_or(false)) {
            continue;
        }
        let place = case.place(line);
        let key = (place.file.clone().unwrap_or_default(), place.line.unwrap_or(0));
        let entry = lines.entry(key).or_insert_with(|| FillLine { place, samples: 0, copies: BTreeMap::new() });
        entry.samples += 1;
        let track = &timeline.tracks[case.track(one).0 as usize].slices;
        let from = track.start + slices.start[track.clone()].partition_point(|at| *at < sample.time);
        let until = case.windows.all()[one.window as usize].end;
        let mut calls = (from..track.end).take_while(|index| slices.start[*index] < until);
        let next =
            calls.find_map(|index| work.of_launch(index).first().filter(|_| slices.kind(index) == SliceKind::ApiCall));
        let Some(piece) = next else { continue };
        let copy = work.get(*piece as usize);
        // What was just created is pageable: pinned memory is kept.
        let fits = copy.kind == WorkKind::Memcpy
            && copy.copy().direction == detail::H2D
            && copy.copy().source == detail::PAGEABLE;
        if fits {
            entry.copies.entry(copy.bytes).or_default().push(*piece);
        }
    }
    let source = |FillLine { place, samples, copies }: FillLine| {
        let (bytes, pieces) = copies.into_iter().max_by_key(|(_, pieces)| pieces.len())?;
        let enough = pieces.len() >= MIN_SAMPLES && pieces.len() as f64 >= MIN_SAME_COPY * samples as f64;
        enough.then(|| Source {
            places: vec![place],
            bytes,
            turns: pieces.iter().filter_map(|piece| turn(case, *piece, bytes)).collect(),
            looked_ns: None,
            size: Vec::new(),
            seen: again(pieces.len()),
            evidence: Evidence::new(format!(
                "{} of {} in which PyTorch fills memory there come right before this copy",
                pieces.len(),
                phrase::counted(samples as u64, "sample")
            ))
            .number("samples", pieces.len() as f64),
        })
    };
    lines.into_values().filter_map(source).collect()
}

/// The how manieth of its step's copies of so many bytes a copy is.
fn turn(case: &Case, piece: u32, bytes: u64) -> Option<usize> {
    let moved = case.moved().iter().find(|moved| moved.all.iter().any(|copy| copy.work == piece))?;
    let window = moved.all.iter().find(|copy| copy.work == piece)?.window;
    let alike =
        moved.all.iter().filter(|copy| copy.window == window && copy.is(detail::H2D) && copy.piece.bytes == bytes);
    alike.enumerate().find(|(_, copy)| copy.work == piece).map(|(place, _)| place)
}

fn finding(case: &Case, source: &Source) -> Option<(f64, Finding)> {
    let uses = uses(case, source)?;
    let mut tally = Tally::default();
    uses.shares.iter().for_each(|(part, whole)| tally.add(part.min(*whole), *whole));
    let share = tally.measured();
    if share.mid < case.threshold(MIN_SHARE) {
        return None;
    }
    let place = source.places.first().cloned().unwrap_or_default();
    let chosen = |one: &&TensorUse| case.chosen().is_none_or(|chosen| chosen.has(one.call.0));
    // The calls go whatever is assumed: no call that copies from pageable memory is left, and a launch in its place is short.
    let copies = [
        Change::Work(case.chosen_work(uses.all.iter().map(|one| one.work).collect()), 0.0),
        Change::Calls(uses.all.iter().filter(chosen).map(|one| one.launch).collect(), 0.0),
    ];
    let stretch = |of: fn(&TensorUse) -> (u64, u64)| -> Vec<(TrackIndex, u64, u64)> {
        let all = uses.all.iter().filter(chosen).map(|one| (one.track, of(one).0, of(one).1));
        all.filter(|(_, start, end)| start < end).collect()
    };
    let host = [
        Change::Stretches(stretch(|one| one.before), 1.0 - uses.before_part),
        Change::Stretches(stretch(|one| one.after), 1.0 - uses.after_part),
    ];
    let gain = case.gain(&[&copies[..], &host[..]].concat(), share);
    let gain = case.at_worst(gain, &copies, Share::default());
    let each = uses.all.len() as f64 / case.steps.count().max(1) as f64;
    let gain = less(gain, 100.0 * each * fill_ns(case, &uses, source.bytes) / case.steps.mean().max(1) as f64);
    let size = if source.size.is_empty() { String::new() } else { format!("a tensor of {:?}, ", source.size) };
    let first = uses.all.first()?;
    let finding = Finding {
        code: CODE,
        title: format!(
            "Creating {} on the CPU and copying it to the GPU takes {} of {}{}",
            phrase::bytes(source.bytes),
            phrase::percent(share.mid),
            case.the_step(),
            operators::at(&place)
        ),
        place,
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(source.seen * confidence::of(&tally, case.threshold(MIN_SHARE))),
        evidence: vec![
            source.evidence.clone(),
            Evidence::new(format!(
                "{size}{} per step: {} to create and free it, {} to copy it",
                times(each),
                phrase::duration((each * uses.host_ns) as u64),
                phrase::duration((each * uses.call_ns) as u64)
            ))
            .number("host_ns", uses.host_ns)
            .number("copy_ns", uses.call_ns),
            Evidence::at("the first such copy", Some(first.track), first.call.0, first.call.1),
        ],
        actions: vec![
            Action::torch(
                "Create it on the GPU: pass device=\"cuda\" to the function that creates it (torch.full(size, value, device=\"cuda\")).",
            ),
            "If it never changes, create it once and keep it: self.register_buffer(\"mask\", ...).".into(),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    };
    Some((share.mid, finding))
}

/// What the device takes to write as many bytes itself.
fn fill_ns(case: &Case, uses: &super::stretches::Uses, bytes: u64) -> f64 {
    let device = case
        .timeline
        .gpu
        .devices
        .iter()
        .find(|one| one.ordinal == uses.ordinal && one.process.is_none_or(|process| process == uses.process));
    device.and_then(Peaks::of).map_or(0.0, |peaks| bytes as f64 / peaks.bandwidth)
}

fn less(gain: Gain, by: f64) -> Gain {
    Gain { low: (gain.low - by).max(0.0), mid: (gain.mid - by).max(0.0), high: (gain.high - by).max(0.0), ..gain }
}
