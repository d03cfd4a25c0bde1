//! The steps replayed with something changed, as text: what a step takes now and then, what was changed, what limits it, and
//! what was assumed.

pub mod json;

use crate::style::{Ink, Style, left};
use crate::units::{count, duration};
use ::replay::{Answer, Limit};
use analysis::device::kernel_name;
use analysis::phrase;
use analysis::steps::{StepSource, Steps};
use diagnosis::wording::replay;
use std::io::{self, Write};

/// Names of kernels are long; what was changed is told by the most frequent.
const MOST_NAMES: usize = 3;
const LONGEST_NAME: usize = 60;
const LONGEST_LINE: usize = 120;

pub fn write(changes: &str, steps: &Steps, answer: &Answer, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let noun = match steps.source {
        StepSource::Whole => "the whole recording",
        _ => &steps.name,
    };
    let check = answer.check;
    let replayed = format!(
        "{} replayed, {} recorded (mean): off by {:.1} %, worst step {:.1} %",
        duration(check.replayed_ns),
        duration(check.recorded_ns),
        check.off * 100.0,
        check.worst * 100.0
    );
    let part = |ns: i64| format!("{} ({})", signed(ns), phrase::percent(ns as f64 / answer.now_ns.max(1) as f64));
    let gain = format!("{} per step; low {}, high {}", part(answer.mid_ns), part(answer.low_ns), part(answer.high_ns));
    for (label, text) in [
        ("What if", style.fit(changes, LONGEST_LINE)),
        ("Step", format!("{}, {} steps", style.fit(noun, LONGEST_NAME), count(check.steps))),
        ("Replay", replayed),
        ("Now", format!("{} (mean)", duration(answer.now_ns))),
        ("Then", duration(answer.then_ns)),
        ("Gain", gain),
        ("Changed", changed(answer, style)),
        ("Bottleneck", limit(answer.before.first(), style)),
        ("After it", limit(answer.after.first(), style)),
    ] {
        writeln!(out, "{} {}", style.ink(Ink::Heading, &left(label, 10)), style.plain(&text))?;
    }
    writeln!(out, "\n{}", style.ink(Ink::Heading, "Assumed"))?;
    answer.assumed.iter().try_for_each(|line| writeln!(out, "- {}", style.plain(&replay::assumption(line))))
}

/// What was changed, the most frequent first.
fn most_changed(answer: &Answer) -> Vec<(String, u64)> {
    let mut changed: Vec<_> = answer.changed.iter().map(|(what, count)| (replay::changed(what), *count)).collect();
    changed.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    changed
}

fn changed(answer: &Answer, style: &Style) -> String {
    let changed = most_changed(answer);
    let most = changed.iter().take(MOST_NAMES);
    let mut names: Vec<String> =
        most.map(|(name, number)| format!("{} × {}", count(*number), short(name, style))).collect();
    if changed.len() > MOST_NAMES {
        names.push(format!("{} more", count((changed.len() - MOST_NAMES) as u64)));
    }
    names.join(", ")
}

fn limit(limit: Option<&Limit>, style: &Style) -> String {
    let Some(limit) = limit else { return "unknown".into() };
    let most = if limit.name.is_empty() { String::new() } else { format!(", mostly {}", short(&limit.name, style)) };
    format!("{}: {} of the step{most}", replay::limit(limit), phrase::percent(limit.share))
}

fn short(name: &str, style: &Style) -> String {
    style.fit(&kernel_name::bare(name), LONGEST_NAME)
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "" };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}
