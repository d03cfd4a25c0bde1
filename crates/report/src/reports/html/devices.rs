//! What the devices' own counters say, as curves: one group a device, under its number on the machine.

use super::curves::{Curve, curve, level};
use super::tracks::{Group, Lanes};
use crate::streams::{counted_device, device_title};
use timeline::{Counter, Timeline, counters as counter_names};

/// Name, title, unit, and how many of what was recorded make one.
const MEMORY_USED: &str = counter_names::GPU_MEMORY_USED_BYTES;
const SHOWN: [(&str, &str, &str, f64); 11] = [
    (counter_names::GPU_UTILISATION_PERCENT, "utilisation (device's own)", "%", 1.0),
    (counter_names::GPU_MEMORY_BANDWIDTH_UTILISATION_PERCENT, "memory bandwidth in use", "%", 1.0),
    (MEMORY_USED, "device memory in use", "bytes", 1.0),
    (counter_names::GPU_SM_CLOCK_MHZ, "SM clock", "MHz", 1.0),
    (counter_names::GPU_MEMORY_CLOCK_MHZ, "memory clock", "MHz", 1.0),
    (counter_names::GPU_POWER_MW, "power", "W", 1e3),
    (counter_names::GPU_TEMPERATURE_C, "temperature", "°C", 1.0),
    (counter_names::GPU_THROTTLE_REASONS, "clocks held back", "reasons", 1.0),
    (counter_names::GPU_PCIE_RX_BYTES_PER_S, "PCIe, to the device", "bytes/s", 1.0),
    (counter_names::GPU_PCIE_TX_BYTES_PER_S, "PCIe, from the device", "bytes/s", 1.0),
    (counter_names::GPU_ECC_UNCORRECTED, "memory errors, not corrected", "", 1.0),
];

/// NVML's bit for "nothing to do": no reason to look at the clock.
const IDLE: i64 = 1;

pub fn add(timeline: &Timeline, lanes: &mut Lanes) {
    let of_machine = || timeline.counters.iter().filter(|counter| counter.process.is_none());
    let mut numbers: Vec<i32> = of_machine().filter_map(counted_device).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let counters: Vec<&Counter> = of_machine().filter(|c| counted_device(c) == Some(number)).collect();
        let find = |name: &str| counters.iter().copied().find(|counter| &*counter.name == name);
        let first = lanes.counters.len();
        let total = find(counter_names::GPU_MEMORY_TOTAL_BYTES).and_then(|counter| counter.value.iter().max());
        for (name, title, unit, divisor) in SHOWN {
            let mut curve = find(name).and_then(|counter| shown(timeline, counter, title, unit, divisor));
            if let (MEMORY_USED, Some(curve), Some(total)) = (name, &mut curve, total) {
                curve.top = Some(*total as f64);
            }
            lanes.counters.extend(curve);
        }
        if lanes.counters.len() > first {
            let known = timeline.gpu.devices.iter().find(|d| d.process.is_none() && d.ordinal as i32 == number);
            let title = device_title(number.max(0) as u32, known.map_or("", |device| &*device.name));
            lanes.groups.push(Group {
                title: format!("{title} · its own counters"),
                tracks: Vec::new(),
                counters: (first..lanes.counters.len()).collect(),
            });
        }
    }
}

/// None where there is nothing to see: never above zero.
fn shown(timeline: &Timeline, counter: &Counter, title: &str, unit: &'static str, divisor: f64) -> Option<Curve> {
    let mut points = level(counter);
    for ((_, value), recorded) in points.iter_mut().zip(&counter.value) {
        *value = if unit == "reasons" { (recorded & !IDLE) as f64 } else { *value / divisor };
    }
    let tops = unit == "%";
    let drawn = || {
        let curve = curve(timeline, title, unit, &points).up_to(tops.then_some(100.0));
        if unit == "reasons" { curve.held() } else { curve }
    };
    points.iter().any(|point| point.1 > 0.0).then(drawn)
}
