//! A reading of the recording: one way to cut it into steps, with how well it explains what was recorded, how sure that makes it among
//! the others, and why it is chosen.

use super::candidates::{Steady, last_seen};
use super::choose::{MOST, Search};
use super::evidence::{Evidence, Near};
use super::reason::{ChosenBy, Reason};
use super::score::Measured;
use super::{Differs, RunnerUp, StepSource, sequence};
use timeline::Timeline;

pub enum Cut {
    /// The slices of a candidate, by its place among them.
    Slices(usize),
    /// The turns of the loop around them.
    Turns(usize),
    Sequence(sequence::Found),
}

pub struct Reading {
    pub cut: Cut,
    pub name: String,
    pub source: StepSource,
    pub measured: Measured,
    /// How sure it is that this is one thing that repeats: 1 where something was marked.
    pub told: f64,
    pub unfinished: u64,
}

impl Reading {
    pub fn score(&self) -> f64 {
        self.measured.score() * self.told
    }
}

/// The periods of what is launched, measured as the slices are.
pub fn of_sequence(timeline: &Timeline, found: sequence::Found, evidence: &Evidence, steady: &Steady) -> Reading {
    let mut measured = Measured::default();
    measured.kernels = evidence.kernels();
    let mut near = Near::default();
    for steps in found.steps.chunk_by(|a, b| a.track == b.track) {
        for step in steps {
            measured.add(step.dur(), step.dur(), evidence.inside(&mut near, step.track, step.start, step.end));
        }
        let (first, last) = (steps[0], steps[steps.len() - 1]);
        let (from, to) = steady[first.track.0 as usize].unwrap_or((first.start, last.end));
        let from = from.min(first.start);
        let to = to.max(last.end).max(last_seen(timeline, first.track.0 as usize));
        measured.thread_time = measured.thread_time.saturating_add(to - from);
        measured.thread_active += evidence.inside(&mut near, first.track, from, to.saturating_add(1)).active;
    }
    Reading {
        name: "iteration".into(),
        source: StepSource::Sequence,
        measured,
        told: found.confidence,
        unfinished: found.unfinished,
        cut: Cut::Sequence(found),
    }
}

/// That these are the steps. They have to stand for the program: below half, by how much of it they explain. What was recognised also
/// has to be told from its best rival: as likely where both explain the same, by the square of their scores where one explains more. A
/// part of a step is no rival of it, nor is another kind of step (`beside`).
pub fn confidence(all: &[Reading], place: usize, beside: &[usize]) -> f64 {
    let chosen = &all[place];
    let stands = chosen.measured.explained().map_or(1.0, |share| (share / MOST).min(1.0));
    if matches!(chosen.source, StepSource::Step | StepSource::Scope) {
        return stands;
    }
    let rival = |(other, one): &(usize, &Reading)| {
        *other != place
            && !beside.contains(other)
            && !one.measured.is_part()
            && !matches!(one.source, StepSource::Step | StepSource::Scope)
    };
    let rivals = all.iter().enumerate().filter(rival).map(|(_, one)| one.score());
    let (best, next) = (chosen.score().powi(2), rivals.fold(0.0, f64::max).powi(2));
    let told = if best > 0.0 { best / (best + next) } else { 0.0 };
    stands * told * chosen.told
}

/// Why these. `unmarked`: the program marks nothing.
pub fn reason(search: &Search, all: &[Reading], place: usize, unmarked: bool) -> Reason {
    let chosen = &all[place];
    let kinds = all.iter().filter(|one| one.source == StepSource::Step).count();
    let by = match (&chosen.cut, chosen.source) {
        (Cut::Sequence(found), _) => ChosenBy::Sequence(found.repeats()),
        (_, StepSource::Step) if kinds > 1 => ChosenBy::KindOfStep(kinds),
        (Cut::Slices(number), StepSource::Step) if search.is_engine(*number) => ChosenBy::EngineMarkers,
        (_, StepSource::Scope) => ChosenBy::Scope,
        (_, StepSource::Nvtx) => ChosenBy::Nvtx,
        (_, StepSource::Entry) => ChosenBy::Entry,
        (Cut::Turns(_), _) => ChosenBy::Turn,
        (Cut::Slices(_), _) => ChosenBy::StepMarkers { ours: search.timeline.info.recorded_by.is_ours() },
    };
    let holds = chosen.measured.explained().map(|_| chosen.measured.holds());
    Reason { unmarked, holds, ..Reason::new(by) }
}

/// The best of the others. Kinds of steps are no readings of their own but stand `beside` the chosen one, as do marks that were not
/// used.
pub fn runner_up(all: &[Reading], place: usize, beside: &[usize]) -> Option<RunnerUp> {
    let chosen = &all[place];
    let fits = |(other, one): &(usize, &Reading)| {
        *other != place && !beside.contains(other) && one.source != StepSource::Step && one.score() > 0.0
    };
    let others = all.iter().enumerate().filter(fits);
    let best = others.max_by(|a, b| a.1.score().total_cmp(&b.1.score()).then(b.0.cmp(&a.0)))?.1;
    let differs = match best.measured.count {
        _ if best.measured.is_part() => Differs::Part,
        count if count > chosen.measured.count => Differs::More,
        count if count < chosen.measured.count => Differs::Fewer,
        _ => Differs::Borders,
    };
    Some(RunnerUp {
        name: best.name.clone(),
        source: best.source,
        count: best.measured.count,
        share: best.measured.share(),
        differs,
    })
}
