//! How much of the steps is spent under certain functions, and what a step would gain without: by samples, else by recorded calls.

use crate::finding::{Evidence, Gain, Place};
use crate::proof;
use crate::replay::Change;
use crate::rule::Case;
use crate::seen::Seen;
use crate::share::{Share, Tally};
use timeline::{Name, NameIndex, SliceKind, StackIndex, TrackIndex};

pub struct OnPath {
    /// Of the steps.
    pub share: Share,
    pub confidence: f64,
    /// The program's own line that most of it is under.
    pub place: Place,
    pub evidence: Vec<Evidence>,
    stretches: Vec<(TrackIndex, u64, u64)>,
}

/// The time under functions that fit. `also` is asked of samples. Err: nothing can be said, and why.
pub fn find(
    case: &Case,
    what: &str,
    fits: impl Fn(&Name) -> bool,
    also: impl Fn(&Seen) -> bool,
) -> Result<OnPath, String> {
    let names = &case.timeline.names;
    let wanted: Vec<bool> = (0..names.len() as u32).map(|name| fits(names.get(NameIndex(name)))).collect();
    match case.without_samples() {
        None => Ok(by_samples(case, what, &wanted, also)),
        Some(_) if case.breakdown.by_calls => Ok(by_calls(case, &wanted)),
        Some(reason) => Err(reason),
    }
}

fn by_samples(case: &Case, what: &str, wanted: &[bool], also: impl Fn(&Seen) -> bool) -> OnPath {
    let stacks = &case.timeline.stacks;
    let mut has = vec![false; stacks.len()];
    for index in 1..has.len() {
        let frame = stacks.frame(StackIndex(index as u32));
        // A stack's parent comes before it.
        let parent = has.get(frame.parent.0 as usize).copied().unwrap_or(false);
        has[index] = parent || wanted.get(frame.name.0 as usize).copied().unwrap_or(false);
    }
    let seen = |one: &Seen| has.get(case.sample(one).stack.0 as usize).copied().unwrap_or(false) && also(one);
    let (share, _) = case.share(seen);
    let (mut lines, half) = (std::collections::HashMap::<StackIndex, u64>::new(), case.seen.period_ns / 2);
    let mut stretches = Vec::new();
    for one in case.seen.all.iter().filter(|one| seen(one)) {
        let time = case.sample(one).time;
        stretches.push((case.track(one), time.saturating_sub(half), time.saturating_add(half)));
        *lines.entry(case.blame().frame(case, one)).or_default() += 1;
    }
    let most = lines.into_iter().max_by_key(|(frame, count)| (*count, u32::MAX - frame.0));
    OnPath {
        share,
        confidence: share.surely_above(0.02) * case.coverage(),
        place: most.map(|(frame, _)| case.place(frame)).unwrap_or_default(),
        evidence: proof::best_step(case, what, seen).into_iter().collect(),
        stretches,
    }
}

/// The outermost recorded calls that fit.
fn by_calls(case: &Case, wanted: &[bool]) -> OnPath {
    let (slices, mut stretches, mut tally) = (&case.timeline.slices, Vec::new(), Tally::default());
    let mut place = Place::default();
    for (track, windows) in case.windows.tracks() {
        let mut parts = vec![0u64; windows.len()];
        let mut done = 0;
        for index in case.timeline.tracks[track.0 as usize].slices.clone() {
            let slice = slices.get(index);
            let call = matches!(slice.kind, SliceKind::Call | SliceKind::CCall) && wanted[slice.name.0 as usize];
            if let (true, Some(window)) = (call && slice.start >= done, case.windows.at(track, slice.start)) {
                done = slice.end();
                let end = done.min(case.windows.all()[window].end);
                parts[window - windows.start] += end - slice.start;
                stretches.push((track, slice.start, end));
                if place.function.is_none() {
                    let name = case.timeline.names.get(slice.name);
                    place.function = Some(name.text.to_string());
                    place.file = Some(name.file.to_string()).filter(|file| !file.is_empty());
                }
            }
        }
        for (window, part) in case.windows.all()[windows].iter().zip(parts) {
            tally.add(part.min(window.end - window.start) as f64, (window.end - window.start) as f64);
        }
    }
    OnPath { share: tally.measured(), confidence: tally.repeats(), place, evidence: Vec::new(), stretches }
}

impl OnPath {
    /// What a step gains when only this part of the time is left.
    pub fn gain(&self, case: &Case, left: f64) -> Gain {
        let chosen = case.chosen();
        let inside = |one: &&(TrackIndex, u64, u64)| chosen.is_none_or(|chosen| chosen.has(one.1));
        let stretches = self.stretches.iter().filter(inside).copied().collect();
        case.gain(&[Change::Stretches(stretches, left)], self.share.scaled(1.0 - left))
    }
}

/// Whether a file's path ends so, as a whole part.
pub fn in_file(name: &Name, end: &str) -> bool {
    name.file.strip_suffix(end).is_some_and(|head| head.is_empty() || head.ends_with('/'))
}

/// A function's own name, without its class.
pub fn last(name: &Name) -> &str {
    name.text.rsplit('.').next().unwrap_or(&name.text)
}
