//! Devices of a window: what they did, from recorded work, and what their driver says of them.

use crate::model::{Device, Kernel};
use diagnosis::Diagnosis;
use std::collections::BTreeMap;
use timeline::{Timeline, counters as counter_names};

const MOST_KERNELS: usize = 50;

pub fn devices(timeline: &Timeline, diagnosis: &Diagnosis) -> Vec<Device> {
    let mut devices: BTreeMap<u32, Device> = BTreeMap::new();
    for counter in timeline.counters.iter().filter(|counter| counter.process.is_none()) {
        let Some(index) = counter.tid.and_then(|number| u32::try_from(number).ok()) else { continue };
        let newest = counter.value.last().copied();
        let device = devices.entry(index).or_insert_with(|| Device { index, ..Device::default() });
        let bytes = || newest.and_then(|value| u64::try_from(value).ok());
        match &*counter.name {
            counter_names::GPU_UTILISATION_PERCENT => device.utilisation_percent = newest,
            counter_names::GPU_MEMORY_USED_BYTES => device.memory_used_bytes = bytes(),
            counter_names::GPU_MEMORY_TOTAL_BYTES => device.memory_total_bytes = bytes(),
            counter_names::GPU_SM_CLOCK_MHZ => device.sm_clock_mhz = newest,
            counter_names::GPU_POWER_MW => device.power_mw = newest,
            counter_names::GPU_TEMPERATURE_C => device.temperature_c = newest,
            counter_names::GPU_THROTTLE_REASONS => device.throttle_reasons = newest,
            _ => {}
        }
    }
    devices.retain(|_, device| device.utilisation_percent.is_some() || device.memory_used_bytes.is_some());
    let window = timeline.duration() as f64;
    for one in diagnosis.gpu.iter().flat_map(|gpu| &gpu.devices) {
        // The number that the process gives it; on the machine it is the same unless the process was shown some devices only.
        let device = devices.entry(one.ordinal).or_insert_with(|| Device { index: one.ordinal, ..Device::default() });
        device.name = one.name.to_string();
        if one.window_ns > 0 {
            let busy = 100.0 * one.busy_ns as f64 / one.window_ns as f64;
            device.busy_percent = Some(device.busy_percent.map_or(busy, |other| other.max(busy)));
        }
        if window > 0.0 {
            let rate = one.kernels as f64 / (window / 1e9);
            device.kernels_per_s = Some(device.kernels_per_s.unwrap_or(0.0) + rate);
        }
    }
    for device in devices.values_mut().filter(|device| device.name.is_empty()) {
        let own = |known: &&timeline::gpu::Device| known.process.is_none() && known.ordinal == device.index;
        device.name = timeline.gpu.devices.iter().find(own).map_or_else(String::new, |known| known.name.to_string());
    }
    devices.into_values().collect()
}

pub fn kernels(timeline: &Timeline, diagnosis: &Diagnosis) -> Vec<Kernel> {
    let row = |row: &analysis::device::gpu::KernelRow| Kernel {
        name: timeline.names.text(row.name).to_owned(),
        count: row.count,
        total_ns: row.total_ns,
        mean_ns: row.mean_ns,
        share_percent: 100.0 * row.share,
    };
    diagnosis.gpu.iter().flat_map(|gpu| &gpu.kernels).take(MOST_KERNELS).map(row).collect()
}
