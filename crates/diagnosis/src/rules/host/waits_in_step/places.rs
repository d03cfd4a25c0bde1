//! Where a function waits: every line of it that waits for long is a finding of its own, with its own share and gain. Short waits at
//! many lines of one function are one finding, which names the function and the share of each line.

use super::MIN_SHARE;
use crate::finding::Evidence;
use crate::rule::Case;
use analysis::host::blame::Blamed;
use analysis::host::step_samples::StepSample;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use timeline::StackIndex;

/// One thing to say: these lines of a function wait for this share of the steps.
pub struct FunctionWaits {
    /// The line with the most of it.
    pub frame: StackIndex,
    pub share: Share,
    lines: Vec<u32>,
}

impl FunctionWaits {
    /// Whether a sample of the function is at one of its lines.
    pub fn at(&self, line: u32) -> bool {
        self.lines.contains(&line)
    }

    /// More than one line: none of them has enough by itself.
    pub fn scattered(&self) -> bool {
        self.lines.len() > 1
    }
}

/// A function that waits, and the lines it waits at with the share of each, largest first.
pub struct Places {
    pub lines: Vec<(StackIndex, Share)>,
}

impl Places {
    pub fn of(case: &Case, function: &Blamed, waits: impl Fn(&StepSample) -> bool) -> Places {
        let share = |frame: StackIndex| {
            let at = case.timeline.stacks.frame(frame);
            case.share(|one| waits(one) && is_at(case, one, at.name, at.line)).0
        };
        Places { lines: function.lines.iter().map(|(frame, _)| (*frame, share(*frame))).collect() }
    }

    /// What is worth a finding, given the share of the whole function.
    pub fn above_level(&self, case: &Case, function: Share) -> Vec<FunctionWaits> {
        let line = |frame: &StackIndex| case.timeline.stacks.frame(*frame).line;
        let long = self.lines.iter().filter(|(_, share)| enough(case, *share));
        let each = long.map(|(frame, share)| FunctionWaits { frame: *frame, share: *share, lines: vec![line(frame)] });
        let found: Vec<FunctionWaits> = each.collect();
        match self.lines.first() {
            Some((frame, _)) if found.is_empty() && enough(case, function) => {
                let lines = self.lines.iter().map(|(frame, _)| line(frame)).collect();
                vec![FunctionWaits { frame: *frame, share: function, lines }]
            }
            _ => found,
        }
    }

    /// The lines and their shares: `31 % at service.py:44, 12 % at service.py:90`. None: it waits at one line only.
    pub fn text(&self, case: &Case) -> Option<String> {
        let at = |frame: StackIndex| phrase::line(&case.place(frame));
        let each = |(frame, share): &(StackIndex, Share)| format!("{} at {}", phrase::percent(share.mid), at(*frame));
        let mut said: Vec<String> = self.lines.iter().take(MOST_LINES).map(each).collect();
        if let Some(more) = self.lines.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
            said.push(format!("the rest at {}", phrase::counted(more as u64, "other line")));
        }
        (self.lines.len() > 1).then(|| said.join(", "))
    }

    /// `3 lines`
    pub fn count(&self) -> String {
        phrase::counted(self.lines.len() as u64, "line")
    }

    pub fn evidence(&self, case: &Case, place: &Place) -> Option<Evidence> {
        let function = place.function.as_deref().unwrap_or("the function");
        let lines = self.count();
        let said = self.text(case)?;
        Some(Evidence::new(format!("{function} waits at {lines}: {said}")).number("lines", self.lines.len() as f64))
    }
}

/// As many as fit a sentence.
const MOST_LINES: usize = 3;

fn enough(case: &Case, share: Share) -> bool {
    let min_share = case.threshold(MIN_SHARE);
    share.mid >= min_share && share.low >= min_share / 2.0
}

pub fn is_at(case: &Case, one: &StepSample, name: timeline::NameIndex, line: u32) -> bool {
    let at = case.timeline.stacks.frame(case.blame().frame(case, one));
    at.name == name && at.line == line
}
