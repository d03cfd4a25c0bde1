//! Who reads memory: one trait, and a collector for each place that memory lies in. Each says what it can measure; what it cannot is missing,
//! never 0. None of them asks a device to finish its work.

use crate::event::Counters;
use recorder::readings::{self, Devices, Group};

/// What a collector can measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// What the framework's allocator has handed out and reserved.
    pub allocator: bool,
    pub used: bool,
    pub total: bool,
    /// Memory by process, not only of the whole device.
    pub by_process: bool,
}

/// One reading.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// −1: host memory.
    pub device_id: i64,
    /// What this is memory of, for people.
    pub name: String,
    pub counters: Counters,
    /// What the watched processes hold of it. None: nobody in particular is watched, or it is not known.
    pub process_bytes: Option<u64>,
}

pub trait MemoryCollector {
    /// How events name it.
    fn name(&self) -> &'static str;
    fn capabilities(&self) -> Capabilities;
    /// Memory now; `pids` are the processes that are watched. Nothing: there is nothing to read any more.
    fn read(&mut self, pids: &[u32]) -> Vec<Reading>;
}

/// Host memory: of the watched processes, against what their control group or the machine has.
#[derive(Debug, Default)]
pub struct HostCollector {
    previous: Option<u64>,
}

impl MemoryCollector for HostCollector {
    fn name(&self) -> &'static str {
        "inferscope.host"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { allocator: false, used: true, total: true, by_process: true }
    }

    fn read(&mut self, pids: &[u32]) -> Vec<Reading> {
        let Some((total, available)) = readings::machine() else { return Vec::new() };
        let held = (!pids.is_empty()).then(|| pids.iter().filter_map(|pid| readings::resident(*pid)).sum::<u64>());
        // A process that is being taken apart has no memory and no group any more: what it had is in the reading before.
        if held == Some(0) {
            return Vec::new();
        }
        let group = pids.first().map(|pid| Group::of(*pid).read()).unwrap_or_default();
        // A group without a limit of its own has what the machine has.
        let (used, total) = match group.limit.filter(|limit| *limit <= total) {
            Some(limit) => (group.used.map(|used| used.min(limit)), limit),
            None => (Some(total - available.min(total)), total),
        };
        let change = held.map(|held| held as i64 - self.previous.replace(held).unwrap_or(held) as i64);
        let counters =
            Counters { change, used, free: used.map(|used| total - used), total: Some(total), ..Counters::default() };
        vec![Reading { device_id: -1, name: "host memory".into(), counters, process_bytes: held }]
    }
}

/// GPUs, as their drivers tell it: NVML for NVIDIA, sysfs for AMD.
pub struct DeviceCollector {
    devices: Devices,
    knows_processes: bool,
}

impl DeviceCollector {
    /// Err: why there is no device to read.
    pub fn find() -> Result<DeviceCollector, String> {
        let devices = Devices::find();
        match (devices.is_empty(), &devices.nvidia) {
            (true, Err(why)) => Err(format!("no GPU found: {why}")),
            (true, Ok(_)) => Err("no GPU found: the NVIDIA driver has none".into()),
            _ => Ok(DeviceCollector { devices, knows_processes: true }),
        }
    }
}

impl MemoryCollector for DeviceCollector {
    fn name(&self) -> &'static str {
        "inferscope.device"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { allocator: false, used: true, total: true, by_process: self.knows_processes }
    }

    fn read(&mut self, pids: &[u32]) -> Vec<Reading> {
        let read = self.devices.read();
        self.knows_processes = read.iter().any(|device| device.processes.is_some());
        let readings = read.into_iter().map(|device| {
            // A driver that does not list them may not see them, as in a container: that is no 0.
            let held = |all: &Vec<(u32, u64)>| {
                let own = all.iter().filter(|(pid, _)| pids.contains(pid)).map(|(_, bytes)| *bytes);
                own.reduce(u64::saturating_add)
            };
            let used = device.used.zip(device.total).map(|(used, total)| used.min(total)).or(device.used);
            Reading {
                device_id: i64::from(device.index),
                name: device.name,
                counters: Counters {
                    used,
                    free: device.total.zip(used).map(|(total, used)| total - used),
                    total: device.total,
                    ..Counters::default()
                },
                process_bytes: device.processes.as_ref().and_then(held),
            }
        });
        readings.collect()
    }
}
