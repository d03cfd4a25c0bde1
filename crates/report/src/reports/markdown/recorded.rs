//! How the recording was made: by which version, of what, where, with which settings. Never arguments or environment: the
//! trace does not have them.

use super::code::code;
use super::words::prose;
use crate::units::{bytes, counted, date, duration};
use analysis::Metrics;
use diagnosis::wording::origin::completeness;
use std::io::{self, Write};
use timeline::{Exit, Timeline};

pub fn write(timeline: &Timeline, metrics: &Metrics, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "## How it was recorded\n")?;
    for line in [program(timeline), machine(timeline), settings(timeline, metrics)] {
        let line: Vec<String> = line.into_iter().flatten().collect();
        if !line.is_empty() {
            writeln!(out, "- {}", line.join(" · "))?;
        }
    }
    Ok(())
}

fn program(timeline: &Timeline) -> Vec<Option<String>> {
    let info = &timeline.info;
    let mut pythons: Vec<&str> = timeline.processes.iter().map(|process| &*process.python).collect();
    pythons.sort_unstable();
    pythons.dedup();
    let pythons: Vec<&str> = pythons.into_iter().filter(|python| !python.is_empty()).collect();
    let ended = info.exit.map(|exit| match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
    });
    vec![
        (!info.command.is_empty()).then(|| code(&info.command)),
        (!pythons.is_empty()).then(|| prose(&format!("Python {}", pythons.join(", ")))),
        ended,
        (info.created_unix_ns > 0).then(|| date(info.created_unix_ns)),
    ]
}

fn machine(timeline: &Timeline) -> Vec<Option<String>> {
    let host = &timeline.info.host;
    let said = |text: &str| (!text.is_empty()).then(|| prose(text));
    vec![
        said(&host.hostname),
        said(&host.cpu_model),
        host.cpu_count.map(|cores| counted(cores, "core")),
        host.numa_nodes.map(|nodes| counted(nodes, "NUMA node")),
        host.ram_bytes.map(|ram| format!("{} of memory", bytes(ram))),
        (!host.kernel.is_empty()).then(|| prose(&format!("kernel {}", host.kernel))),
    ]
}

fn settings(timeline: &Timeline, metrics: &Metrics) -> Vec<Option<String>> {
    let info = &timeline.info;
    let rate = info.settings.rate_hz.map(|rate| match rate {
        rate if rate > 0.0 => format!("stacks sampled {rate} times a second"),
        _ => "stacks not sampled".into(),
    });
    let calls = info.settings.calls.map(|calls| if calls { "calls recorded" } else { "calls not recorded" });
    let events = metrics.slices + timeline.samples.len() + metrics.counter_points + timeline.memory.events.len();
    let clock = (!info.clock.source.is_empty())
        .then(|| prose(&format!("clock {}, accurate to {}", info.clock.source, duration(info.clock.residual_ns))));
    vec![
        (!info.version.is_empty()).then(|| prose(&format!("InferScope {}", info.version))),
        Some(completeness(info.state).into()),
        rate,
        calls.map(str::to_owned),
        Some(counted(events as u64, "event")),
        clock,
    ]
}
