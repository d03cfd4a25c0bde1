//! The host's tables in the analysis JSON: the parts and scopes of a step, functions and lines by samples, recorded calls, steps
//! and scopes by name; and how the recording was made.

use super::times::Micros;
use analysis::{Metrics, Part, Phase, Spread};
use diagnosis::Diagnosis;
use serde::Serialize;
use std::collections::BTreeMap;
use timeline::{Exit, NameIndex, Timeline};

/// Rows of a list; the exports have every event.
const MOST: usize = 500;

#[derive(Serialize)]
pub struct Host<'a> {
    /// What a step's time is made of: with their shares they are the whole of it.
    parts: Vec<OfPart<'a>>,
    phases: Vec<OfPhase<'a>>,
    /// Time by samples of running threads, in the whole recording.
    functions: Vec<Sampled<'a>>,
    lines: Vec<Sampled<'a>>,
    calls: Vec<Called<'a>>,
    scopes: Vec<OfName<'a>>,
}

#[derive(Serialize)]
struct OfPart<'a> {
    kind: &'static str,
    label: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    duration_us: Micros,
    percentage: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_function: Option<OfNative<'a>>,
}

#[derive(Serialize)]
struct OfNative<'a> {
    function: &'a str,
    library: &'a str,
}

#[derive(Serialize)]
struct OfPhase<'a> {
    name: &'a str,
    depth: u32,
    count: u64,
    duration_us: Micros,
    offset_us: Micros,
}

#[derive(Serialize)]
struct Sampled<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    own_samples: u64,
    total_samples: u64,
}

#[derive(Serialize)]
struct Called<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    count: u64,
    own_us: Micros,
    total_us: Micros,
}

#[derive(Serialize)]
struct OfName<'a> {
    kind: &'static str,
    name: &'a str,
    count: u64,
    total_us: Micros,
    min_us: Micros,
    mean_us: Micros,
    p50_us: Micros,
    p99_us: Micros,
    max_us: Micros,
}

/// How it was recorded. What is not known is null.
#[derive(Serialize)]
pub struct Recorded<'a> {
    command: Option<&'a str>,
    recorder: &'a str,
    version: Option<&'a str>,
    created_unix_ns: Option<u64>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    hostname: Option<&'a str>,
    kernel: Option<&'a str>,
    cpu_model: Option<&'a str>,
    cpu_count: Option<u64>,
    numa_nodes: Option<u64>,
    ram_bytes: Option<u64>,
    python: Vec<&'a str>,
    rate_hz: Option<f64>,
    calls: Option<bool>,
    software: &'a BTreeMap<String, String>,
}

pub fn host<'a>(timeline: &'a Timeline, metrics: &'a Metrics, diagnosis: &'a Diagnosis) -> Host<'a> {
    let samples = metrics.samples.iter();
    let sampled = |name: NameIndex, line: Option<u32>, own: u64, total: u64| {
        let known = timeline.names.get(name);
        Sampled {
            function: &known.text,
            file: some(&known.file),
            line: Some(line.unwrap_or(known.line)).filter(|line| *line > 0),
            own_samples: own,
            total_samples: total,
        }
    };
    let functions = samples.clone().flat_map(|samples| &samples.functions).take(MOST);
    let lines = samples.flat_map(|samples| &samples.lines).take(MOST);
    let calls = metrics.calls.iter().flat_map(|calls| &calls.functions).take(MOST);
    Host {
        parts: diagnosis.breakdown.parts.iter().take(MOST).map(part).collect(),
        phases: diagnosis.breakdown.phases.iter().map(phase).collect(),
        functions: functions.map(|one| sampled(one.name, None, one.own, one.total)).collect(),
        lines: lines.map(|one| sampled(one.name, Some(one.line), one.own, one.total)).collect(),
        calls: calls
            .map(|one| {
                let known = timeline.names.get(one.name);
                Called {
                    function: &known.text,
                    file: some(&known.file),
                    line: Some(known.line).filter(|line| *line > 0),
                    count: one.count,
                    own_us: Micros::of(one.own),
                    total_us: Micros::of(one.total),
                }
            })
            .collect(),
        scopes: [("step", &metrics.steps), ("scope", &metrics.scopes), ("pause", &metrics.pauses)]
            .into_iter()
            .flat_map(|(kind, all)| all.iter().take(MOST).map(move |one| (kind, one)))
            .map(|(kind, one)| spread(timeline, kind, one))
            .collect(),
    }
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn part(part: &Part) -> OfPart<'_> {
    OfPart {
        kind: part.kind.name(),
        label: &part.label,
        file: some(&part.file),
        line: Some(part.line).filter(|line| *line > 0),
        duration_us: Micros::of(part.ns),
        percentage: (part.share * 1e5).round() / 1e3,
        native_function: part
            .native
            .as_ref()
            .map(|native| OfNative { function: &native.function, library: &native.library }),
    }
}

fn phase(phase: &Phase) -> OfPhase<'_> {
    OfPhase {
        name: &phase.name,
        depth: phase.depth,
        count: phase.count,
        duration_us: Micros::of(phase.ns),
        offset_us: Micros::of(phase.offset_ns),
    }
}

fn spread<'a>(timeline: &'a Timeline, kind: &'static str, one: &Spread) -> OfName<'a> {
    OfName {
        kind,
        name: timeline.names.text(one.name),
        count: one.count,
        total_us: Micros::of(one.total),
        min_us: Micros::of(one.min),
        mean_us: Micros::of(one.mean),
        p50_us: Micros::of(one.p50),
        p99_us: Micros::of(one.p99),
        max_us: Micros::of(one.max),
    }
}

pub fn recorded(timeline: &Timeline) -> Recorded<'_> {
    let (info, host) = (&timeline.info, &timeline.info.host);
    let mut python: Vec<&str> = timeline.processes.iter().filter_map(|process| some(&process.python)).collect();
    python.sort_unstable();
    python.dedup();
    Recorded {
        command: some(&info.command),
        recorder: info.recorded_by.name(),
        version: some(&info.version),
        created_unix_ns: Some(info.created_unix_ns).filter(|time| *time > 0),
        exit_code: info.exit.and_then(|exit| if let Exit::Code(code) = exit { Some(code) } else { None }),
        signal: info.exit.and_then(|exit| if let Exit::Signal(signal) = exit { Some(signal) } else { None }),
        hostname: some(&host.hostname),
        kernel: some(&host.kernel),
        cpu_model: some(&host.cpu_model),
        cpu_count: host.cpu_count,
        numa_nodes: host.numa_nodes,
        ram_bytes: host.ram_bytes,
        python,
        rate_hz: info.settings.rate_hz,
        calls: info.settings.calls,
        software: &info.software,
    }
}
