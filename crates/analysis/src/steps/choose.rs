//! Which reading of the recording gives the steps. What the program marks wins (`step()` and the markers of engines, then scopes), unless
//! it explains almost nothing and something else explains most; else what explains most wins: NVTX ranges, calls into entry points or
//! the turns of the loop around them, or the periods of what is launched. Where nothing does, the recording is one window.

use super::called::Called;
use super::candidates::{self, Candidate, Counts, Place, REPEATS, Steady};
use super::evidence::Evidence;
use super::reading::{Cut, Reading};
use super::reason::{ChosenBy, Reason};
use super::{Differs, PassedOver, RunnerUp, Step, StepSource, Steps, collect, kinds, reading, sequence, whole};
use timeline::Timeline;

/// Marks that hold less than a tenth of what was recorded explain almost nothing: were everything in them free, the program would
/// still take more than nine tenths of its time.
const ALMOST_NOTHING: f64 = 0.1;
/// Who explains half of a recording explains more of it than anything that excludes it could.
pub const MOST: f64 = 0.5;
/// Where four fifths are explained, no sequence of kernels is looked for: it costs more than all else, and could add a fifth.
const ENOUGH: f64 = 0.8;
/// The turn of a loop is taken for its calls where it explains a twentieth more: else nothing happens between them.
const NOTICEABLY: f64 = 1.05;

pub fn choose(timeline: &Timeline, wanted: Option<&str>) -> Steps {
    // A name that is asked for with its number is that one.
    let exact = |wanted: &str| {
        (0..timeline.names.len() as u32).any(|name| timeline.names.text(timeline::NameIndex(name)) == wanted)
    };
    let numbered = !wanted.is_some_and(exact);
    let mut called = Called::new(timeline, numbered);
    let counts = candidates::count(timeline, &mut called);
    let evidence = Evidence::new(timeline);
    let (all, steady) = candidates::measure(timeline, &mut called, &counts, &evidence);
    let mut search = Search { timeline, called, counts, evidence, all, steady };
    let Some(wanted) = wanted else { return search.usual() };
    if let Some(found) = search.asked(wanted) {
        return found;
    }
    let mut steps = search.usual();
    steps.not_found = Some(wanted.to_owned());
    steps
}

pub struct Search<'a> {
    pub timeline: &'a Timeline,
    pub called: Called,
    counts: Counts,
    evidence: Evidence<'a>,
    all: Vec<Candidate>,
    steady: Steady,
}

impl Search<'_> {
    /// What was asked for by name.
    fn asked(&mut self, wanted: &str) -> Option<Steps> {
        let reason = || Reason::new(ChosenBy::Request(wanted.into()));
        for place in Place::ALL {
            let here = self.counts[place as usize].iter().zip(&self.called.labels).zip(0u32..);
            let mut named = here.filter(|((one, label), _)| one.count > 0 && label.text == wanted);
            if let Some((_, label)) = named.next() {
                let steps = collect::slices(self.timeline, &mut self.called, (place, label));
                let unfinished = self.counts[place as usize][label as usize].open;
                return Some(Steps { unfinished, ..Steps::new(wanted.into(), place.source(), reason(), steps) });
            }
        }
        let readings = self.readings();
        if let Some(turns) = readings.iter().find(|one| one.source == StepSource::Turn && one.name == wanted) {
            let steps = self.collect(turns);
            return Some(Steps::new(wanted.into(), StepSource::Turn, reason(), steps));
        }
        let found = (wanted == sequence::NAME).then(|| sequence::find(self.timeline)).flatten()?;
        let reason = Reason::new(ChosenBy::RequestedSequence(found.repeats()));
        let steps = Steps::new("iteration".into(), StepSource::Sequence, reason, found.steps);
        Some(Steps { unfinished: found.unfinished, confidence: found.confidence, ..steps })
    }

    /// Every candidate as a reading of the recording.
    fn readings(&self) -> Vec<Reading> {
        let mut all = Vec::new();
        for (number, one) in self.all.iter().enumerate() {
            let name = &self.called.labels[one.label as usize].text;
            let unfinished = self.counts[one.place as usize][one.label as usize].open;
            all.push(Reading {
                cut: Cut::Slices(number),
                name: name.clone(),
                source: one.place.source(),
                measured: one.measured.clone(),
                told: 1.0,
                unfinished,
            });
            if let Some(turns) = one.turns.as_ref().filter(|turns| turns.are_steps()) {
                all.push(Reading {
                    cut: Cut::Turns(number),
                    name: format!("iteration ({name})"),
                    source: StepSource::Turn,
                    measured: turns.measured.clone(),
                    told: 1.0,
                    unfinished,
                });
            }
        }
        all
    }

    /// Whether an engine marks steps with it.
    pub fn is_engine(&self, number: usize) -> bool {
        self.called.labels[self.all[number].label as usize].is_step
    }

    pub fn collect(&mut self, reading: &Reading) -> Vec<Step> {
        match &reading.cut {
            Cut::Slices(number) => {
                let one = &self.all[*number];
                collect::slices(self.timeline, &mut self.called, (one.place, one.label))
            }
            Cut::Turns(number) => {
                let (label, entries) =
                    (self.all[*number].label, self.all.iter().filter(|one| one.place == Place::Entry));
                let others: Vec<u32> = entries.map(|one| one.label).filter(|other| *other != label).collect();
                let ends = self.all[*number].turns.as_ref().is_some_and(|turns| turns.ends_when_crossed());
                collect::turns(self.timeline, &mut self.called, label, &others, ends)
            }
            Cut::Sequence(found) => found.steps.clone(),
        }
    }

    /// What nobody asked for by name.
    fn usual(&mut self) -> Steps {
        let mut all = self.readings();
        settle_turns(&mut all);
        let best = |all: &[Reading], fits: &dyn Fn(&Reading) -> bool| {
            let scores = (0..all.len()).filter(|place| fits(&all[*place]));
            scores.max_by(|a, b| all[*a].score().total_cmp(&all[*b].score()).then(b.cmp(a)))
        };
        let of = |source: StepSource| move |one: &Reading| one.source == source;
        let repeats = |one: &Reading| one.measured.count >= REPEATS;
        let own = best(&all, &|one| of(StepSource::Step)(one) && repeats(one))
            .or_else(|| best(&all, &of(StepSource::Step)))
            .or_else(|| best(&all, &of(StepSource::Scope)));
        let explains = |one: &Reading, least: f64| one.measured.explained().is_none_or(|share| share >= least);
        if let Some(own) = own.filter(|own| explains(&all[*own], ALMOST_NOTHING)) {
            return self.steps(&all, own, None);
        }
        let recognised =
            |one: &Reading| own.is_none_or(|own| all_but(&all, own, one)) && one.source != StepSource::Step;
        let enough = best(&all, &recognised).is_some_and(|place| explains(&all[place], ENOUGH));
        if !enough && let Some(found) = sequence::find(self.timeline) {
            all.push(reading::of_sequence(self.timeline, found, &self.evidence, &self.steady));
        }
        let least = if own.is_some() { MOST } else { ALMOST_NOTHING };
        let fits = |one: &Reading| {
            one.source != StepSource::Step && own.is_none_or(|own| all_but(&all, own, one)) && explains(one, least)
        };
        match (best(&all, &fits), own) {
            (Some(place), own) => self.steps(&all, place, own),
            (None, Some(own)) => self.steps(&all, own, None),
            (None, None) => {
                let best = best(&all, &|_| true).map(|place| &all[place]);
                let little = best.map(|one| (one.name.clone(), one.measured.holds()));
                whole::whole(self.timeline, little)
            }
        }
    }

    /// The steps of a reading; `own` are marks that it replaces.
    fn steps(&mut self, all: &[Reading], place: usize, own: Option<usize>) -> Steps {
        let chosen = &all[place];
        let mut reason = reading::reason(self, all, place, own.is_none());
        let passed_over = own.map(|own| &all[own]).map(|own| PassedOver {
            name: own.name.clone(),
            source: own.source,
            count: own.measured.count,
            share: own.measured.share(),
            holds: own.measured.holds(),
        });
        let steps = self.collect(chosen);
        let kinds = kinds::others(self, all, place, &steps);
        let beside: Vec<usize> = kinds.iter().map(|(other, _)| *other).chain(own).collect();
        let runner_up = reading::runner_up(all, place, &beside);
        // That a step which was marked has parts is no news.
        let is_news = |other: &&RunnerUp| chosen.source != StepSource::Step || other.differs != Differs::Part;
        reason.has_rival = runner_up.as_ref().is_some_and(|other| is_news(&other));
        let mut steps = Steps::new(chosen.name.clone(), chosen.source, reason, steps);
        steps.unfinished = chosen.unfinished;
        steps.confidence = reading::confidence(all, place, &beside);
        steps.share = chosen.measured.explained();
        steps.kinds = kinds.into_iter().map(|(_, kind)| kind).collect();
        (steps.runner_up, steps.passed_over) = (runner_up, passed_over);
        steps
    }
}

fn all_but(all: &[Reading], place: usize, one: &Reading) -> bool {
    !std::ptr::eq(&all[place], one)
}

/// Of calls and the turns of the loop around them only one stays.
fn settle_turns(all: &mut Vec<Reading>) {
    let mut place = 1;
    while place < all.len() {
        if all[place].source == StepSource::Turn {
            let turns = all[place].score() >= NOTICEABLY * all[place - 1].score();
            all.remove(if turns { place - 1 } else { place });
        } else {
            place += 1;
        }
    }
}
