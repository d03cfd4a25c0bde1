//! What operators that were looked at cost in all the other steps, and how they are named in a sentence. On a device it is the work that they
//! launched there, replayed without it; on a CPU what samples of the steps show at their lines or, where there are too few, the time that they
//! took while they were looked at.

use crate::rule::{Case, Verdict};
use analysis::dataflow::{self, OpSet};
use analysis::frames::DEEP;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Share, again};
use analysis::steps::StepSource;
use replay::Change;
use replay::gain::Gain;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use timeline::{CollectorCode, NameIndex, SliceKind, StackIndex, TrackIndex};

/// What some operators take of the steps.
pub struct Cost {
    /// Of the steps' time, or of the time of all operators where there are no steps.
    pub share: Share,
    /// Without them, or with what is to stay of them. None: there are no steps to gain in.
    pub gain: Option<Gain>,
    /// On the devices in the steps, or on the CPU.
    pub on_device: bool,
}

/// What a rule of the data flow says where no operator was recorded. Programs without PyTorch have none: that is nothing to report.
pub fn missing(case: &Case) -> Option<Verdict> {
    if !case.dataflow().is_empty() {
        return None;
    }
    let states = case.timeline.processes.iter().flat_map(|process| &process.collectors);
    let reason = states
        .filter(|state| state.name == CollectorCode::Ops)
        .map(|state| state.reason.as_str())
        .find(|why| !why.is_empty());
    Some(reason.map_or(Verdict::Silent, |why| Verdict::Abstain(format!("operators not recorded: {why}"))))
}

/// `left` is the part of each that stays: 0 where none of them is needed.
pub fn cost(case: &Case, ops: &OpSet, left: f64) -> Cost {
    let pieces = case.launched().by(&ops.slices);
    if pieces.is_empty() { on_host(case, ops, left) } else { on_device(case, pieces, left) }
}

fn on_device(case: &Case, pieces: Vec<u32>, left: f64) -> Cost {
    let those: HashSet<u32> = pieces.iter().copied().collect();
    let part = |index: usize| if those.contains(&(index as u32)) { 1.0 - left } else { 0.0 };
    let shares = case.kernels().iter().map(|device| device.saved(case, part).measured());
    let share = shares.max_by(|a, b| a.mid.total_cmp(&b.mid)).unwrap_or_default();
    let mut changes = vec![Change::Work(case.chosen_work(pieces.clone()), left)];
    if left <= 0.0 {
        changes.push(Change::Stretches(launches(case, &case.chosen_work(pieces)), 0.0));
    }
    Cost { share, gain: Some(case.gain(&changes, share)), on_device: true }
}

/// The host time of these launches: as long as the operator took when it was looked at, and not from before the call that came before.
pub fn launches(case: &Case, pieces: &[u32]) -> Vec<(TrackIndex, u64, u64)> {
    let (slices, work) = (&case.timeline.slices, &case.timeline.gpu.work);
    let all = case.launched().all();
    let stretch = |piece: &u32| {
        let known = all.get(all.binary_search_by_key(piece, |one| one.piece).ok()?)?;
        let launch = work.launch(*piece as usize)?;
        let end = slices.get(launch).end();
        let track = case.timeline.tracks.partition_point(|track| track.slices.end <= launch);
        let first = case.timeline.tracks.get(track)?.slices.start;
        let before = (first..launch).rev().find(|index| slices.kind(*index) == SliceKind::ApiCall);
        let from = end.saturating_sub(slices.dur[known.op as usize]).min(slices.start[launch]);
        let from = from.max(before.map_or(0, |index| slices.get(index).end()));
        (from < end).then_some((TrackIndex(track as u32), from, end))
    };
    pieces.iter().filter_map(stretch).collect()
}

fn on_host(case: &Case, ops: &OpSet, left: f64) -> Cost {
    let steps = case.steps.source != StepSource::Whole && case.steps.p50() > 0;
    if steps && let Some(share) = sampled(case, ops) {
        let share = share.scaled(1.0 - left);
        return Cost { share, gain: Some(gain_at(case, &lines_of(case, ops), share)), on_device: false };
    }
    // The shortest of the looked-at steps against the median: what else runs on the machine only adds to both. It cannot be more than these
    // operators are of all.
    let of_all = ops.ns() as f64 / all_ns(case).max(1) as f64;
    let part = |ns: u64| (1.0 - left) * (ns as f64 / case.steps.p50().max(1) as f64).min(of_all).clamp(0.0, 1.0);
    let share = match steps {
        true => {
            Share { low: part(ops.least_ns()), mid: part(ops.least_ns()), high: part(ops.turns().max().unwrap_or(0)) }
        }
        false => Share::exactly((1.0 - left) * of_all.clamp(0.0, 1.0)),
    };
    Cost { share, gain: steps.then(|| gain_at(case, &lines_of(case, ops), share)), on_device: false }
}

/// The lines of the program that these operators are called at.
fn lines_of<'a>(case: &'a Case, ops: &OpSet) -> Vec<&'a str> {
    let those: HashSet<usize> = ops.slices.iter().copied().collect();
    let all = case.dataflow().looks.iter().flat_map(|look| &look.ops).filter(|op| those.contains(&op.slice));
    all.map(|op| op.at).collect::<BTreeSet<&str>>().into_iter().collect()
}

/// What a step gains without this share of it, which lies at these lines.
pub fn gain_at(case: &Case, lines: &[&str], share: Share) -> Gain {
    let fits = at_lines(case, lines);
    case.gain_of_host_at(|one| fits(case.sample(one).stack), share)
}

/// All operators of a turn, on average.
fn all_ns(case: &Case) -> u64 {
    let mut all = OpSet::default();
    case.dataflow().looks.iter().flat_map(|look| &look.ops).for_each(|op| all.add(op));
    all.ns()
}

/// The operators' part of the time that samples of all steps show at their lines. None: there are too few samples.
fn sampled(case: &Case, ops: &OpSet) -> Option<Share> {
    let those: HashSet<usize> = ops.slices.iter().copied().collect();
    // Of each line: what they take of it, and what all its operators take.
    let mut lines: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for op in case.dataflow().looks.iter().flat_map(|look| &look.ops).filter(|op| ops.has_turn_of(op)) {
        let line = lines.entry(op.at).or_default();
        line.0 = line.0.saturating_add(if those.contains(&op.slice) { op.ns() } else { 0 });
        line.1 = line.1.saturating_add(op.ns());
    }
    lines.retain(|_, (own, _)| *own > 0);
    let at: Vec<&str> = lines.keys().copied().collect();
    let share = sampled_at(case, &at)?;
    let (own, all) = lines.values().fold((0.0, 0.0), |sum, line| (sum.0 + line.0 as f64, sum.1 + line.1 as f64));
    Some(share.scaled(own / all))
}

/// The share of samples whose nearest line outside PyTorch is one of these, which is how operators name theirs.
pub fn sampled_at(case: &Case, lines: &[&str]) -> Option<Share> {
    let fits = at_lines(case, lines);
    let enough = case.without_samples().is_none();
    enough.then(|| case.share(|one| fits(case.sample(one).stack)).0)
}

fn at_lines<'c, 't>(case: &'c Case<'t>, lines: &[&str]) -> impl Fn(StackIndex) -> bool + use<'c, 't> {
    let places: Vec<Place> = lines.iter().map(|at| dataflow::place(at)).collect();
    move |stack| {
        outer_line(case, stack).is_some_and(|line| {
            let frame = case.timeline.stacks.frame(line);
            let file = &*case.timeline.names.get(frame.name).file;
            places.iter().any(|place| place.line == Some(frame.line) && place.file.as_deref() == Some(file))
        })
    }
}

/// The nearest frame of a stack that is Python outside PyTorch.
pub fn outer_line(case: &Case, stack: StackIndex) -> Option<StackIndex> {
    let outside = |name: NameIndex| {
        let file = &case.timeline.names.get(name).file;
        !file.contains("-packages/torch/") && (file.ends_with(".py") || file.starts_with('<'))
    };
    let mut frames = case.timeline.stacks.walk(stack).take(DEEP);
    frames.find(|(_, frame)| outside(frame.name)).map(|(index, _)| index)
}

/// How sure the turns that show it make it: more looks, surer.
pub fn confidence(ops: &OpSet) -> f64 {
    again(ops.turns().count())
}

/// "ones, triu and 2 more", each once.
pub fn names(case: &Case, names: impl Iterator<Item = NameIndex>) -> String {
    let mut plain: Vec<&str> = Vec::new();
    for name in names {
        let text = case.timeline.names.text(name);
        let text = text.strip_prefix("aten::").unwrap_or(text);
        if !plain.contains(&text) {
            plain.push(text);
        }
    }
    match plain.as_slice() {
        [] => "operators".into(),
        [one] => (*one).into(),
        [one, two] => format!("{one} and {two}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

/// "[64, 256] [256, 256]".
pub fn sizes(all: &[Vec<u64>]) -> String {
    let shown = all.iter().filter(|sizes| !sizes.is_empty()).take(3).map(|sizes| format!("{sizes:?}"));
    shown.collect::<Vec<_>>().join(" ")
}

/// "model.py:12", or nothing.
pub fn at(place: &Place) -> String {
    if place.file.is_some() { format!(" ({})", phrase::line(place)) } else { String::new() }
}
