//! Why these are the steps, what else could have been, and what was left out.

use super::origin;
use analysis::phrase::{self, count, percent};
use analysis::steps::reason::{ChosenBy, Holds, Whole};
use analysis::steps::startup::Startup;
use analysis::steps::{BusiestThread, Differs, KERNEL_SEQUENCE, Repeats, RunnerUp, StepKind, Steps};

/// One sentence: why these.
pub fn why(steps: &Steps) -> String {
    let reason = &steps.reason;
    if let Some(outside) = reason.outside {
        return format!("{}; analysed: {}", origin::why(outside), whole_recording(steps));
    }
    let mut text = match &steps.not_found {
        Some(wanted) if wanted == KERNEL_SEQUENCE => "no kernel sequence repeats well enough; instead: ".to_owned(),
        Some(wanted) => format!("no step or scope named \"{wanted}\"; instead: "),
        None => String::new(),
    };
    if let Some(marks) = &steps.passed_over {
        text += &format!("\"{}\" is marked, but holds only {}; instead: ", marks.name, held(&marks.holds));
    }
    text += &chosen(steps);
    if let Some(holds) = &reason.holds {
        let they = if reason.chosen.is_step() { "they" } else { "the steps" };
        text += &format!("; {they} cover {}", held(holds));
    }
    if let Some(other) = steps.runner_up.as_ref().filter(|_| reason.has_rival) {
        text += &format!("; next best: {}", runner_up(other));
    }
    let requested = matches!(reason.chosen, ChosenBy::Request(_) | ChosenBy::RequestedSequence(_));
    let of_thread = matches!(&reason.chosen, ChosenBy::Whole(whole) if whole.share.is_none() || steps.thread.is_none());
    if steps.confidence < 1.0 && !requested && !of_thread {
        text += &format!(" (confidence {:.2})", steps.confidence);
    }
    if reason.cut_by_windows {
        text += "; none lies fully inside a GPU recording window: only the recorded parts are analysed";
    }
    for (excluded, where_) in [
        (reason.outside_windows, "lie outside the GPU recording windows and are"),
        (reason.with_operators, "in which operators were recorded are"),
    ] {
        if let Some(excluded) = excluded {
            text += &format!("; {} of {} {where_} excluded", count(excluded.count), count(excluded.of));
        }
    }
    text
}

fn chosen(steps: &Steps) -> String {
    let what = match &steps.reason.chosen {
        ChosenBy::Request(name) => return format!("\"{name}\", as requested"),
        ChosenBy::RequestedSequence(repeats) => {
            return format!("\"{KERNEL_SEQUENCE}\", as requested; {}", sequence(repeats));
        }
        ChosenBy::Whole(whole) => return self::whole(steps, whole),
        ChosenBy::KindOfStep(kinds) => format!("of {kinds} kinds of steps, the one that explains most"),
        ChosenBy::EngineMarkers => "from the serving engine's markers".into(),
        ChosenBy::StepMarkers { ours: true } => "from `step()` markers".into(),
        ChosenBy::StepMarkers { ours: false } => "from the program's step markers".into(),
        ChosenBy::Scope => "the scope that explains most".into(),
        ChosenBy::Nvtx => "the NVTX range that explains most".into(),
        ChosenBy::Entry => "the calls into the program's entry point".into(),
        ChosenBy::Turn => "from one call into the program's entry point to the next".into(),
        ChosenBy::Sequence(repeats) => sequence(repeats),
    };
    match &steps.reason.chosen {
        chosen if chosen.is_step() || !steps.reason.unmarked => what,
        ChosenBy::Sequence(_) => format!("no step markers, and no scope or range explains more; {what}"),
        _ => format!("no step markers; {what}"),
    }
}

fn whole(steps: &Steps, whole: &Whole) -> String {
    if steps.thread.is_none() {
        return "no timed events recorded".into();
    }
    let repeats = match &whole.little {
        Some((name, holds)) => format!("\"{name}\" repeats, but holds only {}", held(holds)),
        None if whole.kernels => "no step, scope, range or kernel sequence repeats three times".into(),
        None => "no step, scope or range repeats three times".into(),
    };
    let share = whole.share.map(|share| format!(", {} of all threads' running time", percent(share)));
    format!("{repeats}; analysed: {}{}", whole_recording(steps), share.unwrap_or_default())
}

fn whole_recording(steps: &Steps) -> String {
    let thread = steps.thread.as_ref().map(thread).unwrap_or_default();
    let startup = steps.startup.map(|startup| format!(", without {} of start-up", phrase::duration(startup.dur())));
    format!("the whole recording of {thread}{}", startup.unwrap_or_default())
}

/// After "of": which thread it is, by name where there are several.
pub fn thread(thread: &BusiestThread) -> String {
    let words = if thread.after_startup { "the busiest thread after start-up" } else { "its busiest thread" };
    match &thread.name {
        Some(name) => format!("{words} ({name})"),
        None => words.to_owned(),
    }
}

fn sequence(repeats: &Repeats) -> String {
    let launches = phrase::counted(repeats.launches, "launch");
    format!("a sequence of {launches} repeats {} times, {} alike", count(repeats.times), percent(repeats.alike))
}

/// "98 % of kernel time and 95 % of thread running time".
fn held(holds: &Holds) -> String {
    let kernels = holds.kernels.map(|share| format!("{} of kernel time", percent(share)));
    let running = holds.running.map(|share| format!("{} of thread running time", percent(share)));
    let both: Vec<String> = [kernels, running].into_iter().flatten().collect();
    match both.is_empty() {
        true => format!("{} of thread time", percent(holds.time)),
        false => both.join(" and "),
    }
}

fn runner_up(other: &RunnerUp) -> String {
    let differs = match other.differs {
        Differs::Part => "a part of what repeats",
        Differs::More => "more often",
        Differs::Fewer => "less often",
        Differs::Borders => "as often, with other begins and ends",
    };
    format!("\"{}\" ({}, {differs})", other.name, percent(other.share))
}

/// "\"prefill\" (12, 31 % of the work, p50 40.0 ms)".
pub fn kind(kind: &StepKind) -> String {
    let (count, share) = (count(kind.count), percent(kind.share));
    format!("\"{}\" ({count}, {share} of the work, p50 {})", kind.name, phrase::duration(kind.p50_ns))
}

/// "2.10 s, 800 ms of it imports".
pub fn startup(startup: &Startup) -> String {
    let imports = startup.notable_imports_ns().map(|ns| format!(", {} of it imports", phrase::duration(ns)));
    phrase::duration(startup.dur()) + &imports.unwrap_or_default()
}
