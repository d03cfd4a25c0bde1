//! The devices of the machine, seen from outside: how busy, how warm, how full. Two kinds of driver answer the same
//! questions; what one cannot answer is missing, never 0.

pub(crate) mod amd;
pub(crate) mod nvml;
mod nvml_table;
pub(crate) mod report;
pub(crate) mod sampler;

use crate::manifest;

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
            Question::Utilisation => "gpu_utilisation_percent",
            Question::MemoryUtilisation => "gpu_memory_bandwidth_utilisation_percent",
            Question::MemoryUsed => "gpu_memory_used_bytes",
            Question::MemoryTotal => "gpu_memory_total_bytes",
            Question::SmClock => "gpu_sm_clock_mhz",
            Question::MemoryClock => "gpu_memory_clock_mhz",
            Question::Power => "gpu_power_mw",
            Question::Temperature => "gpu_temperature_c",
            Question::Throttle => "gpu_throttle_reasons",
            Question::LinkGeneration => "gpu_pcie_link_gen",
            Question::LinkWidth => "gpu_pcie_link_width",
            Question::EccCorrected => "gpu_ecc_corrected",
            Question::EccUncorrected => "gpu_ecc_uncorrected",
            Question::PcieReceived => "gpu_pcie_rx_bytes_per_s",
            Question::PcieSent => "gpu_pcie_tx_bytes_per_s",
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
