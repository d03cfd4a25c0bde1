//! What made the slow steps slow, in one sentence, and what its rows are called.

use analysis::device::kernel_name;
use analysis::host::breakdown::PartKind;
use analysis::phrase;
use analysis::place::Place;
use analysis::slow_steps::{self, Comparison, Counted, Difference, Side, SlowSteps};
use analysis::steps::Steps;

/// For somebody who reads nothing else of it.
pub fn sentence(steps: &Steps, slow: &SlowSteps) -> String {
    match slow.comparison {
        Comparison::TooFew => {
            format!("{}: too few to tell slow from typical ones.", phrase::counted(steps.count() as u64, "step"))
        }
        Comparison::NoneSlow => {
            let (p50, p99) = (phrase::duration(steps.p50()), phrase::duration(steps.p99()));
            format!("No slow steps: p99 {p99} is within 10 % of p50 {p50}.")
        }
        Comparison::Overlapping => "Steps overlap on a thread: slow and typical steps are not comparable.".into(),
        Comparison::Compared => compared(steps, slow),
    }
}

/// "Slow steps (3 of 200, +12.4 ms on 40.1 ms) spent 11.8 ms more in garbage collection at serve.py:41."
fn compared(steps: &Steps, slow: &SlowSteps) -> String {
    let who = format!(
        "Slow steps ({} of {}, +{} on {})",
        phrase::count(slow.all_slow as u64),
        phrase::count(steps.count() as u64),
        phrase::duration(slow.slow_ns.saturating_sub(slow.usual_ns)),
        phrase::duration(slow.usual_ns)
    );
    let telling: Vec<&Difference> = slow_steps::telling(slow).collect();
    let more = |one: &Difference| format!("{} more {}", phrase::duration(one.more_ns() as u64), doing(one));
    match telling.as_slice() {
        [] => format!("{who}: no single cause recorded."),
        [one] => format!("{who} spent {}.", more(one)),
        [first, second, ..] => format!("{who} spent {}, and {}.", more(first), more(second)),
    }
}

/// The name of a row: "garbage collection", "Python", "kernels", "idle: copy wait".
pub fn row(side: Side) -> String {
    match side {
        Side::Thread(kind) => kind.name().to_owned(),
        Side::Kernel => "kernels".to_owned(),
        Side::Copy => "exposed copies".to_owned(),
        Side::Idle(cause) => format!("idle: {}", cause.name()),
    }
}

pub fn counted(what: Counted) -> &'static str {
    match what {
        Counted::Kernels => "kernels",
        Counted::Copies => "copies",
        Counted::CopiedBytes => "bytes copied",
        Counted::Allocations => "GPU memory allocations",
    }
}

/// "in garbage collection at serve.py:41", "in kernel gemm".
fn doing(one: &Difference) -> String {
    let at = |place: &Place| match (&place.file, &place.function) {
        (Some(file), _) => match place.line {
            Some(line) => format!(" at {}:{line}", phrase::short_file(file)),
            None => format!(" at {}", phrase::short_file(file)),
        },
        (None, Some(function)) => format!(" at {function}"),
        (None, None) => String::new(),
    };
    let function = one.place.function.as_deref().unwrap_or("");
    match one.side {
        Side::Kernel => format!("in kernel {}", kernel_name::short(one.place.kernel.as_deref().unwrap_or("?"))),
        Side::Copy => "in exposed copies".into(),
        Side::Idle(cause) => match &one.place.api {
            Some(api) => format!("with the GPU idle ({}, {api})", cause.name()),
            None => format!("with the GPU idle ({}{})", cause.name(), at(&one.place)),
        },
        Side::Thread(PartKind::Python | PartKind::Native) => {
            format!("in {function}{}", if one.place.file.is_some() { at(&one.place) } else { String::new() })
        }
        Side::Thread(kind @ (PartKind::Gc | PartKind::Unknown)) => format!("in {}{}", kind.name(), at(&one.place)),
        Side::Thread(kind) => format!("{}{}", kind.name(), at(&one.place)),
    }
}
