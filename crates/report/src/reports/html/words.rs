//! The words and tables of the page, from the metrics and the diagnosis.

use super::names::short;
use super::payload::{
    Abstained, Card, Considered, Evidence, Found, Gain, Health, Meta, Part, Phase, Row, Scope, Verdict, Where,
};
use crate::reports::step_times;
use crate::{gpu_words, units};
use analysis::{Metrics, PartKind, Spread, StepSource};
use diagnosis::{Diagnosis, Finding};
use timeline::{NameIndex, Timeline};

/// Rows of a table: the page shows some, and more on demand.
pub const MOST_ROWS: usize = 500;
const MOST_PHASES: usize = 40;
const MOST_PARTS: usize = 12;

pub fn meta(timeline: &Timeline) -> Meta {
    let mut pythons: Vec<&str> = timeline.processes.iter().map(|p| &*p.python).filter(|p| !p.is_empty()).collect();
    pythons.sort_unstable();
    pythons.dedup();
    let host = &timeline.info.host;
    let mut parts =
        vec![units::duration(timeline.duration()), units::counted(timeline.processes.len() as u64, "process")];
    parts.extend((!pythons.is_empty()).then(|| format!("Python {}", pythons.join(", "))));
    parts.extend(host.cpu_count.map(|cores| units::counted(cores, "core")));
    parts.extend((!host.cpu_model.is_empty()).then(|| host.cpu_model.clone()));
    Meta { command: short(&timeline.info.command), context: parts.join(" · "), duration_ns: timeline.duration() }
}

pub fn verdict(diagnosis: &Diagnosis) -> Verdict {
    Verdict { kind: diagnosis.bottleneck.kind.name(), confidence: diagnosis.bottleneck.confidence }
}

pub fn cards(metrics: &Metrics, diagnosis: &Diagnosis) -> Vec<Card> {
    let steps = &diagnosis.steps;
    let mut cards = vec![Card { label: "recorded", value: units::duration(metrics.duration) }];
    if steps.source != StepSource::Whole {
        cards.push(Card { label: "step p50", value: units::duration(steps.p50()) });
        cards.push(Card { label: "step p99", value: units::duration(steps.p99()) });
        let label = if steps.count() == 1 { "step" } else { "steps" };
        cards.push(Card { label, value: units::count(steps.count() as u64) });
    }
    cards.push(Card { label: "threads", value: units::count(metrics.threads.len() as u64) });
    cards.push(Card { label: "events", value: units::count(metrics.slices as u64) });
    cards.extend(metrics.samples.iter().map(|s| Card { label: "stack samples", value: units::count(s.taken) }));
    cards.extend(metrics.cpu.iter().map(|cpu| Card { label: "cores in use", value: format!("{:.2}", cpu.mean) }));
    cards
        .extend(metrics.memory.iter().map(|m| Card { label: "peak memory", value: units::bytes(m.peak.value as u64) }));
    if let Some(gpu) = &diagnosis.gpu {
        let busiest = gpu.devices.iter().max_by_key(|device| device.busy_ns);
        cards.extend(busiest.filter(|device| device.window_ns > 0).map(|device| Card {
            label: if gpu.devices.len() > 1 { "busiest GPU" } else { "GPU busy" },
            value: format!(
                "{}{}",
                gpu_words::at_least(diagnosis, device),
                units::percent_of(device.busy_ns, device.window_ns)
            ),
        }));
        let kernels = gpu.devices.iter().map(|device| device.kernels).sum();
        cards.push(Card { label: "kernels", value: units::count(kernels) });
    }
    cards
}

pub fn found(timeline: &Timeline, shown: &[Option<usize>], finding: &Finding) -> Found {
    let since = |time: Option<u64>| time.map_or(0, |time| time.saturating_sub(timeline.start));
    Found {
        code: finding.code.as_str(),
        title: finding.title.clone(),
        severity: finding.severity.name(),
        r#where: Where {
            file: finding.place.file.clone(),
            line: finding.place.line,
            function: finding.place.function.clone(),
            module: finding.place.module.clone(),
            kernel: finding.place.kernel.clone(),
            api: finding.place.api.clone(),
        },
        gain: finding.gain.map(|gain| Gain { low: gain.low, mid: gain.mid, high: gain.high, by: gain.by.name() }),
        confidence: finding.confidence(),
        evidence: finding
            .evidence
            .iter()
            .map(|evidence| Evidence {
                text: evidence.text.clone(),
                start: since(evidence.start),
                end: since(evidence.end),
                track: evidence.track.and_then(|track| shown.get(track.0 as usize).copied().flatten()),
            })
            .collect(),
        actions: finding.actions.iter().map(|action| action.text().to_owned()).collect(),
        verify: finding.verify.clone(),
    }
}

pub fn considered(diagnosis: &Diagnosis) -> Vec<Considered> {
    let one = |one: &diagnosis::Considered| Considered {
        code: one.code.as_str(),
        title: one.title.clone(),
        against: one.against.clone(),
    };
    diagnosis.considered.iter().map(one).collect()
}

pub fn abstained(diagnosis: &Diagnosis) -> Vec<Abstained> {
    diagnosis.abstentions.iter().map(|a| Abstained { code: a.code.as_str(), reason: a.reason.clone() }).collect()
}

pub fn health(diagnosis: &Diagnosis) -> Vec<Health> {
    let line = |line: &diagnosis::HealthLine| Health {
        state: line.state.name(),
        label: format!("{}:", line.label()),
        text: line.text.clone(),
    };
    diagnosis.health.iter().map(line).collect()
}

pub fn waterfall_title(diagnosis: &Diagnosis) -> String {
    let steps = &diagnosis.steps;
    match steps.source {
        _ if steps.source != StepSource::Whole && steps.count() == 1 => {
            format!("Where the time of the {} goes", short(&steps.name))
        }
        StepSource::Whole => format!("Where the time of the recording goes ({})", units::duration(steps.p50())),
        _ => {
            format!("Where the time of a {} goes (mean of {})", short(&steps.name), units::count(steps.count() as u64))
        }
    }
}

pub fn waterfall(diagnosis: &Diagnosis) -> Vec<Part> {
    let kind = |kind| match kind {
        PartKind::Python | PartKind::Native => "python",
        PartKind::Waiting | PartKind::Gpu => "waiting",
        PartKind::Gil | PartKind::Gc | PartKind::Descheduled => "gil",
        PartKind::Unknown => "unknown",
    };
    let place = |part: &analysis::Part| {
        let file = part.file.rsplit_once("-packages/").map_or(&*part.file, |(_, inside)| inside);
        let at = match (file.is_empty(), part.line) {
            (true, _) => return String::new(),
            (false, 0) => short(file),
            (false, line) => format!("{}:{line}", short(file)),
        };
        // One line may run Python, native code and wait: the kind tells them apart.
        part.doing().map_or_else(|| at.clone(), |doing| format!("{at}, {}", short(&doing)))
    };
    let part = |part: &analysis::Part| Part {
        label: short(&part.label),
        r#where: place(part),
        ns: part.ns,
        kind: kind(part.kind),
    };
    let (shown, rest) = diagnosis.breakdown.parts.split_at(diagnosis.breakdown.parts.len().min(MOST_PARTS));
    let mut parts: Vec<Part> = shown.iter().filter(|part| part.ns > 0).map(part).collect();
    let ns = rest.iter().map(|part| part.ns).sum();
    if ns > 0 {
        let label = units::counted(rest.len() as u64, "smaller part");
        parts.push(Part { label, r#where: String::new(), ns, kind: "python" });
    }
    parts
}

pub fn phases(diagnosis: &Diagnosis) -> Vec<Phase> {
    let phase = |phase: &analysis::Phase| Phase {
        label: short(&phase.name),
        depth: phase.depth,
        offset: phase.offset_ns,
        ns: phase.ns,
        count: phase.count,
    };
    diagnosis.breakdown.phases.iter().take(MOST_PHASES).map(phase).collect()
}

fn row(timeline: &Timeline, name: NameIndex, line: Option<u32>) -> Row {
    let name = timeline.names.get(name);
    Row { name: short(&name.text), file: short(&name.file), line: line.unwrap_or(name.line), ..Row::default() }
}

pub fn functions(timeline: &Timeline, metrics: &Metrics) -> Vec<Row> {
    let functions = metrics.samples.iter().flat_map(|samples| &samples.functions).take(MOST_ROWS);
    functions.map(|f| Row { own: f.own, total: f.total, ..row(timeline, f.name, None) }).collect()
}

pub fn lines(timeline: &Timeline, metrics: &Metrics) -> Vec<Row> {
    let lines = metrics.samples.iter().flat_map(|samples| &samples.lines).take(MOST_ROWS);
    lines.map(|l| Row { own: l.own, total: l.total, ..row(timeline, l.name, Some(l.line)) }).collect()
}

pub fn calls(timeline: &Timeline, metrics: &Metrics) -> Vec<Row> {
    let functions = metrics.calls.iter().flat_map(|calls| &calls.functions).take(MOST_ROWS);
    functions.map(|f| Row { own: f.own, total: f.total, count: f.count, ..row(timeline, f.name, None) }).collect()
}

pub fn scopes(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis) -> Vec<Scope> {
    let scope = |kind| {
        move |s: &Spread| Scope {
            name: short(timeline.names.text(s.name)),
            kind,
            total: s.total,
            count: s.count,
            p50: s.p50,
            p99: s.p99,
            max: s.max,
        }
    };
    let steps = step_times::of(timeline, metrics, diagnosis);
    let steps = steps.iter().take(MOST_ROWS).map(scope("step"));
    steps.chain(metrics.scopes.iter().take(MOST_ROWS).map(scope("scope"))).collect()
}
