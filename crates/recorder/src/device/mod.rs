//! The devices of the machine, seen from outside: how busy, how warm, how full. Two kinds of driver answer the same
//! questions; what one cannot answer is missing, never 0.

pub(crate) mod amd;
pub(crate) mod nvml;
mod nvml_table;
pub(crate) mod report;
pub(crate) mod sampler;

use crate::manifest;
use crate::proc;
use trace::counters as counter_names;

/// What a device is asked. The numbers' units are in the counters' names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Question {
    Utilisation,
    MemoryUtilisation,
    MemoryUsed,
    MemoryTotal,
    SmClock,
    MemoryClock,
    Power,
    Temperature,
    Throttle,
    LinkGeneration,
    LinkWidth,
    EccCorrected,
    EccUncorrected,
    PcieReceived,
    PcieSent,
}

impl Question {
    pub const ALL: [Question; 15] = [
        Question::Utilisation,
        Question::MemoryUtilisation,
        Question::MemoryUsed,
        Question::MemoryTotal,
        Question::SmClock,
        Question::MemoryClock,
        Question::Power,
        Question::Temperature,
        Question::Throttle,
        Question::LinkGeneration,
        Question::LinkWidth,
        Question::EccCorrected,
        Question::EccUncorrected,
        Question::PcieReceived,
        Question::PcieSent,
    ];

    pub fn counter(self) -> &'static str {
        match self {
            Question::Utilisation => counter_names::GPU_UTILISATION_PERCENT,
            Question::MemoryUtilisation => counter_names::GPU_MEMORY_BANDWIDTH_UTILISATION_PERCENT,
            Question::MemoryUsed => counter_names::GPU_MEMORY_USED_BYTES,
            Question::MemoryTotal => counter_names::GPU_MEMORY_TOTAL_BYTES,
            Question::SmClock => counter_names::GPU_SM_CLOCK_MHZ,
            Question::MemoryClock => counter_names::GPU_MEMORY_CLOCK_MHZ,
            Question::Power => counter_names::GPU_POWER_MW,
            Question::Temperature => counter_names::GPU_TEMPERATURE_C,
            Question::Throttle => counter_names::GPU_THROTTLE_REASONS,
            Question::LinkGeneration => counter_names::GPU_PCIE_LINK_GEN,
            Question::LinkWidth => counter_names::GPU_PCIE_LINK_WIDTH,
            Question::EccCorrected => counter_names::GPU_ECC_CORRECTED,
            Question::EccUncorrected => counter_names::GPU_ECC_UNCORRECTED,
            Question::PcieReceived => counter_names::GPU_PCIE_RX_BYTES_PER_S,
            Question::PcieSent => counter_names::GPU_PCIE_TX_BYTES_PER_S,
        }
    }

    /// Changes seldom: asked in every tenth round.
    pub fn is_seldom(self) -> bool {
        use Question::*;
        matches!(self, MemoryTotal | LinkGeneration | LinkWidth | EccCorrected | EccUncorrected)
    }

    /// The answer is measured inside the call, for 20 ms (NVML) or a second (amdgpu): asked by a thread of its own.
    pub fn is_slow(self) -> bool {
        matches!(self, Question::PcieReceived | Question::PcieSent)
    }
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Silence {
    /// Not this time.
    Now,
    /// Never: this device, driver or user cannot.
    Ever(String),
    /// The device is gone.
    Lost(String),
}

/// One device, whatever its driver.
pub(crate) trait Device: Send {
    fn about(&self) -> &manifest::Device;

    fn ask(&mut self, question: Question) -> Result<u64, Silence>;

    /// Memory that each process holds on this device, by pid.
    fn processes(&mut self) -> Result<Vec<(u32, u64)>, Silence>;

    /// The same device for another thread.
    fn twin(&self) -> Box<dyn Device>;
}

/// Whether the driver tells processes by the numbers that they have here. One that is nobody's here is of another PID namespace, and then the others are
/// no more ours: they only look alike.
pub(crate) fn are_of_our_namespace(listed: &[(u32, u64)]) -> bool {
    listed.iter().all(|(pid, _)| proc::exists(*pid))
}

/// The devices of this machine, numbered through: NVIDIA's in the order of the driver, then AMD's. The error says why there
/// are none of NVIDIA's.
pub(crate) fn all() -> (Vec<Box<dyn Device>>, Result<String, nvml::NoNvml>) {
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    let nvidia = nvml::Nvml::start().map(|nvml| {
        devices.extend(nvml::devices(&nvml));
        nvml.driver_version()
    });
    devices.extend(amd::devices(&amd::root(), devices.len() as u32));
    (devices, nvidia)
}
