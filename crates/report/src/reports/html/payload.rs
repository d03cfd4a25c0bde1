//! What the page is given: the diagnosis in words, the tables, and the packed timeline.

use super::curves::Curve;
use super::gpu::{self, Gpu};
use super::memory::{self, Memory};
use super::names::PageNames;
use super::operators::{self, Layers, Operators};
use super::picture::{self, Picture, Slow};
use super::samples::{self, Samples, Stacks};
use super::steps::{self, Steps};
use super::streams::Device;
use super::tracks::{self, Group, Lanes, Track};
use super::words;
use analysis::Metrics;
use diagnosis::Diagnosis;
use serde::Serialize;
use timeline::{Timeline, parallel};

#[derive(Serialize)]
pub struct Payload {
    meta: Meta,
    answer: Vec<String>,
    verdict: Verdict,
    cards: Vec<Card>,
    findings: Vec<Found>,
    considered: Vec<Considered>,
    abstentions: Vec<Abstained>,
    health: Vec<Health>,
    picture: Option<Picture>,
    slow: Option<Slow>,
    waterfall_title: String,
    waterfall: Vec<Part>,
    phases: Vec<Phase>,
    names: Vec<String>,
    files: Vec<String>,
    groups: Vec<Group>,
    tracks: Vec<Track>,
    counters: Vec<Curve>,
    devices: Vec<Device>,
    gpu: Option<Gpu>,
    operators: Option<Operators>,
    host_layers: Option<Layers>,
    memory: Option<Memory>,
    stacks: Stacks,
    samples: Samples,
    steps: Steps,
    functions: Vec<Row>,
    lines: Vec<Row>,
    calls: Vec<Row>,
    scopes: Vec<Scope>,
}

#[derive(Serialize)]
pub struct Meta {
    pub command: String,
    pub context: String,
    pub duration_ns: u64,
}

/// What the steps are bound by.
#[derive(Serialize)]
pub struct Verdict {
    pub kind: &'static str,
    pub confidence: f64,
}

#[derive(Serialize)]
pub struct Card {
    pub label: &'static str,
    pub value: String,
}

#[derive(Serialize)]
pub struct Found {
    pub code: &'static str,
    pub title: String,
    pub severity: &'static str,
    pub r#where: Where,
    pub gain: Option<Gain>,
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
    pub actions: Vec<String>,
    pub verify: String,
}

#[derive(Serialize)]
pub struct Where {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    pub module: Option<String>,
    pub kernel: Option<String>,
    pub api: Option<String>,
}

#[derive(Serialize)]
pub struct Gain {
    pub low: f64,
    pub mid: f64,
    pub high: f64,
    pub by: &'static str,
}

#[derive(Serialize)]
pub struct Evidence {
    pub text: String,
    pub start: u64,
    pub end: u64,
    pub track: Option<usize>,
}

/// What else could be the cause, and what speaks against it.
#[derive(Serialize)]
pub struct Considered {
    pub code: &'static str,
    pub title: String,
    pub against: String,
}

#[derive(Serialize)]
pub struct Abstained {
    pub code: &'static str,
    pub reason: String,
}

#[derive(Serialize)]
pub struct Health {
    pub state: &'static str,
    pub label: String,
    pub text: String,
}

#[derive(Serialize)]
pub struct Part {
    pub label: String,
    pub r#where: String,
    pub ns: u64,
    pub kind: &'static str,
}

/// A named stretch of the mean step, where it begins in it.
#[derive(Serialize)]
pub struct Phase {
    pub label: String,
    pub depth: u32,
    pub offset: u64,
    pub ns: u64,
    pub count: u64,
}

#[derive(Serialize, Default)]
pub struct Row {
    pub name: String,
    pub file: String,
    pub line: u32,
    #[serde(rename = "self")]
    pub own: u64,
    pub total: u64,
    pub count: u64,
}

#[derive(Serialize)]
pub struct Scope {
    pub name: String,
    pub kind: &'static str,
    pub total: u64,
    pub count: u64,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

pub fn build(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis) -> Payload {
    let (mut names, mut lanes, mut gpu) = (PageNames::default(), Lanes::default(), None);
    let devices = Box::new(|| gpu = diagnosis.gpu.as_ref().map(|metrics| gpu::gpu(timeline, metrics, diagnosis)));
    // Both go over all work.
    parallel::run(timeline.gpu.work.len(), vec![devices], || {
        lanes = tracks::lanes(timeline, metrics, diagnosis, &mut names);
    });
    let Lanes { groups, tracks, counters, devices, shown, left_out } = lanes;
    let interval = metrics.samples.as_ref().and_then(|samples| samples.interval_ns);
    let (samples, stacks) = samples::samples(timeline, &shown, interval, &mut names);
    let (texts, files) = names.texts(timeline);
    let mut health = words::health(diagnosis);
    let left_out = left_out.into_iter().chain(steps::left_out(diagnosis));
    health.extend(left_out.map(|text| Health { state: "ok", label: "This page:".into(), text }));
    Payload {
        meta: words::meta(timeline),
        answer: diagnosis.answer.to_vec(),
        verdict: words::verdict(diagnosis),
        cards: words::cards(metrics, diagnosis),
        findings: diagnosis.findings.iter().map(|finding| words::found(timeline, &shown, finding)).collect(),
        considered: words::considered(diagnosis),
        abstentions: words::abstained(diagnosis),
        health,
        picture: picture::picture(timeline, diagnosis, &shown),
        slow: picture::slow(timeline, diagnosis, &shown),
        waterfall_title: words::waterfall_title(diagnosis),
        waterfall: words::waterfall(diagnosis),
        phases: words::phases(diagnosis),
        names: texts,
        files,
        groups,
        tracks,
        counters,
        devices,
        gpu,
        operators: operators::operators(timeline, diagnosis),
        host_layers: operators::layers(timeline, diagnosis),
        memory: memory::memory(timeline, diagnosis),
        stacks,
        samples,
        steps: steps::steps(timeline, diagnosis),
        functions: words::functions(timeline, metrics),
        lines: words::lines(timeline, metrics),
        calls: words::calls(timeline, metrics),
        scopes: words::scopes(timeline, metrics, diagnosis),
    }
}
