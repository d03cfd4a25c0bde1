//! What the machine is: written into the manifest once, so that a trace can be read elsewhere.

use serde::{Deserialize, Serialize};
use std::fs;

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Host {
    pub hostname: String,
    pub kernel: String,
    pub cpu_model: String,
    pub cpu_count: u32,
    pub numa_nodes: u32,
    pub ram_bytes: u64,
}

pub(crate) fn describe() -> Host {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let value = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = value(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let kilobytes: u64 = memory.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    Host {
        hostname: read("/proc/sys/kernel/hostname").trim().to_owned(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        cpu_model: value(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
        cpu_count: std::thread::available_parallelism().map_or(0, |count| count.get() as u32),
        numa_nodes: numa_nodes().max(1),
        ram_bytes: kilobytes * 1024,
    }
}

fn numa_nodes() -> u32 {
    let Ok(entries) = fs::read_dir("/sys/devices/system/node") else { return 0 };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())).count() as u32
}

pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
