//! Which of the recorded operators make up a step: those inside each step that was looked at, where a look has a whole one, else those of each turn
//! of the loop that a look followed.

use crate::operators::{Look, Op};
use crate::steps::{Step, StepSource, Steps};

pub struct Turns<'a> {
    pub all: Vec<Vec<Op<'a>>>,
    pub are_steps: bool,
    pub is_cut: bool,
}

pub fn find<'a>(steps: &Steps, looks: &[Look<'a>]) -> Turns<'a> {
    let (all, are_steps) = match of_steps(steps, looks) {
        Some(all) => (all, true),
        None => (looks.iter().flat_map(Look::turns).map(<[Op]>::to_vec).collect(), false),
    };
    // A look that ended early knows only the first operators of its last turn.
    let is_cut = |ops: &Vec<Op>| ops.iter().any(|op| op.is_last);
    let (cut, whole): (Vec<Vec<Op>>, Vec<Vec<Op>>) = all.into_iter().partition(is_cut);
    match whole.is_empty() {
        true => Turns { is_cut: !cut.is_empty(), all: cut, are_steps },
        false => Turns { all: whole, are_steps, is_cut: false },
    }
}

/// None: there are no steps, or one holds several turns, of which a look followed only some.
fn of_steps<'a>(steps: &Steps, looks: &[Look<'a>]) -> Option<Vec<Vec<Op<'a>>>> {
    if steps.source == StepSource::Whole {
        return None;
    }
    let those: &[Step] = if steps.looked_at.is_empty() { &steps.steps } else { &steps.looked_at };
    let mut all = Vec::new();
    for look in looks {
        for step in those.iter().filter(|step| step.track == look.track) {
            let first = look.ops.partition_point(|op| op.start < step.start);
            let inside = look.ops[first..].iter().take_while(|op| op.start < step.end);
            let ops: Vec<Op> = inside.cloned().collect();
            if ops.iter().any(|op| op.turn != ops[0].turn) {
                return None;
            }
            all.extend((!ops.is_empty()).then_some(ops));
        }
    }
    (!all.is_empty()).then_some(all)
}
