//! The functions of NVML that are used, each optional: an older driver lacks some, and then only that answer is missing.

use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

pub(super) type Code = c_int;
pub(super) type Handle = *mut c_void;

/// `nvmlUtilization_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Utilisation {
    pub gpu: c_uint,
    pub memory: c_uint,
}

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Memory {
    pub total: c_ulonglong,
    pub free: c_ulonglong,
    pub used: c_ulonglong,
}

/// `nvmlMemory_v2_t`: what the driver keeps for itself stands apart.
#[repr(C)]
#[derive(Default)]
pub(super) struct Memory2 {
    pub version: c_uint,
    pub total: c_ulonglong,
    pub reserved: c_ulonglong,
    pub free: c_ulonglong,
    pub used: c_ulonglong,
}

/// `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Pci {
    pub legacy: [c_char; 16],
    pub domain: c_uint,
    pub bus: c_uint,
    pub device: c_uint,
    pub ids: [c_uint; 2],
    pub bus_id: [c_char; 32],
}

/// `nvmlProcessInfo_t` since its second version.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Process {
    pub pid: c_uint,
    pub memory: c_ulonglong,
    pub gpu_instance: c_uint,
    pub compute_instance: c_uint,
}

const _: () = assert!(size_of::<Memory2>() == 40 && size_of::<Pci>() == 68 && size_of::<Process>() == 24);

macro_rules! table {
    ($($(#[$doc:meta])* $field:ident: $($name:literal)|+ => ($($argument:ty),*) -> $result:ty;)*) => {
        pub(super) struct Table {
            $($(#[$doc])* pub $field: Option<unsafe extern "C" fn($($argument),*) -> $result>,)*
        }

        impl Table {
            /// Newer names first.
            pub fn load(library: &Library) -> Table {
                // SAFETY: the types are those of nvml.h; a pointer stays valid because the library is never closed.
                unsafe {
                    Table { $($field: None$(.or_else(|| library.get($name).ok().map(|symbol| *symbol)))+,)* }
                }
            }
        }
    };
}

table! {
    init: "nvmlInit_v2" | "nvmlInit" => () -> Code;
    shutdown: "nvmlShutdown" => () -> Code;
    words: "nvmlErrorString" => (Code) -> *const c_char;
    driver: "nvmlSystemGetDriverVersion" => (*mut c_char, c_uint) -> Code;
    count: "nvmlDeviceGetCount_v2" | "nvmlDeviceGetCount" => (*mut c_uint) -> Code;
    handle: "nvmlDeviceGetHandleByIndex_v2" | "nvmlDeviceGetHandleByIndex" => (c_uint, *mut Handle) -> Code;
    name: "nvmlDeviceGetName" => (Handle, *mut c_char, c_uint) -> Code;
    uuid: "nvmlDeviceGetUUID" => (Handle, *mut c_char, c_uint) -> Code;
    pci: "nvmlDeviceGetPciInfo_v3" => (Handle, *mut Pci) -> Code;
    utilisation: "nvmlDeviceGetUtilizationRates" => (Handle, *mut Utilisation) -> Code;
    memory: "nvmlDeviceGetMemoryInfo" => (Handle, *mut Memory) -> Code;
    memory2: "nvmlDeviceGetMemoryInfo_v2" => (Handle, *mut Memory2) -> Code;
    clock: "nvmlDeviceGetClockInfo" => (Handle, c_uint, *mut c_uint) -> Code;
    power: "nvmlDeviceGetPowerUsage" => (Handle, *mut c_uint) -> Code;
    temperature: "nvmlDeviceGetTemperature" => (Handle, c_uint, *mut c_uint) -> Code;
    throttle: "nvmlDeviceGetCurrentClocksEventReasons" | "nvmlDeviceGetCurrentClocksThrottleReasons"
        => (Handle, *mut c_ulonglong) -> Code;
    pcie: "nvmlDeviceGetPcieThroughput" => (Handle, c_uint, *mut c_uint) -> Code;
    link_generation: "nvmlDeviceGetCurrPcieLinkGeneration" => (Handle, *mut c_uint) -> Code;
    link_width: "nvmlDeviceGetCurrPcieLinkWidth" => (Handle, *mut c_uint) -> Code;
    ecc: "nvmlDeviceGetTotalEccErrors" => (Handle, c_uint, c_uint, *mut c_ulonglong) -> Code;
    processes: "nvmlDeviceGetComputeRunningProcesses_v3" | "nvmlDeviceGetComputeRunningProcesses_v2"
        => (Handle, *mut c_uint, *mut Process) -> Code;
    mig: "nvmlDeviceGetMigMode" => (Handle, *mut c_uint, *mut c_uint) -> Code;
}
