//! What the rules said, in the shape of the analysis JSON.

use super::attribution::Attributed;
use super::gpu::{Device, Work};
use super::health::Health;
use super::hot::{Host, Recorded};
use super::memory::Allocator;
use super::operators::{Layers, Operators};
use super::parts::{Category, Idle};
use super::picture::{Slow, Waterfall};
use super::times::{Micros, Steps, Summary};
use diagnosis::{Action, Diagnosis, Finding};
use serde::Serialize;
use std::collections::BTreeMap;
use timeline::{Timeline, TrackIndex};

#[derive(Serialize)]
pub struct Analysis<'a> {
    pub analysis_version: &'static str,
    pub answer: &'a [String; 3],
    pub bottleneck: Bottleneck<'a>,
    pub suggestions: Vec<Suggestion<'a>>,
    pub findings: Vec<Found<'a>>,
    pub considered: Vec<Considered<'a>>,
    pub abstentions: Vec<Abstained<'a>>,
    pub summary: Summary,
    pub steps: Steps<'a>,
    /// Null where there are no steps.
    pub waterfall: Option<Waterfall<'a>>,
    pub slow_steps: Option<Slow<'a>>,
    pub gpu: Vec<Device<'a>>,
    /// Not there where no work of a device was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_work: Option<Work<'a>>,
    /// Not there where none were recorded, or where a device does their work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operators: Option<Operators<'a>>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_layers: Option<Layers<'a>>,
    /// Not there where nothing of a framework's allocator was recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Allocator<'a>>,
    /// The same of the driver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory_attribution: Vec<Attributed<'a>>,
    /// Not there where no work of a device was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay<'a>>,
    pub timeline_breakdown: Vec<Category>,
    pub idle_breakdown: Vec<Idle<'a>>,
    pub host: Host<'a>,
    pub health: Health<'a>,
    pub recording: Recorded<'a>,
}

/// How well the unchanged steps are reproduced by a replay.
#[derive(Serialize)]
pub struct Replay<'a> {
    steps: u64,
    explained: u64,
    error_percent: Option<f64>,
    worst_percent: Option<f64>,
    /// Whether gains come from it; if not, why.
    used: bool,
    why_not: Option<&'a str>,
}

pub fn replay(diagnosis: &Diagnosis) -> Option<Replay<'_>> {
    diagnosis.gpu.as_ref()?;
    let thousandths = |part: f64| (part * 100_000.0).round() / 1000.0;
    Some(match &diagnosis.replay {
        Ok(check) => Replay {
            steps: check.steps,
            explained: check.explained,
            error_percent: Some(thousandths(check.off)),
            worst_percent: Some(thousandths(check.worst)),
            used: check.tells(),
            why_not: (!check.tells()).then_some("it does not reproduce the recorded steps within 2 %"),
        },
        Err(why) => {
            Replay { steps: 0, explained: 0, error_percent: None, worst_percent: None, used: false, why_not: Some(why) }
        }
    })
}

#[derive(Serialize)]
pub struct Bottleneck<'a> {
    r#type: &'static str,
    primary_cause: &'a str,
    confidence: f64,
    evidence: Vec<Proof<'a>>,
}

#[derive(Serialize)]
pub struct Suggestion<'a> {
    /// 1 is what to do first.
    priority: usize,
    action: &'a str,
    rationale: &'a str,
    impact: &'static str,
    estimated_improvement_percent: Option<Gain>,
    rule: &'static str,
    evidence: Vec<Proof<'a>>,
}

#[derive(Serialize)]
pub struct Found<'a> {
    code: &'static str,
    title: &'a str,
    severity: &'static str,
    r#where: Where<'a>,
    gain_percent: Option<Gain>,
    confidence: f64,
    certainty: Factors,
    evidence: Vec<Proof<'a>>,
    actions: Vec<&'a str>,
    verify: &'a str,
}

/// What the confidence is the product of.
#[derive(Serialize)]
struct Factors {
    seen: f64,
    cause: f64,
    fix: f64,
    steps: f64,
}

#[derive(Serialize)]
struct Where<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
    module: Option<&'a str>,
    kernel: Option<&'a str>,
    api: Option<&'a str>,
}

#[derive(Clone, Copy, Serialize)]
struct Gain {
    low: f64,
    mid: f64,
    high: f64,
    by: &'static str,
    change: &'static str,
    /// What the recording alone gives, where measured fixes corrected it.
    derived: Option<[f64; 3]>,
}

/// Times are after the start of the recording. What a piece of proof does not have is left out: most are a sentence.
#[derive(Serialize, Default)]
struct Proof<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_us: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_us: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    numbers: BTreeMap<&'a str, f64>,
}

#[derive(Serialize)]
pub struct Abstained<'a> {
    code: &'static str,
    reason: &'a str,
}

pub fn bottleneck(diagnosis: &Diagnosis) -> Bottleneck<'_> {
    let said = &diagnosis.bottleneck;
    Bottleneck {
        r#type: said.kind.name(),
        primary_cause: &said.primary_cause,
        confidence: said.confidence,
        evidence: said.evidence.iter().map(|text| Proof { text, ..Proof::default() }).collect(),
    }
}

/// The first thing to do about each finding, in the order of the findings; the other things stand with the finding.
pub fn suggestions<'a>(timeline: &'a Timeline, diagnosis: &'a Diagnosis) -> Vec<Suggestion<'a>> {
    let with_action = diagnosis.findings.iter().filter_map(|finding| Some((finding, finding.actions.first()?)));
    let suggestion = |(place, (finding, action)): (usize, (&'a Finding, &'a Action))| Suggestion {
        priority: place + 1,
        action: action.text(),
        rationale: &finding.title,
        impact: finding.severity.name(),
        estimated_improvement_percent: gain(finding),
        rule: finding.code.as_str(),
        evidence: evidence(timeline, finding),
    };
    with_action.enumerate().map(suggestion).collect()
}

pub fn finding<'a>(timeline: &'a Timeline, finding: &'a Finding) -> Found<'a> {
    let place = &finding.place;
    Found {
        code: finding.code.as_str(),
        title: &finding.title,
        severity: finding.severity.name(),
        r#where: Where {
            file: place.file.as_deref(),
            line: place.line,
            function: place.function.as_deref(),
            module: place.module.as_deref(),
            kernel: place.kernel.as_deref(),
            api: place.api.as_deref(),
        },
        gain_percent: gain(finding),
        confidence: finding.confidence(),
        certainty: certainty(finding),
        evidence: evidence(timeline, finding),
        actions: finding.actions.iter().map(|action| action.text()).collect(),
        verify: &finding.verify,
    }
}

#[derive(Serialize)]
pub struct Considered<'a> {
    code: &'static str,
    title: &'a str,
    confidence: f64,
    against: &'a str,
}

/// What else could be the cause, and what speaks against it.
pub fn considered(diagnosis: &Diagnosis) -> Vec<Considered<'_>> {
    let all = diagnosis.considered.iter();
    all.map(|one| Considered {
        code: one.code.as_str(),
        title: &one.title,
        confidence: one.confidence,
        against: &one.against,
    })
    .collect()
}

pub fn abstention(abstention: &diagnosis::Abstention) -> Abstained<'_> {
    Abstained { code: abstention.code.as_str(), reason: &abstention.reason }
}

fn certainty(finding: &Finding) -> Factors {
    let diagnosis::Certainty { seen, cause, fix, steps } = finding.certainty;
    Factors { seen, cause, fix, steps }
}

fn gain(finding: &Finding) -> Option<Gain> {
    // No recording tells shares apart that differ by less.
    let hundredths = |percent: f64| (percent * 100.0).round() / 100.0;
    finding.gain.map(|gain| Gain {
        low: hundredths(gain.low),
        mid: hundredths(gain.mid),
        high: hundredths(gain.high),
        by: gain.by.name(),
        change: gain.kind.name(),
        derived: gain.derived.map(|derived| derived.map(hundredths)),
    })
}

fn evidence<'a>(timeline: &'a Timeline, finding: &'a Finding) -> Vec<Proof<'a>> {
    let since = |time: Option<u64>| time.map(|time| Micros::of(time.saturating_sub(timeline.start)));
    let track = |track: Option<TrackIndex>| track.and_then(|track| timeline.tracks.get(track.0 as usize));
    let proof = |evidence: &'a diagnosis::Evidence| {
        let track = track(evidence.track);
        Proof {
            text: &evidence.text,
            start_us: since(evidence.start),
            end_us: since(evidence.end),
            // 0 stands for a process whose number is not known.
            pid: track.map(|track| timeline.process(track).pid).filter(|pid| *pid > 0),
            tid: track.map(|track| track.tid),
            thread: track.map(|track| &*track.name).filter(|name| !name.is_empty()),
            numbers: evidence.numbers.iter().map(|(name, value)| (name.as_str(), *value)).collect(),
        }
    };
    finding.evidence.iter().map(proof).collect()
}
