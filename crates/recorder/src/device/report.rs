//! The devices for `doctor`: which there are, what each does not answer and why, and what asking costs.

use super::sampler::Asked;
use super::{Question, Silence};
use crate::outcome::SourceCost;
use crate::pace::cpu_time;

/// A device of this machine, and what it cannot tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceReport {
    /// `nvidia` or `amd`.
    pub kind: String,
    pub index: u32,
    pub name: String,
    pub pci_bus_id: String,
    /// Counters that it does not have, each with the reason.
    pub missing: Vec<(&'static str, String)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DevicesReport {
    /// The version of NVIDIA's driver as NVML tells it; else why there is no NVML.
    pub nvml: Result<String, String>,
    pub devices: Vec<DeviceReport>,
}

pub(crate) fn report() -> DevicesReport {
    let (mut devices, nvml) = super::all();
    let devices = devices.iter_mut().map(|device| {
        let about = device.about().clone();
        let missing = Question::ALL.into_iter().filter_map(|question| match device.ask(question) {
            Err(Silence::Ever(why) | Silence::Lost(why)) => Some((question.counter(), why)),
            Err(Silence::Now) => Some((question.counter(), "not now".into())),
            Ok(_) => None,
        });
        let missing = missing.collect();
        DeviceReport { kind: about.kind, index: about.index, name: about.name, pci_bus_id: about.pci_bus_id, missing }
    });
    DevicesReport { devices: devices.collect(), nvml: nvml.map_err(|no| no.why().to_owned()) }
}

/// What one round of questions costs, for each device; nothing where there is none.
pub(crate) fn costs() -> Vec<SourceCost> {
    let asked = super::all().0.into_iter().map(|device| (device.about().clone(), Asked::new(device, false)));
    let cost = |(about, mut asked): (crate::manifest::Device, Asked)| {
        let mut best = None;
        let mut reason = String::new();
        // The first round finds out what is not there.
        for _ in 0..3 {
            let (done, cost) = cpu_time(|| asked.ask(|_, _| ()).map(|()| asked.memory()));
            match done {
                Ok(_) => best = Some(best.map_or(cost, |best| cost.min(best))),
                Err(why) => reason = why,
            }
        }
        let driver = if about.kind == "nvidia" { "NVML" } else { "amdgpu" };
        SourceCost {
            file: format!("{driver} device {}", about.index),
            what: format!("clocks, power, memory and the like of {}", about.name),
            cost_ns: best.map_or(0, |best| best.as_nanos() as u64),
            available: reason.is_empty(),
            reason,
        }
    };
    asked.map(cost).collect()
}
