//! What a rule asks for its gain: it names what would change, and the steps are replayed with that. Where they cannot be, what
//! was recorded stands in, and the gain says so.

mod touched;
mod work;

use crate::answer::{NotThere, Refusal};
use crate::expression::Change;
use crate::gain::{ChangeId, ChangeKind, Gain, GainBy};
use crate::player::Player;
use analysis::StepAnalysis;
use analysis::host::breakdown::PartKind;
use analysis::host::step_samples::{Doing, StepSample};
use analysis::stats::share::Share;
use analysis::steps::windows::Window;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use timeline::TrackIndex;

/// In periods: a sample stands for no more than this to either side.
const HOLE: u64 = 5;

/// So many samples in a step show where in it something is; with fewer, only how much there is.
const DENSE: u64 = 8;

/// So many samples settle what part of one finding's time is another's to a per cent, and are compared in a millisecond.
const MOST_STRETCHES: usize = 20_000;

/// The steps as they were, and as they would be with changes.
pub struct ReplayedSteps<'a> {
    analysis: StepAnalysis<'a>,
    player: OnceLock<Result<Player<'a>, Refusal>>,
    /// What rules asked for: a gain refers to it by its place.
    asked: Mutex<Vec<Asked>>,
}

/// A change is one of something that was measured.
impl<'a> Deref for ReplayedSteps<'a> {
    type Target = StepAnalysis<'a>;

    fn deref(&self) -> &StepAnalysis<'a> {
        &self.analysis
    }
}

impl ReplayedSteps<'_> {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Asked {
    changes: Vec<Change>,
    /// What they gain by replay, in percent. None: no replay is possible.
    replayed: Option<f64>,
}

impl<'a> ReplayedSteps<'a> {
    pub fn new(analysis: StepAnalysis<'a>) -> ReplayedSteps<'a> {
        ReplayedSteps { analysis, player: OnceLock::new(), asked: Mutex::new(Vec::new()) }
    }

    /// What was measured, without the replays.
    pub fn into_analysis(self) -> StepAnalysis<'a> {
        self.analysis
    }

    /// Replays some of the steps with changes. An error says why that is not possible.
    pub fn player(&self) -> Result<&Player<'a>, &Refusal> {
        let build = || match self.chosen() {
            Some(chosen) => Player::new(self.timeline, &self.steps, chosen, &self.full_queue),
            None if self.timeline.gpu.is_empty() => Err(Refusal::NotThere(NotThere::Work)),
            None => Err(Refusal::NotThere(NotThere::Steps)),
        };
        self.player.get_or_init(build).as_ref()
    }

    /// What a step would gain by the changes, by replay. What was recorded, or seen in samples, stands in where no replay is
    /// possible: without a GPU, without steps, or where the replay does not reproduce the steps.
    pub fn gain(&self, changes: &[Change], recorded: Share) -> Gain {
        let changes: Vec<Change> = changes.iter().filter(|change| !change.is_empty()).cloned().collect();
        if changes.is_empty() {
            return recorded.into();
        }
        let replayed = self.player().ok().and_then(|player| player.gain(&changes).ok());
        let kind = ChangeKind::of(self.timeline, &changes);
        let mut asked = self.asked();
        let change = Some(ChangeId(asked.len() as u32));
        asked.push(Asked { changes, replayed: replayed.map(|gain| gain.mid) });
        Gain { change, kind, ..replayed.unwrap_or_else(|| recorded.into()) }
    }

    /// Whether a gain stands on a replay, however large its change is said to be.
    pub fn replayed(&self, gain: &Gain) -> bool {
        let asked = self.asked();
        gain.change.and_then(|id| asked.get(id.0 as usize)).is_some_and(|asked| asked.replayed.is_some())
    }

    /// The same gain where at the worst only these of its changes can be made.
    pub fn at_worst(&self, gain: Gain, changes: &[Change], recorded: Share) -> Gain {
        Gain { low: gain.low.min(self.gain(changes, recorded).low), ..gain }
    }

    /// The same for a share that has an error of its own: it comes on top.
    pub fn gain_of(&self, changes: &[Change], recorded: Share) -> Gain {
        let gain = self.gain(changes, recorded);
        if gain.by == GainBy::Recorded || recorded.mid <= 0.0 {
            return gain;
        }
        let (low, high) = (recorded.low / recorded.mid, recorded.high / recorded.mid);
        Gain { low: gain.low * low.min(1.0), high: (gain.high * high.max(1.0)).min(100.0), ..gain }
    }

    /// What it would gain if the time that these samples stand for went.
    pub fn gain_of_samples(&self, fits: impl Fn(&StepSample) -> bool, share: Share) -> Gain {
        let period = self.samples.period_ns;
        if self.timeline.gpu.is_empty() {
            return self.gain_of(&[Change::Stretches(self.stretches_of(&fits), 0.0)], share);
        }
        if period == 0 || self.steps.p50() / DENSE < period {
            return self.gain_of(&self.thinned(&fits), share);
        }
        let chosen = |time: u64| self.chosen().is_some_and(|chosen| chosen.has(time));
        let all = &self.samples.all;
        let stretch = |place: usize| {
            let (one, time) = (&all[place], self.sample(&all[place]).time);
            let window = &self.windows.all()[one.window as usize];
            // As far as to the middle of the way to the next sample: stacks that could not be read leave holes.
            let near = |other: Option<usize>| {
                let other = other.and_then(|other| all.get(other)).filter(|other| other.window == one.window);
                other.map(|other| self.sample(other).time.midpoint(time))
            };
            let from = near(place.checked_sub(1)).unwrap_or(window.start).max(time.saturating_sub(HOLE * period));
            let to = near(Some(place + 1)).unwrap_or(window.end).min(time.saturating_add(HOLE * period));
            chosen(time).then(|| (self.track(one), from.max(window.start), to.min(window.end)))
        };
        let those: Vec<_> = (0..all.len()).filter(|place| fits(&all[*place])).filter_map(stretch).collect();
        self.gain_of(&[Change::Stretches(those, 0.0)], share)
    }

    /// Without a device nothing is replayed, and the steps may be shorter than the time from one sample to the next. What the samples stand for still says
    /// which two findings are of the same time: each is half a period to either side, inside its step. Of many, the same few of every finding.
    fn stretches_of(&self, fits: &impl Fn(&StepSample) -> bool) -> Vec<(TrackIndex, u64, u64)> {
        let (all, half) = (&self.samples.all, self.samples.period_ns / 2);
        let those = all.iter().step_by(all.len().div_ceil(MOST_STRETCHES).max(1)).filter(|one| fits(one));
        let stretch = |one: &StepSample| {
            let (window, time) = (&self.windows.all()[one.window as usize], self.sample(one).time);
            let end = time.saturating_add(half.max(1)).min(window.end);
            (self.track(one), time.saturating_sub(half).max(window.start), end)
        };
        those.map(stretch).filter(|(_, from, to)| from < to).collect()
    }

    /// Samples that are too few to say where: how much of the host's time they are before the first work of a step, between
    /// its works and after the last, which is measured whatever samples were lost.
    fn thinned(&self, fits: &impl Fn(&StepSample) -> bool) -> Vec<Change> {
        let zones: &[[u64; 4]] = self.idle().first().map_or(&[], |device| &device.sums.zones);
        let zone_of = |time: u64| {
            let place = zones.partition_point(|zone| zone[0] <= time).checked_sub(1)?;
            let zone = &zones[place];
            (time < zone[3]).then(|| (place, usize::from(time >= zone[1]) + usize::from(time >= zone[2])))
        };
        let (mut all, mut those) = ([0u32; 3], [0u32; 3]);
        for one in self.samples.all.iter().filter(|one| one.doing != Doing::Gpu) {
            if let Some((_, part)) = zone_of(self.sample(one).time) {
                all[part] += 1;
                those[part] += u32::from(fits(one));
            }
        }
        let chosen = |time: u64| self.chosen().is_some_and(|chosen| chosen.has(time));
        let change = |part: usize| {
            let windows = self.windows.all().iter().filter(|window| chosen(window.start));
            let stretch = |window: &Window| {
                let zone = &zones[zone_of(window.start)?.0];
                Some((window.track, zone[part].max(window.start), zone[part + 1].min(window.end)))
            };
            let stretches = windows.filter_map(stretch).filter(|one| one.1 < one.2).collect();
            Change::Stretches(stretches, 1.0 - f64::from(those[part]) / f64::from(all[part]))
        };
        (0..3).filter(|part| those[*part] > 0).map(change).collect()
    }

    /// What it would gain if the steps' threads did not lose this share of the steps' time, wherever in them that is.
    pub fn gain_of_host(&self, share: Share) -> Gain {
        let of_host = (1.0 - self.breakdown.share(PartKind::Gpu)).max(share.mid).max(f64::MIN_POSITIVE);
        self.gain_of(&[Change::HostCode(1.0 - share.mid / of_host)], share)
    }

    /// The same of time that was measured elsewhere, where these samples show where in the steps it is: without a device they say what is of the same time.
    pub fn gain_of_host_at(&self, fits: impl Fn(&StepSample) -> bool, share: Share) -> Gain {
        let stretches = if self.timeline.gpu.is_empty() { self.stretches_of(&fits) } else { Vec::new() };
        match stretches.is_empty() {
            true => self.gain_of_host(share),
            false => self.gain_of(&[Change::Stretches(stretches, 0.0)], share),
        }
    }

    /// What it would gain without the slices that fit on the steps' own tracks.
    pub fn gain_of_slices(&self, fits: impl Fn(&timeline::Slice) -> bool, share: Share) -> Gain {
        let mut those: Vec<(TrackIndex, u64, u64)> = Vec::new();
        for (track, _) in self.windows.tracks() {
            let slices = self.timeline.tracks[track.0 as usize].slices.clone().map(|at| self.timeline.slices.get(at));
            // Without a device nothing is replayed, and all of them say what is of the same time.
            let chosen = |slice: &timeline::Slice| match self.chosen() {
                Some(chosen) => chosen.has(slice.start),
                None => self.timeline.gpu.is_empty(),
            };
            those.extend(slices.filter(|slice| fits(slice) && chosen(slice)).map(|one| (track, one.start, one.end())));
        }
        self.gain(&[Change::Stretches(those, 0.0)], share)
    }

    /// Whether two gains are of the same time. They are if they are of one change, or if both changes together gain little more than the larger
    /// one alone. Where nothing can be replayed, they are if most of the smaller one's work is the other's too. None: what one of them changes is not known.
    pub fn same_time(&self, a: &Gain, b: &Gain) -> Option<bool> {
        let asked = self.asked();
        let of = |gain: &Gain| gain.change.and_then(|id| asked.get(id.0 as usize));
        let (one, other) = (of(a)?, of(b)?);
        if a.change == b.change || one.changes == other.changes {
            return Some(true);
        }
        match (one.replayed, other.replayed, self.player()) {
            (Some(a), Some(b), Ok(player)) => {
                let both: Vec<Change> = one.changes.iter().chain(&other.changes).cloned().collect();
                player.gain(&both).ok().map(|both| both.mid - a.max(b) < MOSTLY * a.min(b))
            }
            _ => {
                let (one, other) = (touched::by(self, &one.changes), touched::by(self, &other.changes));
                let least = one.ns().min(other.ns());
                (least > 0).then(|| one.shared_ns(&other) as f64 > MOSTLY * least as f64)
            }
        }
    }
}

/// Less than this of the smaller one on top of the larger one, or more than this of its work in both: they are the same.
const MOSTLY: f64 = 0.5;

#[cfg(test)]
mod tests;
