//! How much of the steps is spent under certain functions, and what a step would gain without: by samples, else by recorded calls.

use crate::finding::Evidence;
use crate::measures::proof;
use crate::rule::{Case, Verdict};
use analysis::host::step_samples::StepSample;
use analysis::place::Place;
use analysis::stats::share::{Share, Tally};
use replay::Change;
use replay::gain::Gain;
use timeline::{Name, NameIndex, SliceKind, StackIndex, TrackIndex};

/// Samples of a step, for their places in it to mean something.
const MIN_SAMPLES: usize = 5;

pub struct OnPath {
    /// Of the steps.
    pub share: Share,
    pub confidence: f64,
    /// The program's own line that most of it is under.
    pub place: Place,
    pub evidence: Vec<Evidence>,
    stretches: Vec<(TrackIndex, u64, u64)>,
}

/// The time under functions that fit. `also` is asked of samples. Err: what the rule says, because nothing can be told or it is
/// not surely near the `level` of the step from which it is worth a word.
pub fn find(
    case: &Case,
    level: f64,
    what: &str,
    fits: impl Fn(&Name) -> bool,
    also: impl Fn(&StepSample) -> bool,
) -> Result<OnPath, Verdict> {
    let names = &case.timeline.names;
    let wanted: Vec<bool> = (0..names.len() as u32).map(|name| fits(names.get(NameIndex(name)))).collect();
    let found = match case.without_samples() {
        None => by_samples(case, level, what, &wanted, also),
        Some(_) if case.breakdown.by_calls => by_calls(case, &wanted),
        Some(reason) => return Err(Verdict::Abstain(reason)),
    };
    if found.share.mid < level || found.share.low < level / 2.0 {
        return Err(Verdict::Silent);
    }
    Ok(found)
}

fn by_samples(case: &Case, level: f64, what: &str, wanted: &[bool], also: impl Fn(&StepSample) -> bool) -> OnPath {
    let stacks = &case.timeline.stacks;
    let mut has = vec![false; stacks.len()];
    for index in 1..has.len() {
        let frame = stacks.frame(StackIndex(index as u32));
        // A stack's parent comes before it.
        let parent = has.get(frame.parent.0 as usize).copied().unwrap_or(false);
        has[index] = parent || wanted.get(frame.name.0 as usize).copied().unwrap_or(false);
    }
    let seen = |one: &StepSample| has.get(case.sample(one).stack.0 as usize).copied().unwrap_or(false) && also(one);
    let (share, _) = case.share(seen);
    let mut lines = std::collections::HashMap::<StackIndex, u64>::new();
    let mut stretches = Vec::new();
    for (place, one) in case.samples.all.iter().enumerate().filter(|(_, one)| seen(one)) {
        let (start, end) = stands_for(case, place);
        stretches.push((case.track(one), start, end));
        *lines.entry(case.blame().frame(case, one)).or_default() += 1;
    }
    let most = lines.into_iter().max_by_key(|(frame, count)| (*count, u32::MAX - frame.0));
    OnPath {
        share,
        confidence: share.surely_above(level / 2.0) * case.coverage(),
        place: most.map(|(frame, _)| case.place(frame)).unwrap_or_default(),
        evidence: proof::best_step(case, what, seen).into_iter().collect(),
        stretches,
    }
}

/// The time that a sample stands for: half way to its neighbours in the window and to the window's ends, where these are no hole.
fn stands_for(case: &Case, place: usize) -> (u64, u64) {
    let all = &case.samples.all;
    let (one, time) = (&all[place], case.sample(&all[place]).time);
    let (half, hole) = (case.samples.period_ns / 2, case.samples.period_ns.saturating_mul(5) / 2);
    let window = &case.windows.all()[one.window as usize];
    let neighbour = |other: Option<&StepSample>| {
        other.filter(|other| other.window == one.window).map(|other| case.sample(other).time)
    };
    let before = neighbour(place.checked_sub(1).map(|place| &all[place]));
    let after = neighbour(all.get(place + 1));
    let start = match before {
        Some(before) if time - before <= hole => before + (time - before) / 2,
        None if time.saturating_sub(window.start) <= hole => window.start,
        _ => time.saturating_sub(half),
    };
    let end = match after {
        Some(after) if after - time <= hole => time + (after - time) / 2,
        None if window.end.saturating_sub(time) <= hole => window.end,
        _ => time.saturating_add(half),
    };
    (start.min(time), end.max(time))
}

/// The outermost recorded calls that fit.
fn by_calls(case: &Case, wanted: &[bool]) -> OnPath {
    // Most programs have none of these functions: their calls need not be walked.
    let any = wanted.contains(&true);
    let (slices, mut stretches, mut tally) = (&case.timeline.slices, Vec::new(), Tally::default());
    let mut place = Place::default();
    for (track, windows) in case.windows.tracks().take_while(|_| any) {
        let mut parts = vec![0u64; windows.len()];
        let mut done = 0;
        for index in case.timeline.tracks[track.0 as usize].slices.clone() {
            let slice = slices.get(index);
            let call = matches!(slice.kind, SliceKind::Call | SliceKind::CCall) && wanted[slice.name.0 as usize];
            if let (true, Some(window)) = (call && slice.start >= done, case.windows.at(track, slice.start)) {
                done = slice.end();
                let end = done.min(case.windows.all()[window].end);
                let part = &mut parts[window - windows.start];
                *part = part.saturating_add(end.saturating_sub(slice.start));
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
        let share = self.share.scaled(1.0 - left);
        let few = case.samples.all.len() < MIN_SAMPLES * case.windows.all().len().max(1);
        if few && !case.breakdown.by_calls {
            // So few samples tell how much it is, and not where in each step: no more than without any code of the host.
            let most = case.gain(&[Change::HostCode(left)], Share::exactly(1.0));
            let own = Gain::from(share);
            let by = if own.mid <= most.mid { own } else { most };
            return Gain {
                low: own.low.min(most.low),
                mid: own.mid.min(most.mid),
                high: own.high.min(most.high),
                ..by
            };
        }
        let chosen = case.chosen();
        let inside = |one: &&(TrackIndex, u64, u64)| chosen.is_none_or(|chosen| chosen.has(one.1));
        let stretches = self.stretches.iter().filter(inside).copied().collect();
        case.gain(&[Change::Stretches(stretches, left)], share)
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
