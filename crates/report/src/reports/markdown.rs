//! The report as Markdown: made to be read in a pull request. The answer first, then the key figures, where the step's time
//! goes, what was found and what to do about it; the tables and how far the recording can be trusted come after.

pub(crate) mod code;
mod findings;
mod gpu;
mod health;
mod hot;
mod memory;
mod operators;
mod picture;
mod recorded;
mod step;
pub(crate) mod table;
pub(crate) mod words;

use crate::gpu_words;
use crate::units::{self, bytes, count, counted, duration, percent_of};
use analysis::{Metrics, StepSource};
use code::code;
use diagnosis::wording;
use diagnosis::{Diagnosis, HealthState};
pub(crate) use picture::number;
use std::io::{self, Write};
use table::Table;
use timeline::Timeline;
use words::prose;

pub fn write(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let command = &timeline.info.command;
    let of = if command.is_empty() { "a recording".to_owned() } else { code(command) };
    writeln!(out, "# InferScope: {of}\n")?;
    for sentence in &diagnosis.answer {
        writeln!(out, "> {}", prose(sentence))?;
    }
    writeln!(out)?;
    for line in diagnosis.health.iter().filter(|line| line.state == HealthState::Bad) {
        writeln!(out, "**Caution:** {}: {}\n", prose(line.label()), prose(&line.text))?;
    }
    if analysis::memory::is_all(timeline) {
        findings::write(timeline, diagnosis, out)?;
        memory::write(timeline, diagnosis, out)?;
        health::write(metrics, diagnosis, out)?;
        return recorded::write(timeline, metrics, out);
    }
    figures(timeline, metrics, diagnosis, out)?;
    step::write(timeline, diagnosis, out)?;
    picture::slow(timeline, diagnosis, out)?;
    findings::write(timeline, diagnosis, out)?;
    operators::write(timeline, diagnosis, out)?;
    if let Some(metrics) = &diagnosis.gpu {
        gpu::write(timeline, diagnosis, metrics, out)?;
    }
    memory::write(timeline, diagnosis, out)?;
    hot::write(timeline, metrics, diagnosis, out)?;
    health::write(metrics, diagnosis, out)?;
    recorded::write(timeline, metrics, out)
}

/// What was not measured has no row.
fn figures(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["key figures", ""]);
    let mut say = |what: &str, value: String| table.row([what.to_owned(), value]);
    let steps = &diagnosis.steps;
    if steps.source != StepSource::Whole && steps.count() > 0 {
        let left_out = match steps.warmups() {
            0 => String::new(),
            warmups => format!(", {} more excluded as warm-up", count(warmups as u64)),
        };
        say("steps", format!("{} {}{left_out}", count(steps.count() as u64), code(&steps.name)));
        say("found by", prose(&wording::steps::why(steps)));
        say("step p50", duration(steps.p50()));
        say("step p99", duration(steps.p99()));
        steps.kinds.iter().for_each(|kind| say("another kind of step", prose(&wording::steps::kind(kind))));
    }
    if let Some(startup) = steps.startup.filter(|startup| startup.is_notable(timeline)) {
        say("start-up", wording::steps::startup(&startup));
    }
    let sure = match diagnosis.bottleneck.confidence {
        confidence if confidence > 0.0 => format!(" (confidence {})", units::confidence(confidence)),
        _ => String::new(),
    };
    say("bottleneck", format!("{}{sure}", diagnosis.bottleneck.kind.name().replace('_', " ")));
    say("recorded", duration(metrics.duration));
    let processes = counted(metrics.processes.len() as u64, "process");
    say("program", format!("{processes}, {}", counted(metrics.threads.len() as u64, "thread")));
    if let Some(samples) = &metrics.samples {
        say("stack samples", count(samples.taken));
    }
    if let Some(cpu) = &metrics.cpu {
        let of = timeline.info.host.cpu_count.map(|cores| format!(" of {cores}")).unwrap_or_default();
        say("cores in use", format!("mean {:.2}, peak {:.2}{of}", cpu.mean, cpu.peak.value));
    }
    if let Some(memory) = &metrics.memory {
        say("peak memory", bytes(memory.peak.value as u64));
    }
    for device in diagnosis.gpu.iter().flat_map(|gpu| &gpu.devices).filter(|device| device.window_ns > 0) {
        let busy = percent_of(device.busy_ns, device.window_ns);
        let title = prose(&gpu_words::title(timeline, device));
        let least = gpu_words::at_least(diagnosis, device);
        say("GPU busy", format!("{least}{busy} {} ({title})", gpu_words::window(steps.source)));
    }
    table.write(out)
}
