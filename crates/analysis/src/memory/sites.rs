//! Where the program asked the driver for memory: the CUDA call, found by its time, with the line that samples saw in it, or the recorded function or
//! scope around it, and the library that made it. Calls of one function that ask for the same size are taken to be of one line.

use super::who::place as place_of;
use crate::frames::{Frames, is};
use crate::phrase;
use crate::place::Place;
use std::collections::HashMap;
use timeline::cuda_calls::ApiClass;
use timeline::driver_memory::DriverLife;
use timeline::{NameIndex, ProcessIndex, SliceKind, StackIndex, Timeline, TrackIndex};

/// A call and what it did are written with one clock; what is left is rounding.
const SAME_NS: u64 = 2_000;
/// A sample so long before or after a call shows the line that makes it.
const ON_THE_WAY_NS: u64 = 100_000;
/// Slices nested deeper than this are not looked at: a damaged trace must not cost the square of its slices.
const DEEPEST: usize = 256;

/// A place that takes memory of the driver.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Site {
    /// With the CUDA call, where that was recorded.
    pub place: Place,
    /// What called CUDA, where a sample saw it: `libnccl`.
    pub library: Option<String>,
}

/// A call that asks for memory, with the innermost of the program's own recorded functions, scopes and operators around it.
struct Call {
    end: u64,
    start: u64,
    name: NameIndex,
    track: TrackIndex,
    around: Option<NameIndex>,
    /// Samples of its thread from here to there show the line that makes it.
    seen: (u64, u64),
}

/// Calls of one function that ask for the same size.
type Group = (ProcessIndex, NameIndex, Option<NameIndex>, u64);

pub struct Sites {
    pub all: Vec<Site>,
    /// Of each life.
    pub of: Vec<usize>,
}

impl Sites {
    pub fn find(timeline: &Timeline, frames: &Frames, lives: &[DriverLife]) -> Sites {
        let mut calls: HashMap<ProcessIndex, Vec<Call>> = HashMap::new();
        for life in lives {
            calls.entry(life.process).or_insert_with(|| of_process(timeline, frames, life.process));
        }
        let call_of = |life: &DriverLife| near(&calls[&life.process], life.start);
        let group = |life: &DriverLife, call: &Call| (life.process, call.name, call.around, life.bytes);
        let mut seen: HashMap<Group, HashMap<StackIndex, u64>> = HashMap::new();
        for life in lives {
            let Some(call) = call_of(life) else { continue };
            let votes = seen.entry(group(life, call)).or_default();
            stacks(timeline, call).for_each(|stack| *votes.entry(stack).or_default() += 1);
        }
        let sites: HashMap<Group, Site> =
            seen.iter().map(|(key, votes)| (*key, site(timeline, frames, key, votes))).collect();
        let mut all: Vec<Site> = vec![Site::default()];
        let mut of = Vec::with_capacity(lives.len());
        let mut known: HashMap<Group, usize> = HashMap::new();
        for life in lives {
            let Some(call) = call_of(life) else {
                of.push(0);
                continue;
            };
            let key = group(life, call);
            of.push(*known.entry(key).or_insert_with(|| {
                let site = &sites[&key];
                all.iter().position(|one| one == site).unwrap_or_else(|| {
                    all.push(site.clone());
                    all.len() - 1
                })
            }));
        }
        Sites { all, of }
    }
}

/// The calls of a process that do something with memory, by when they end.
fn of_process(timeline: &Timeline, frames: &Frames, process: ProcessIndex) -> Vec<Call> {
    let mut calls = Vec::new();
    for (number, track) in timeline.tracks.iter().enumerate().filter(|(_, track)| track.process == process) {
        let mut open: Vec<(u64, SliceKind, NameIndex)> = Vec::new();
        let first = calls.len();
        for index in track.slices.clone() {
            let kind = timeline.slices.kind(index);
            let slice = timeline.slices.get(index);
            if kind == SliceKind::ApiCall {
                if timeline.names.call(slice.name).class() != ApiClass::Allocator {
                    continue;
                }
                let outer = open.iter().rev().filter(|(end, _, _)| *end >= slice.end());
                let of = |kind| outer.clone().find(|one| one.1 == kind).map(|one| one.2);
                let around = of(SliceKind::Call).or_else(|| of(SliceKind::Scope)).or_else(|| of(SliceKind::CCall));
                let track = TrackIndex(number as u32);
                let seen = (slice.start.saturating_sub(ON_THE_WAY_NS), slice.end().saturating_add(ON_THE_WAY_NS));
                calls.push(Call { end: slice.end(), start: slice.start, name: slice.name, track, around, seen });
                continue;
            }
            let own = match kind {
                SliceKind::Call => frames.bits(slice.name) & is::LIBRARY == 0,
                SliceKind::Scope | SliceKind::CCall => true,
                _ => false,
            };
            if !own {
                continue;
            }
            while open.last().is_some_and(|(end, _, _)| *end <= slice.start) {
                open.pop();
            }
            // Scopes of tasks need not nest.
            if open.len() == DEEPEST {
                open.retain(|(end, _, _)| *end > slice.start);
            }
            if open.len() < DEEPEST {
                open.push((slice.end(), kind, slice.name));
            }
        }
        // A sample inside one call says nothing of the next.
        for at in first + 1..calls.len() {
            let (before, after) = (calls[at - 1].end, calls[at].start);
            calls[at].seen.0 = calls[at].seen.0.max(before);
            calls[at - 1].seen.1 = calls[at - 1].seen.1.min(after);
        }
    }
    calls.sort_by_key(|call| (call.end, call.start));
    calls
}

/// The call that ended at this time.
fn near(calls: &[Call], time: u64) -> Option<&Call> {
    let from = calls.partition_point(|call| call.end < time.saturating_sub(SAME_NS));
    let close = calls[from..].iter().take_while(|call| call.end <= time.saturating_add(SAME_NS));
    close.min_by_key(|call| call.end.abs_diff(time))
}

/// Samples of its thread in a call, or right beside it.
fn stacks<'a>(timeline: &'a Timeline, call: &Call) -> impl Iterator<Item = StackIndex> + 'a {
    let range = timeline.tracks[call.track.0 as usize].samples.clone();
    let (from, to) = call.seen;
    let times = &timeline.samples.time[range.clone()];
    let first = range.start + times.partition_point(|time| *time < from);
    let last = range.start + times.partition_point(|time| *time <= to);
    (first..last).map(|index| timeline.samples.get(index).stack).filter(|stack| stack.0 != 0)
}

fn site(timeline: &Timeline, frames: &Frames, group: &Group, votes: &HashMap<StackIndex, u64>) -> Site {
    let (_, call, around, _) = *group;
    let mut lines: HashMap<(NameIndex, u32), (u64, StackIndex)> = HashMap::new();
    let mut libraries: HashMap<&str, u64> = HashMap::new();
    for (stack, count) in votes {
        let home = frames.home(*stack);
        if home.0 != 0 {
            let frame = timeline.stacks.frame(home);
            let vote = lines.entry((frame.name, frame.line)).or_insert((0, home));
            *vote = (vote.0 + count, vote.1.min(home));
        }
        if let Some(library) = library(timeline, frames, *stack) {
            *libraries.entry(library).or_default() += count;
        }
    }
    let line = lines.into_values().max_by_key(|(count, home)| (*count, std::cmp::Reverse(*home)));
    let place = match line {
        Some((_, home)) => place_of(timeline, home),
        None => around.map(|name| recorded(timeline, name)).unwrap_or_default(),
    };
    let most = libraries.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
    let api = Some(timeline.names.text(call).to_owned());
    Site { place: Place { api, ..place }, library: most.map(|(name, _)| name.to_owned()) }
}

fn recorded(timeline: &Timeline, name: NameIndex) -> Place {
    let name = timeline.names.get(name);
    Place {
        function: Some(name.text.to_string()),
        file: Some(name.file.to_string()).filter(|file| !file.is_empty()),
        line: Some(name.line).filter(|line| *line > 0),
        ..Place::default()
    }
}

/// The library that called CUDA: of the native frames above the line of Python, the first that is not CUDA's, the C library's or ours.
fn library<'a>(timeline: &'a Timeline, frames: &Frames, stack: StackIndex) -> Option<&'a str> {
    const NOT_THESE: [&str; 8] =
        ["libcuda", "libc", "ld-linux-x86-64", "libpthread", "libcupti", "libdl", "_cuda", "libnvperf_host"];
    let python = frames.python(stack);
    let above = timeline.stacks.walk(stack).take_while(|(index, _)| *index != python);
    above.take(DEEPEST).find_map(|(_, frame)| {
        let file = phrase::short_file(&timeline.names.get(frame.name).file);
        let stem = file.split(".so").next().unwrap_or(file).split('.').next().unwrap_or(file);
        let cuda = stem.starts_with("libcudart") || NOT_THESE.contains(&stem);
        (file.contains(".so") && !cuda && !stem.is_empty()).then_some(stem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::driver_memory::driver_memory;

    fn sites(text: &str) -> Vec<Site> {
        let timeline = Timeline::from_text(&format!("device 0 GPU\n track main\n{text}")).unwrap();
        let lives = driver_memory(&timeline.gpu.allocations).lives;
        let sites = Sites::find(&timeline, &Frames::new(&timeline), &lives);
        sites.of.iter().map(|at| sites.all[*at].clone()).collect()
    }

    #[test]
    fn one_sample_in_a_call_names_the_line_of_all_that_ask_for_as_much() {
        let text = "repeat 10 every 1ms\n api cudaMalloc 10us..30us\n alloc 30us 4096 at 1 each\n api cudaMalloc 50us..60us\n
            alloc 60us 8192 at 9 each\n end\n samples 5020us..5021us every 10us active main>serve@serve.py:3>load@serve.py:44>cudaMalloc@libcudart.so.12>ncclInit@/usr/lib/libnccl.so.2";
        let found = sites(text);
        assert_eq!(found.len(), 20);
        assert_eq!(phrase::place(&found[0].place), "load (serve.py:44)");
        assert_eq!((found[0].place.api.as_deref(), found[0].library.as_deref()), (Some("cudaMalloc"), Some("libnccl")));
        assert_eq!((found[1].place.function.as_deref(), found[1].place.api.as_deref()), (None, Some("cudaMalloc")));
        assert!((0..20).all(|at| found[at] == found[at % 2]));
    }

    #[test]
    fn without_samples_the_recorded_function_around_a_call_is_named() {
        let found =
            sites("scope warm 0..90us\n call decode 5us..80us\n api cuMemAlloc_v2 10us..30us\n alloc 30us 4096 at 1");
        assert_eq!(found[0].place.function.as_deref(), Some("decode"));
        assert_eq!(sites("alloc 30us 4096 at 1"), [Site::default()], "the call was not recorded");
    }
}
