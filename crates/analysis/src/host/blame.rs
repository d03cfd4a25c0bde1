//! Which frame to name for a sample inside a step: the deepest one of the program's own code, unless that one stands around
//! the step (a framework calls the step, and spends time of its own in it), and then the function on top.

use super::StepContext;
use crate::host::step_samples::StepSample;
use std::collections::{HashMap, HashSet};
use timeline::{NameIndex, StackIndex, TrackIndex};

/// A stack is read from outside, a little after its time was taken: of a call that ends sooner than this after a sample, the sample
/// may show what comes next.
pub const READ_LATE_NS: u64 = 100_000;

pub struct Blame {
    /// By track: the depth up to which frames stand around the steps. Only where other time has a home inside them.
    around: HashMap<TrackIndex, u32>,
}

impl Blame {
    pub fn new(case: &StepContext) -> Blame {
        let mut base: HashMap<TrackIndex, StackIndex> = HashMap::new();
        let mut homes: HashSet<(TrackIndex, StackIndex)> = HashSet::new();
        let mut known: HashSet<(TrackIndex, StackIndex)> = HashSet::new();
        for one in &case.samples.all {
            let (track, stack) = (case.track(one), case.frames.python(case.sample(one).stack));
            if stack.0 == 0 || !known.insert((track, stack)) {
                continue;
            }
            homes.insert((track, case.frames.home(stack)));
            base.entry(track)
                .and_modify(|base| *base = case.frames.shared(case.timeline, *base, stack))
                .or_insert(stack);
        }
        let inside: HashSet<TrackIndex> = homes
            .iter()
            .filter(|(track, home)| {
                base.get(track).is_some_and(|base| case.frames.depth(*home) > case.frames.depth(*base))
            })
            .map(|(track, _)| *track)
            .collect();
        let around = base.into_iter().filter(|(track, _)| inside.contains(track));
        Blame { around: around.map(|(track, base)| (track, case.frames.depth(base))).collect() }
    }

    pub fn frame(&self, case: &StepContext, seen: &StepSample) -> StackIndex {
        let stack = case.sample(seen).stack;
        let home = case.frames.home(stack);
        match self.around.get(&case.track(seen)) {
            Some(around) if case.frames.depth(home) < *around => case.frames.python(stack),
            _ => home,
        }
    }
}

/// A function and how many samples named it, with its lines.
#[derive(Clone, Debug)]
pub struct Blamed {
    pub name: NameIndex,
    pub count: u64,
    /// A frame for each line, most samples first.
    pub lines: Vec<(StackIndex, u64)>,
}

/// Functions by how many of the samples that fit name them, most first.
pub fn functions(case: &StepContext, fits: impl Fn(&StepSample) -> bool) -> Vec<Blamed> {
    let mut by_line: HashMap<(NameIndex, u32), (StackIndex, u64)> = HashMap::new();
    for one in case.samples.all.iter().filter(|one| fits(one)) {
        let frame = case.blame().frame(case, one);
        if frame.0 != 0 {
            let line = case.timeline.stacks.frame(frame);
            by_line.entry((line.name, line.line)).or_insert((frame, 0)).1 += 1;
        }
    }
    let mut by_name: HashMap<NameIndex, Blamed> = HashMap::new();
    for ((name, _), line) in by_line {
        let blamed = by_name.entry(name).or_insert(Blamed { name, count: 0, lines: Vec::new() });
        blamed.count += line.1;
        blamed.lines.push(line);
    }
    let mut all: Vec<Blamed> = by_name.into_values().collect();
    all.iter_mut().for_each(|one| one.lines.sort_by_key(|(frame, count)| (u64::MAX - count, *frame)));
    all.sort_by_key(|one| (u64::MAX - one.count, one.name));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    fn named(text: &str) -> Vec<(String, u64)> {
        let timeline = Timeline::from_text(text).unwrap();
        let case = StepContext::new(&timeline, None);
        let name = |one: &Blamed| (timeline.names.text(one.name).to_owned(), one.count);
        functions(&case, |_| true).iter().map(name).collect()
    }

    const WEB: &str = "/usr/lib/python3.12/site-packages/web.py";

    #[test]
    fn a_library_counts_for_the_line_that_calls_it() {
        let text = format!(
            "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main:3>fetch:7>get@{WEB}:9>read@{WEB}:2"
        );
        assert_eq!(named(&text), [("fetch".to_owned(), 100)]);
    }

    /// The step is opened by a framework's middleware: its own time is not the time of `main`, which only started it.
    #[test]
    fn a_frame_around_the_step_is_not_blamed_for_what_a_framework_does_in_it() {
        let text = format!(
            "track main\n step r 0..1s\n samples 0..500ms every 10ms active gil main:3>call@{WEB}:9>handle:20
             samples 500ms..1s every 10ms active gil main:3>call@{WEB}:9>route@{WEB}:30"
        );
        assert_eq!(named(&text), [("handle".to_owned(), 50), ("route".to_owned(), 50)]);
    }

    #[test]
    fn a_program_that_is_all_library_has_its_deepest_frame_named() {
        let text =
            format!("track main\n step r 0..1s\n samples 0..1s every 10ms active gil call@{WEB}:9>route@{WEB}:30");
        assert_eq!(named(&text), [("route".to_owned(), 100)]);
    }
}
