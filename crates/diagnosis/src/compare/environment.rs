//! What is different around two recordings: machine, versions, devices and their clocks, settings, command. The most common
//! cause of a difference is here, so it is told before any number.

use std::collections::{BTreeMap, BTreeSet};
use timeline::{Condition, Counter, Timeline, counters as counter_names};

/// Empty where a side does not say it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    pub what: String,
    pub a: String,
    pub b: String,
}

/// Clocks move by a few percent all the time.
const CLOCK_DIFFERS: f64 = 0.03;

pub fn differences(a: &Timeline, b: &Timeline) -> Vec<Difference> {
    let (x, y) = (facts(a), facts(b));
    let mut found = Vec::new();
    let mut keys: Vec<&(u8, String)> = x.keys().chain(y.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let value = |facts: &BTreeMap<(u8, String), String>| facts.get(key).cloned().unwrap_or_default();
        if value(&x) != value(&y) {
            found.push(Difference { what: key.1.clone(), a: value(&x), b: value(&y) });
        }
    }
    found.extend(arguments(a, b));
    for (name, what, unit) in [
        (counter_names::GPU_SM_CLOCK_MHZ, "GPU clock, mean", "MHz"),
        (counter_names::GPU_MEMORY_CLOCK_MHZ, "GPU memory clock, mean", "MHz"),
        (counter_names::GPU_TEMPERATURE_C, "GPU temperature, mean", "°C"),
    ] {
        if let (Some(x), Some(y)) = (mean(a, name), mean(b, name))
            && (x - y).abs() > CLOCK_DIFFERS * x.abs().max(1.0)
        {
            found.push(Difference { what: what.into(), a: format!("{x:.0} {unit}"), b: format!("{y:.0} {unit}") });
        }
    }
    found
}

/// They are not recorded, for they may hold secrets; a number tells that they differ, where both were made with one key.
fn arguments(a: &Timeline, b: &Timeline) -> Option<Difference> {
    let (x, y) = (a.info.arguments.split_once('-')?, b.info.arguments.split_once('-')?);
    let differ = x.0 == y.0 && x.1 != y.1;
    let side = |number: &str| format!("#{number}");
    differ.then(|| Difference { what: "arguments (compared by hash)".into(), a: side(x.1), b: side(y.1) })
}

/// By the order in which they are told, then by name. What is not known is not there.
fn facts(timeline: &Timeline) -> BTreeMap<(u8, String), String> {
    let mut facts = BTreeMap::new();
    let mut say = |order: u8, what: &str, value: String| {
        if !value.is_empty() {
            facts.insert((order, what.to_owned()), value);
        }
    };
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let joined = |all: BTreeSet<String>| all.into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(", ");
    let info = &timeline.info;
    for (name, value) in &info.software {
        say(0, name, value.clone());
    }
    say(0, "Python", joined(timeline.processes.iter().map(|process| process.python.clone()).collect()));
    let devices = &timeline.gpu.devices;
    let of = |get: &dyn Fn(&timeline::gpu::Device) -> String| joined(devices.iter().map(get).collect());
    say(1, "GPU driver", of(&|device| device.driver.to_string()));
    // Ours names it with the software.
    if !info.software.contains_key("CUPTI") {
        say(1, "CUPTI", of(&|device| device.cupti.to_string()));
    }
    say(2, "GPU", of(&|device| device.name.to_string()));
    say(2, "GPU memory, bytes", of(&|device| number(device.memory_bytes)));
    say(2, "GPUs used", number(Some(devices.len() as u64).filter(|count| *count > 0)));
    say(3, "recorded by", info.recorded_by.to_string());
    say(3, "InferScope", info.version.clone());
    let on = timeline.processes.iter().flat_map(|process| &process.collectors).filter(|one| one.state == Condition::On);
    say(3, "active collectors", joined(on.map(|one| one.name.to_string()).collect()));
    say(3, "stack samples a second", info.settings.rate_hz.map(|rate| rate.to_string()).unwrap_or_default());
    say(3, "calls recorded", info.settings.calls.map(|calls| calls.to_string()).unwrap_or_default());
    say(3, "calls shorter than this left out, µs", number(info.settings.min_us));
    // A file of another tool does not know its command; ours for it is the file's name.
    say(4, "command", if info.recorded_by.is_ours() { info.command.clone() } else { String::new() });
    say(4, "processes", timeline.processes.len().to_string());
    say(5, "host", info.host.hostname.clone());
    say(5, "kernel", info.host.kernel.clone());
    say(5, "processor", info.host.cpu_model.clone());
    say(5, "cores", number(info.host.cpu_count));
    say(5, "NUMA nodes", number(info.host.numa_nodes));
    say(5, "memory, bytes", number(info.host.ram_bytes));
    facts
}

fn mean(timeline: &Timeline, name: &str) -> Option<f64> {
    let counters: Vec<&Counter> = timeline.counters.iter().filter(|counter| &*counter.name == name).collect();
    let readings: usize = counters.iter().map(|counter| counter.value.len()).sum();
    let sum: f64 = counters.iter().flat_map(|counter| &counter.value).map(|value| *value as f64).sum();
    (readings > 0).then(|| sum / readings as f64)
}
