//! The analysis as JSON for programs: the shape that `schema/analysis.schema.json` describes. What was not measured is
//! null, never zero; shares of a whole add up to 100.

mod attribution;
mod gpu;
mod health;
mod hot;
mod memory;
mod operators;
mod parts;
mod picture;
mod shape;
mod times;

use analysis::Metrics;
use diagnosis::Diagnosis;
use shape::Analysis;
use std::io::{self, Write};
use timeline::Timeline;

/// Grows by one after the point when something is added, before it when something changes its meaning or goes.
pub const VERSION: &str = "1.10";

pub fn write(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let (devices, in_steps): (Vec<_>, Vec<_>) = gpu::in_steps(timeline, diagnosis).into_iter().unzip();
    let analysis = Analysis {
        analysis_version: VERSION,
        answer: &diagnosis.answer,
        bottleneck: shape::bottleneck(diagnosis),
        suggestions: shape::suggestions(timeline, diagnosis),
        findings: diagnosis.findings.iter().map(|finding| shape::finding(timeline, finding)).collect(),
        considered: shape::considered(diagnosis),
        abstentions: diagnosis.abstentions.iter().map(shape::abstention).collect(),
        summary: times::summary(timeline, metrics, diagnosis, &in_steps),
        steps: times::steps(timeline, &diagnosis.steps, diagnosis.breakdown.overlapping),
        waterfall: picture::waterfall(timeline, diagnosis),
        slow_steps: picture::slow(timeline, diagnosis),
        gpu: devices,
        gpu_work: diagnosis.gpu.as_ref().map(|metrics| gpu::work(timeline, metrics)),
        operators: operators::operators(timeline, diagnosis),
        host_layers: operators::layers(timeline, diagnosis),
        memory: memory::memory(timeline, diagnosis),
        memory_attribution: attribution::attribution(timeline, diagnosis),
        replay: shape::replay(diagnosis),
        timeline_breakdown: parts::timeline_breakdown(&diagnosis.breakdown),
        idle_breakdown: parts::idle_breakdown(timeline, diagnosis),
        host: hot::host(timeline, metrics, diagnosis),
        health: health::health(timeline, metrics, diagnosis),
        recording: hot::recorded(timeline),
    };
    serde_json::to_writer_pretty(&mut *out, &analysis)?;
    writeln!(out)
}
