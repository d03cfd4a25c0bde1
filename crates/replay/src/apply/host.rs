//! Where a function of the host ran, with what it calls: by the slices that have its name, else by the samples that show it.

use super::Counts;
use crate::answer::Changed;
use crate::expression::fits;
use crate::graph::Graph;
use crate::plan::{Cut, Plan};
use analysis::stats::median;
use analysis::steps::spans::Spans;
use std::collections::{HashMap, HashSet};
use timeline::{NameIndex, SliceKind, StackIndex, Track, TrackIndex};

pub fn cut(graph: &Graph, plan: &mut Plan, pattern: &str, factor: f64) -> Counts {
    let timeline = graph.timeline;
    let names = timeline.names.len() as u32;
    let wanted: Vec<bool> = (0..names).map(|name| fits(pattern, timeline.names.text(NameIndex(name)))).collect();
    let tracks = || graph.tracks.iter().map(|track| &timeline.tracks[track.0 as usize]);
    let mut spans: Vec<Vec<(u64, u64)>> = tracks().map(|track| slices(graph, track, &wanted)).collect();
    let mut sampled = false;
    if spans.iter().all(Vec::is_empty) {
        sampled = true;
        let stacks = stacks(graph, &wanted);
        spans = tracks().map(|track| samples(graph, track, &stacks)).collect();
    }
    let at = |time: i64| u64::try_from(time).unwrap_or(0).saturating_add(timeline.start);
    let inside = |track: usize, span: &(u64, u64)| {
        let steps = graph.steps.iter().filter(|step| step.measured && step.track as usize == track);
        let mut steps = steps.map(|step| (at(step.start), at(step.end)));
        steps.any(|step| span.0 < step.1 && step.0 < span.1)
    };
    // One look is enough to know that it is there; counting all against all steps would not be linear.
    let any = spans.iter().enumerate().find_map(|(track, spans)| {
        let own = graph.steps.iter().any(|step| step.track as usize == track);
        spans.iter().take(4096).find(|span| !own || inside(track, span))
    });
    let count = any.map_or(0, |_| spans.iter().map(|spans| spans.len() as u64).sum());
    if sampled {
        plan.sampled.push(counted(graph, &spans));
    }
    plan.cuts.push(Cut { spans: spans.into_iter().map(Spans::union).collect(), factor });
    Counts::of(Changed::Function { pattern: pattern.to_owned(), sampled }, count)
}

/// What a pattern could have meant: the slices and functions of the steps' threads, those that were seen longest or most often first.
pub fn names(graphs: &[&Graph]) -> Vec<String> {
    let (mut in_slices, mut in_samples): (HashMap<u32, u64>, HashMap<u32, u64>) = Default::default();
    let Some(timeline) = graphs.first().map(|graph| graph.timeline) else { return Vec::new() };
    for track in graphs.iter().flat_map(|graph| &graph.tracks).map(|track| &timeline.tracks[track.0 as usize]) {
        for index in track.slices.clone().filter(|index| is_host(timeline.slices.kind(*index))) {
            *in_slices.entry(timeline.slices.name[index]).or_default() += timeline.slices.dur[index];
        }
        for index in track.samples.clone() {
            // A stack's parent comes before it, so this ends.
            let mut stack = timeline.samples.get(index).stack;
            while stack.0 > 0 && (stack.0 as usize) < timeline.stacks.len() {
                let frame = timeline.stacks.frame(stack);
                *in_samples.entry(frame.name.0).or_default() += 1;
                if frame.parent.0 >= stack.0 {
                    break;
                }
                stack = frame.parent;
            }
        }
    }
    let ranked = |seen: HashMap<u32, u64>| {
        let mut seen: Vec<(u32, u64)> = seen.into_iter().collect();
        seen.sort_by_key(|(name, time)| (u64::MAX - time, *name));
        seen.into_iter().map(|(name, _)| timeline.names.text(NameIndex(name)).to_owned())
    };
    let mut told = HashSet::new();
    ranked(in_slices).chain(ranked(in_samples)).filter(|name| told.insert(name.clone())).collect()
}

fn is_host(kind: SliceKind) -> bool {
    !matches!(kind, SliceKind::ApiCall | SliceKind::Overhead)
}

/// How many of the samples in the steps are those of `spans`, on the threads that have any, and how many there are.
fn counted(graph: &Graph, spans: &[Vec<(u64, u64)>]) -> (u64, u64) {
    let timeline = graph.timeline;
    let at = |time: i64| u64::try_from(time).unwrap_or(0).saturating_add(timeline.start);
    let (mut hits, mut all) = (0, 0);
    for (place, spans) in spans.iter().enumerate().filter(|(_, spans)| !spans.is_empty()) {
        let own = graph.steps.iter().filter(|step| step.measured && step.track as usize == place);
        let own = Spans::union(own.map(|step| (at(step.start), at(step.end))).collect());
        // A thread without steps works for those of others.
        let inside = |time: u64| own.ends().is_none() || own.overlap(time, time.saturating_add(1)) > 0;
        let track = &timeline.tracks[graph.tracks[place].0 as usize];
        all += timeline.samples.time[track.samples.clone()].iter().filter(|time| inside(**time)).count() as u64;
        hits += spans.iter().filter(|span| inside(span.0.midpoint(span.1))).count() as u64;
    }
    (hits, all.max(hits))
}

/// Stretches of threads that a rule names: also what lies of them in calls, unless those wait for a device.
pub fn stretches(graph: &Graph, plan: &mut Plan, all: &[(TrackIndex, u64, u64)], factor: f64) -> Counts {
    let mut spans: Vec<Vec<(u64, u64)>> = vec![Vec::new(); graph.tracks.len()];
    for (track, start, end) in all {
        if let Ok(place) = graph.tracks.binary_search(track) {
            spans[place].push((*start, *end));
        }
    }
    let count = spans.iter().map(|spans| spans.len() as u64).sum();
    let spans: Vec<Spans> = spans.into_iter().map(Spans::union).collect();
    let at = |time: i64| u64::try_from(time).unwrap_or(0).saturating_add(graph.timeline.start);
    for (call, cost) in graph.calls.iter().zip(&mut plan.cost).filter(|(call, _)| call.wait == 0) {
        let inside = spans[call.track as usize].overlap(at(call.begin), at(call.end));
        if inside > 0 && cost.is_none() {
            *cost = Some(call.end - call.begin - (inside as f64 * (1.0 - factor)).round() as i64);
        }
    }
    plan.cuts.push(Cut { spans, factor });
    Counts::of(Changed::HostStretches, count)
}

/// All code of the threads that have steps.
pub fn all(graph: &Graph, plan: &mut Plan, factor: f64) -> Counts {
    let timeline = graph.timeline;
    let at = |time: i64| u64::try_from(time).unwrap_or(0).saturating_add(timeline.start);
    let steps = graph.steps.iter().filter(|step| step.measured);
    let all: Vec<_> = steps.map(|step| (graph.tracks[step.track as usize], at(step.start), at(step.end))).collect();
    stretches(graph, plan, &all, factor)
}

fn slices(graph: &Graph, track: &Track, wanted: &[bool]) -> Vec<(u64, u64)> {
    let slices = &graph.timeline.slices;
    let host = |index: &usize| is_host(slices.kind(*index));
    let named = track.slices.clone().filter(|index| wanted[slices.name[*index] as usize] && host(index));
    named.map(|index| (slices.start[index], slices.get(index).end())).collect()
}

/// Which stacks have the function in them; a stack's parent comes before it.
fn stacks(graph: &Graph, wanted: &[bool]) -> Vec<bool> {
    let stacks = &graph.timeline.stacks;
    let mut has = vec![false; stacks.len()];
    for index in 1..has.len() {
        let frame = stacks.frame(StackIndex(index as u32));
        let parent = has.get(frame.parent.0 as usize).copied().unwrap_or(false);
        has[index] = parent || wanted.get(frame.name.0 as usize).copied().unwrap_or(false);
    }
    has
}

fn samples(graph: &Graph, track: &Track, stacks: &[bool]) -> Vec<(u64, u64)> {
    let samples = &graph.timeline.samples;
    let times = &samples.time[track.samples.clone()];
    // Farther than usual from the next one, a sample stands for the usual time.
    let usual = median(times.windows(2).map(|two| two[1] - two[0]).collect()).unwrap_or(0);
    let mut spans = Vec::new();
    for index in track.samples.clone() {
        let sample = samples.get(index);
        if stacks.get(sample.stack.0 as usize).copied().unwrap_or(false) {
            spans.push((sample.time.saturating_sub(usual / 2), sample.time.saturating_add(usual.div_ceil(2))));
        }
    }
    spans
}
