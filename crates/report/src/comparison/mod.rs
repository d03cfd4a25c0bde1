//! Two recordings side by side, as text: what is different around them, the answer in one sentence, the metrics, and the
//! largest changes of a step in each group. What may be noise is said to be.

pub mod json;
pub mod markdown;
pub mod memory;

use crate::escape::visible;
use crate::style::{Ink, Style};
use crate::table::Table;
use crate::units::{count, duration};
use analysis::device::kernel_name;
use analysis::{PartKind, phrase};
use diagnosis::compare::gate::GateState;
use diagnosis::compare::{Change, Comparison, GateResult, Group, MetricChange, relative};
use diagnosis::named::{METRICS, Unit, noise::Noise};
use std::io::{self, Write};

/// How the two are called in the heading.
pub struct Titles<'a> {
    pub a: &'a str,
    pub b: &'a str,
}

/// The metrics that say most; JSON has all.
pub(crate) const SHOWN: [&str; 14] = [
    "step_p50",
    "step_p99",
    "total_time",
    "gpu_busy",
    "kernel_time",
    "kernels",
    "copy_time",
    "exposed_copy_time",
    "copied_mib",
    "api_time",
    "sync_time",
    "implicit_syncs",
    "memory_mib",
    "gpu_memory_mib",
];

pub fn write(
    comparison: &Comparison,
    titles: &Titles,
    gates: &[GateResult],
    top: usize,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let page = Page { comparison, style, top };
    writeln!(out, "{} {}", style.ink(Ink::Heading, "A"), style.plain(titles.a))?;
    writeln!(out, "{} {}", style.ink(Ink::Heading, "B"), style.plain(titles.b))?;
    page.environment(out)?;
    page.heading(out, "Answer")?;
    writeln!(out, "  {}", style.plain(&answer(comparison)))?;
    page.metrics(out)?;
    for group in Group::ALL {
        page.group(out, group)?;
    }
    comparison.memory.iter().try_for_each(|memory| memory::tables(memory, top, style, out))?;
    page.notes(out)?;
    page.gates(out, gates)
}

/// One sentence: what happened to a step, and where most of it is.
pub fn answer(comparison: &Comparison) -> String {
    let find = |name: &str| comparison.metrics.iter().find(|change| change.name() == name);
    let Some((change, (a, b))) = find("step_p50").and_then(|change| Some((change, change.values()?))) else {
        return "No step times to compare.".into();
    };
    let what = if comparison.whole { "The recording".to_owned() } else { format!("A step \"{}\"", comparison.step) };
    let (from, to) = (Unit::Milliseconds.say(a), Unit::Milliseconds.say(b));
    let by = relative(a, b).map(|share| format!(" ({})", phrase::change(share))).unwrap_or_default();
    // Of what is certain and what is not, the first comes first.
    let real = || real(comparison, a.max(b)).map(|real| format!("Real change: {real}. ")).unwrap_or_default();
    match change.noise {
        _ if a == b => format!("{}{what} takes {to} in both.", real()),
        Some(Noise::Within) => {
            format!("{}{what} takes {from} in A and {to} in B{by}: within the noise of the steps.", real())
        }
        noise => {
            let way = if b > a { "slower" } else { "faster" };
            let sure =
                if noise == Some(Noise::Unknown) { " Too few steps to tell how much of it is noise." } else { "" };
            let most = most(comparison, b > a, |change| change.noise != Noise::Within);
            let most = most.map(|most| format!(" The largest change: {}.", said(comparison, most))).unwrap_or_default();
            format!("{what} is {way}: {from} in A, {to} in B{by}.{most}{sure}")
        }
    }
}

/// The largest change that is no noise, where it is worth a headline: `step_ms` is what a step takes.
fn real(comparison: &Comparison, step_ms: f64) -> Option<String> {
    // Idle time of the GPU changes with whatever else does: it is no cause.
    let is_real = |change: &Change| change.noise == Noise::Real && change.group != Group::Idle;
    let both = [true, false].into_iter().filter_map(|slower| most(comparison, slower, is_real));
    let largest = both.max_by(|x, y| x.1.abs().total_cmp(&y.1.abs()));
    largest.filter(|(_, delta)| delta.abs() >= MIN_REAL_SHARE * step_ms * 1e6).map(|most| said(comparison, most))
}

/// Of a step: many small changes are real, and the tables have them.
const MIN_REAL_SHARE: f64 = 0.01;

fn said(comparison: &Comparison, (change, delta): (&Change, f64)) -> String {
    let each = if comparison.whole { "" } else { " per step" };
    format!("{}{} ({}{each})", noun(change.group), name(change), signed(delta))
}

/// The largest change in the same direction: what has a name where that is half of it, else the kind of time. Calls, operators and
/// functions that take longer because the host waits longer for the device in them are no cause: what the device does is.
fn most(comparison: &Comparison, slower: bool, counts: impl Fn(&Change) -> bool) -> Option<(&Change, f64)> {
    let is_wait = |change: &&Change| change.group == Group::Kind && change.label == PartKind::Gpu.name();
    let waits = comparison.changes.iter().find(is_wait).map_or(0.0, Change::delta);
    let waiting = |change: &Change| {
        matches!(change.group, Group::Api | Group::Op | Group::Function)
            && (waits > 0.0) == slower
            && waits.abs() >= change.delta().abs() / 2.0
    };
    let largest = |kinds: bool| {
        let fits = |change: &&Change| {
            counts(change)
                && !waiting(change)
                && !is_wait(change)
                && change.group != Group::Line
                && (change.group == Group::Kind) == kinds
        };
        let all = comparison.changes.iter().filter(fits).map(|change| (change, moved(comparison, change)));
        all.filter(|(_, delta)| (*delta > 0.0) == slower).max_by(|x, y| x.1.abs().total_cmp(&y.1.abs()))
    };
    let (named, kind) = (largest(false), largest(true));
    let size = |most: Option<(&Change, f64)>| most.map_or(0.0, |(_, delta)| delta.abs());
    if size(kind) > 2.0 * size(named) { kind } else { named }
}

/// The difference of a change. A function that only one of the two has in this file, and only the other in another, was moved:
/// both together are what it changed by.
fn moved(comparison: &Comparison, change: &Change) -> f64 {
    let only_in = |change: &Change| (change.a.value > 0.0, change.b.value > 0.0);
    let other = |one: &&Change| {
        let (a, b) = only_in(one);
        one.group == Group::Function && one.label == change.label && a != b && only_in(change) == (b, a)
    };
    let gone = comparison.changes.iter().filter(|_| change.group == Group::Function).filter(other);
    change.delta() + gone.map(Change::delta).sum::<f64>()
}

/// The heading of the metrics.
pub(crate) fn metrics_title(comparison: &Comparison) -> String {
    let (a, b) = comparison.steps;
    match comparison.whole {
        true => "Metrics of the whole recording".into(),
        false => format!("Metrics per step ({} steps in A, {} in B)", count(a as u64), count(b as u64)),
    }
}

/// The heading of a group, and that of its differences.
pub(crate) fn group_titles(comparison: &Comparison, group: Group) -> (&'static str, &'static str) {
    match (comparison.whole, group) {
        (true, Group::Kind) => ("Where the time goes", "change"),
        (whole, _) => (group.title(), if whole { "change" } else { "per step" }),
    }
}

fn noun(group: Group) -> &'static str {
    match group {
        Group::Kind | Group::Line => "",
        Group::Function => "function ",
        Group::Idle => "GPU idle: ",
        Group::Kernel => "kernel ",
        Group::Copy => "copies ",
        Group::Api => "CUDA call ",
        Group::Op => "operator ",
        Group::Layer => "layer ",
    }
}

pub(crate) fn name(change: &Change) -> &str {
    if change.group == Group::Kernel { kernel_name::plain(&change.label) } else { &change.label }
}

pub(crate) fn signed(ns: f64) -> String {
    phrase::longer(ns.round() as i64)
}

struct Page<'a> {
    comparison: &'a Comparison,
    style: &'a Style,
    top: usize,
}

impl Page<'_> {
    fn heading(&self, out: &mut impl Write, text: &str) -> io::Result<()> {
        writeln!(out, "\n{}", self.style.ink(Ink::Heading, text))
    }

    fn environment(&self, out: &mut impl Write) -> io::Result<()> {
        self.heading(out, "Environment")?;
        if self.comparison.environment.is_empty() {
            return writeln!(out, "  no difference recorded");
        }
        for difference in &self.comparison.environment {
            let side = |text: &str| {
                let text = if text.is_empty() { "not recorded" } else { text };
                self.style.fit(&self.style.plain(&visible(text)), 40)
            };
            let arrow = self.style.plain("→");
            let what = self.style.fit(&visible(&difference.what), 40);
            let line = format!("  {what}: {} {arrow} {}", side(&difference.a), side(&difference.b));
            writeln!(out, "{}", self.style.ink(Ink::Warn, &line))?;
        }
        Ok(())
    }

    fn metrics(&self, out: &mut impl Write) -> io::Result<()> {
        self.heading(out, &metrics_title(self.comparison))?;
        let mut table = Table::new(["A", "B", "change", "", "metric"]);
        for name in SHOWN {
            let Some(change) = self.comparison.metrics.iter().find(|change| change.name() == name) else { continue };
            let Some((a, b)) = change.values() else { continue };
            let unit = METRICS[change.metric].unit;
            let by = relative(a, b).map_or("new".into(), phrase::change);
            let cells = [
                (Ink::Plain, self.style.plain(&unit.say(a))),
                (Ink::Plain, self.style.plain(&unit.say(b))),
                (Ink::Plain, self.style.plain(&by)),
                self.mark(metric_noise(change), a == b),
            ];
            table.row(cells, name, "");
        }
        table.write(out, self.style)
    }

    fn mark(&self, noise: Noise, same: bool) -> (Ink, String) {
        let ink = if noise == Noise::Real && !same { Ink::Warn } else { Ink::Faint };
        (ink, mark(noise, same).into())
    }

    fn group(&self, out: &mut impl Write, group: Group) -> io::Result<()> {
        let rows: Vec<&Change> = self.comparison.changes.iter().filter(|change| change.group == group).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let (title, differences) = group_titles(self.comparison, group);
        self.heading(out, title)?;
        let mut table = Table::new(["A", "B", differences, "", "count", "name"]);
        let time = |ns: f64| self.style.plain(&duration(ns.max(0.0).round() as u64));
        for change in rows.iter().take(self.top) {
            let number = |value: f64| Unit::Count.say(value);
            let counted = change.count.map_or("-".into(), |(a, b)| match a == b {
                true => number(a),
                false => format!("{}{}{}", number(a), self.style.plain("→"), number(b)),
            });
            let cells = [
                (Ink::Plain, time(change.a.value)),
                (Ink::Plain, time(change.b.value)),
                (Ink::Plain, self.style.plain(&signed(change.delta()))),
                self.mark(change.noise, change.delta().abs() < 1.0),
                (Ink::Plain, counted),
            ];
            table.row(cells, &self.style.plain(name(change)), &change.place);
        }
        table.write(out, self.style)
    }

    fn notes(&self, out: &mut impl Write) -> io::Result<()> {
        let notes = notes(self.comparison);
        if notes.is_empty() {
            return Ok(());
        }
        self.heading(out, "Caveats")?;
        notes.iter().try_for_each(|note| writeln!(out, "  {}", self.style.plain(note)))
    }

    fn gates(&self, out: &mut impl Write, gates: &[GateResult]) -> io::Result<()> {
        if gates.is_empty() {
            return Ok(());
        }
        self.heading(out, "Gates")?;
        for gate in gates {
            let ink = if gate.state == GateState::Holds { Ink::Good } else { Ink::Warn };
            let word = self.style.ink(ink, state(gate.state));
            writeln!(out, "  {word} {}: {}", gate.text, self.style.plain(&gate.said))?;
        }
        Ok(())
    }
}

/// What stands beside a difference.
pub(crate) fn mark(noise: Noise, same: bool) -> &'static str {
    match noise {
        _ if same => "same",
        Noise::Real => "real",
        Noise::Within => "noise",
        Noise::Unknown => "?",
    }
}

pub(crate) fn state(state: GateState) -> &'static str {
    match state {
        GateState::Holds => "passed",
        GateState::Failed => "FAILED",
        GateState::Undecided => "no data",
    }
}

/// What was not compared, or is to be read with care.
pub(crate) fn notes(comparison: &Comparison) -> Vec<String> {
    let whole = "neither trace has steps: the whole recordings are compared, and their noise is unknown";
    comparison.notes.iter().cloned().chain(comparison.whole.then(|| whole.to_owned())).collect()
}

pub(crate) fn metric_noise(change: &MetricChange) -> Noise {
    change.noise.unwrap_or(Noise::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnosis::compare::{Side, compare};
    use timeline::Timeline;

    fn said(a: &str, b: &str) -> String {
        let of = |text: &str| {
            let timeline = Timeline::from_text(text).unwrap();
            let (metrics, diagnosis) =
                (analysis::measure(&timeline), diagnosis::diagnose(&timeline, &diagnosis::Options::default()));
            (timeline, metrics, diagnosis)
        };
        let (a, b) = (of(a), of(b));
        let a = Side { timeline: &a.0, metrics: &a.1, diagnosis: &a.2 };
        let b = Side { timeline: &b.0, metrics: &b.1, diagnosis: &b.2 };
        let comparison = compare(a, b).unwrap();
        let mut text = Vec::new();
        let titles = Titles { a: "a", b: "b" };
        write(&comparison, &titles, &[], 12, &Style::default(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// One function waits for a core much longer, and runs a little longer: there are no steps, and the wait is the change.
    #[test]
    fn the_largest_change_may_be_a_kind_of_time_that_no_function_has() {
        let of = |end: u64, waits: u64| {
            format!(
                "track main\n samples 0..{end}ms every 10ms active gil f:1\n counter runqueue_wait_ns 0..{end}ms every 100ms grows {waits}ms"
            )
        };
        let said = said(&of(500, 20), &of(1000, 50));
        assert!(said.contains("The largest change: waiting for a core (+"), "{said}");
        assert!(!said.contains("per step") && said.contains("Where the time goes"), "{said}");
    }

    /// Steps vary by a lot, and one kernel in them by nothing but what was changed of it.
    #[test]
    fn a_real_change_comes_before_steps_that_only_vary() {
        let of = |kernel: u64| {
            let step = |at: u64, end: u64| {
                format!(
                    " step r {at}ms..{}ms\n api cudaLaunchKernel {at}ms..{at}.1ms\n stream 7\n kernel gemm {}ms..{}ms\n",
                    at + end,
                    at + 1,
                    at + 1 + kernel
                )
            };
            let steps = (0..20u64).map(|index| step(index * 100, 20 + index % 5 * 10));
            format!("track main\n{}", steps.collect::<String>())
        };
        let changed = said(&of(2), &of(7));
        assert!(changed.contains("  Real change: kernel gemm (+5.00 ms per step). A step \"r\" takes "), "{changed}");
        let same = said(&of(2), &of(2));
        assert!(!same.contains("Real change"), "{same}");
    }

    /// The same function from another file: it is no larger change than it is.
    #[test]
    fn a_function_that_was_moved_changed_by_the_difference() {
        let of = |file: &str, moved: u64, other: u64| {
            let end = moved + other;
            format!(
                "track main\n repeat 20 every 100ms\n step r 0..{end}ms\n samples 0..{moved}ms every 1ms active gil f@{file}:1\n samples {moved}ms..{end}ms every 1ms active gil g@c.py:1\n end"
            )
        };
        let said = said(&of("a.py", 20, 10), &of("b.py", 22, 20));
        assert!(said.contains("The largest change: function g (+"), "{said}");
    }

    /// The kernel takes twice as long, and so does the wait for it: the kernel is the cause.
    #[test]
    fn a_longer_wait_for_the_device_is_not_the_largest_change() {
        let of = |kernel: u64| {
            let (end, most) = (kernel + 1, kernel * 5 / 8);
            format!(
                "track main\n repeat 20 every 40ms\n step r 0..{end}ms\n stream 7\n api cudaLaunchKernel 0..10us\n kernel gemm 20us..{most}ms\n kernel add {most}ms..{kernel}ms\n\
                 ccall aten::item 20us..{end}ms\n api cudaStreamSynchronize 30us..{kernel}.5ms\n end"
            )
        };
        let said = said(&of(8), &of(16));
        assert!(said.contains("The largest change: kernel gemm (+5.00 ms per step)"), "{said}");
    }
}
