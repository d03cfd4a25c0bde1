//! How much of a function's time is its own Python code, and which of the functions that it calls has most of the rest.

use crate::action::Precondition;
use crate::rule::Case;
use analysis::frames::{DEEP, is};
use analysis::host::step_samples::{Doing, StepSample};
use analysis::phrase;
use analysis::place::Place;
use std::collections::HashMap;
use timeline::{NameIndex, StackIndex};

/// More than half is the meaning of "most", and no level to choose.
const MAJORITY: f64 = 0.5;

#[derive(Debug, Default)]
pub struct OwnTime {
    /// Samples of the function, and those whose last line of Python is its own.
    all: u64,
    own: u64,
    /// The function that it calls which most of the others are in.
    callee: Option<(Place, u64)>,
}

impl OwnTime {
    pub fn of(case: &Case, place: &Place) -> OwnTime {
        let mut time = OwnTime::default();
        let mut callees: HashMap<NameIndex, (StackIndex, u64)> = HashMap::new();
        let running = |one: &&StepSample| matches!(one.doing, Doing::Python | Doing::Native);
        for one in case.samples.all.iter().filter(running) {
            let home = case.blame().frame(case, one);
            let name = case.timeline.names.get(case.timeline.stacks.frame(home).name);
            if place.function.as_deref() != Some(&*name.text) || place.file.as_deref().unwrap_or("") != &*name.file {
                continue;
            }
            time.all += 1;
            match callee(case, home, case.sample(one).stack) {
                None => time.own += 1,
                Some(frame) => {
                    callees.entry(case.timeline.stacks.frame(frame).name).or_insert((frame, 0)).1 += 1;
                }
            }
        }
        let most = callees.into_values().max_by_key(|(frame, count)| (*count, u32::MAX - frame.0));
        time.callee = most.map(|(frame, count)| (Place { line: None, ..case.place(frame) }, count));
        time
    }

    fn own_share(&self) -> f64 {
        self.own as f64 / self.all.max(1) as f64
    }

    /// That most of its time is in its own lines. Without samples its time is that of recorded calls, which is its own.
    pub fn is_own(&self) -> Precondition {
        match self.all == 0 || self.own_share() >= MAJORITY {
            true => Precondition::Holds,
            false => {
                let called = phrase::percent(1.0 - self.own_share());
                Precondition::Fails(format!("{called} of its time is in what it calls"))
            }
        }
    }

    /// The function that most of its time is in, and how much, where that is not its own lines.
    pub fn called(&self, min_samples: f64) -> Option<(String, String)> {
        let (place, count) = self.callee.as_ref().filter(|(_, count)| *count as f64 >= min_samples)?;
        let share = phrase::percent(*count as f64 / self.all as f64);
        (self.own_share() < MAJORITY).then(|| (phrase::place(place), share))
    }
}

/// What the function at `home` called on this stack. None: a line of its own, or of a lambda or comprehension in it, is the last of Python.
fn callee(case: &Case, home: StackIndex, stack: StackIndex) -> Option<StackIndex> {
    let stacks = &case.timeline.stacks;
    let own = |frame: StackIndex| {
        frame == home
            || (case.frames.bits(stacks.frame(frame).name) & is::PIECE != 0 && case.frames.home(frame) == home)
    };
    let above = stacks.walk(case.frames.python(stack)).take(DEEP).map(|(frame, _)| frame);
    above.take_while(|frame| !own(*frame)).last()
}
