//! What a library does inside a call of its model: where a program calls a model of transformers or torchvision, its own line has all of that, spread thin over
//! the functions of the layers, and much of it is Python. It is the work that was asked for, as native code is: no line of the program could do less of it.

use crate::rule::Case;
use analysis::frames::is;
use analysis::host::model_calls::ModelCalls;
use analysis::host::step_samples::StepSample;
use std::collections::HashMap;
use timeline::NameIndex;

pub struct ModelWork<'a> {
    models: &'a ModelCalls,
}

/// None: one function of a library has most of what it does there for this function of the program, and may be called less, or it does nothing there.
pub fn of<'a>(case: &Case, models: &'a ModelCalls, fits: impl Fn(&StepSample) -> bool) -> Option<ModelWork<'a>> {
    let (mut functions, mut count): (HashMap<NameIndex, u64>, u64) = (HashMap::new(), 0);
    let work = ModelWork { models };
    for one in case.samples.all.iter().filter(|one| fits(one) && work.has(case, one)) {
        // What has no line of the program's own below it is called by the library itself.
        let called = case.timeline.stacks.frame(case.blame().frame(case, one)).name;
        if case.frames.bits(called) & is::LIBRARY == 0 {
            *functions.entry(top(case, one)).or_default() += 1;
        }
        count += 1;
    }
    let most = functions.into_values().max().unwrap_or(0);
    (count > 0 && most * 2 <= count).then_some(work)
}

/// The deepest Python function.
fn top(case: &Case, one: &StepSample) -> NameIndex {
    case.timeline.stacks.frame(case.frames.python(case.sample(one).stack)).name
}

impl ModelWork<'_> {
    /// Whether a sample shows it. Making a tensor of a list, value by value, is what the program asked for.
    pub fn has(&self, case: &Case, one: &StepSample) -> bool {
        let of_values = case.frames.on_top(case.sample(one).stack) & is::FROM_VALUES != 0;
        case.frames.bits(top(case, one)) & is::LIBRARY != 0 && !of_values && self.models.holds(case, one)
    }
}
