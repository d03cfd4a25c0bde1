//! NVIDIA's devices, through the driver's own library, loaded at run time. What it does not support is left out for good; a
//! device that it calls lost is not asked again.

use super::nvml_table::{Code, Handle, Memory, Memory2, Pci, Process, Table, Utilisation};
use super::{Device, Question, Silence};
use crate::manifest;
use libloading::Library;
use std::ffi::{CStr, OsString, c_char, c_uint, c_ulonglong};
use std::sync::Arc;
use trace::settings::internal;

/// `nvmlReturn_t`, as far as it matters here.
const SUCCESS: Code = 0;
const TOO_SMALL: Code = 7;
const DRIVER_NOT_LOADED: Code = 9;
/// Invalid argument, not supported, no permission, function not found, not in this kind of virtual machine.
const NEVER: [Code; 5] = [2, 3, 4, 13, 18];
/// Uninitialised, lost (fallen off the bus), to be reset.
const GONE: [Code; 3] = [1, 15, 16];
/// What NVML says for "not available" where there is no other way.
const NO_VALUE: u64 = u64::MAX;

pub(crate) struct Nvml {
    table: Table,
}

/// Why NVML cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoNvml {
    /// There is no driver here: nothing to say unless somebody asks.
    NoDriver(String),
    /// There is one, but it does not work.
    Broken(String),
}

impl NoNvml {
    pub fn why(&self) -> &str {
        let (NoNvml::NoDriver(why) | NoNvml::Broken(why)) = self;
        why
    }
}

/// The driver's library; under WSL it is not where the loader looks.
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"];

impl Nvml {
    /// `INFERSCOPE_NVML` names another library.
    pub fn start() -> Result<Arc<Nvml>, NoNvml> {
        match std::env::var_os(internal::NVML).filter(|path| !path.is_empty()) {
            Some(path) => Nvml::open(&[path]),
            None => Nvml::open(&NAMES.map(OsString::from)),
        }
    }

    fn open(names: &[OsString]) -> Result<Arc<Nvml>, NoNvml> {
        let mut why = String::new();
        for name in names {
            // SAFETY: the driver's library; its initialisers are as harmless as those of any program that uses it.
            match unsafe { Library::new(name) } {
                Ok(library) => return Nvml::init(library),
                Err(error) if why.is_empty() => why = loader_words(&error),
                Err(_) => {}
            }
        }
        Err(NoNvml::NoDriver(format!("no NVIDIA driver: {why}")))
    }

    fn init(library: Library) -> Result<Arc<Nvml>, NoNvml> {
        // Never closed: the driver may keep threads in it.
        let nvml = Nvml { table: Table::load(Box::leak(Box::new(library))) };
        let Some(init) = nvml.table.init else {
            return Err(NoNvml::Broken("libnvidia-ml has no nvmlInit: unusable library".into()));
        };
        // SAFETY: takes nothing.
        match unsafe { init() } {
            SUCCESS => Ok(Arc::new(nvml)),
            code => {
                let why = format!("NVML does not start: {}", nvml.words(code));
                // Nothing to shut down.
                std::mem::forget(nvml);
                Err(if code == DRIVER_NOT_LOADED { NoNvml::NoDriver(why) } else { NoNvml::Broken(why) })
            }
        }
    }

    fn words(&self, code: Code) -> String {
        // SAFETY: gives a text for ever, or nothing.
        let text = self.table.words.map(|words| unsafe { words(code) }).filter(|text| !text.is_null());
        // SAFETY: it ends with a zero.
        text.map_or(format!("error {code}"), |text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    pub fn driver_version(&self) -> String {
        self.text(|buffer, length| {
            // SAFETY: writes at most that many bytes.
            self.table.driver.map(|driver| unsafe { driver(buffer, length) })
        })
    }

    /// Reads a text of at most 95 bytes; empty where there is none.
    fn text(&self, read: impl FnOnce(*mut c_char, c_uint) -> Option<Code>) -> String {
        let mut buffer = [0 as c_char; 96];
        match read(buffer.as_mut_ptr(), buffer.len() as c_uint - 1) {
            Some(SUCCESS) => until_zero(&buffer),
            _ => String::new(),
        }
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        if let Some(shutdown) = self.table.shutdown {
            // SAFETY: it was started, and nobody asks any more.
            unsafe { shutdown() };
        }
    }
}

/// The loader's own words, without the library's layers around them.
fn loader_words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn until_zero(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// More than any machine has.
const MOST_DEVICES: c_uint = 64;

pub(crate) fn devices(nvml: &Arc<Nvml>) -> Vec<Box<dyn Device>> {
    let mut count = 0;
    // SAFETY: fills the number.
    let code = nvml.table.count.map(|read| unsafe { read(&mut count) });
    let count = if code == Some(SUCCESS) { count.min(MOST_DEVICES) } else { 0 };
    (0..count).filter_map(|index| NvidiaDevice::open(nvml, index)).map(|device| Box::new(device) as _).collect()
}

struct NvidiaDevice {
    nvml: Arc<Nvml>,
    handle: Handle,
    about: manifest::Device,
    /// Cut into instances; that changes only with a reset.
    mig: bool,
    /// The other half of the last answer about utilisation.
    memory_rate: Option<u64>,
}

// SAFETY: NVML may be called by any thread; a handle is a name for a device.
unsafe impl Send for NvidiaDevice {}

impl NvidiaDevice {
    fn open(nvml: &Arc<Nvml>, index: c_uint) -> Option<NvidiaDevice> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: fills the handle.
        (unsafe { nvml.table.handle?(index, &mut handle) } == SUCCESS).then_some(())?;
        let table = &nvml.table;
        let mut pci = Pci::default();
        // SAFETY: fills the structure, whose size is that of nvml.h.
        let has_pci = table.pci.is_some_and(|read| unsafe { read(handle, &mut pci) } == SUCCESS);
        let about = manifest::Device {
            index,
            kind: "nvidia".into(),
            // SAFETY: writes at most that many bytes, here and below.
            name: nvml.text(|buffer, length| table.name.map(|read| unsafe { read(handle, buffer, length) })),
            // SAFETY: as above.
            uuid: nvml.text(|buffer, length| table.uuid.map(|read| unsafe { read(handle, buffer, length) })),
            pci_bus_id: if has_pci { until_zero(&pci.bus_id) } else { String::new() },
        };
        let device = NvidiaDevice { nvml: Arc::clone(nvml), handle, about, mig: false, memory_rate: None };
        Some(NvidiaDevice { mig: device.is_mig(), ..device })
    }

    /// Calls a function if it is there; what it returns decides.
    fn call<F: Copy>(&self, function: Option<F>, call: impl FnOnce(F) -> Code) -> Result<(), Silence> {
        let function = function.ok_or_else(|| Silence::Ever("not in this driver's library".into()))?;
        match call(function) {
            SUCCESS => Ok(()),
            code if NEVER.contains(&code) => Err(Silence::Ever(self.nvml.words(code).to_lowercase())),
            code if GONE.contains(&code) => Err(Silence::Lost(self.nvml.words(code))),
            _ => Err(Silence::Now),
        }
    }

    /// One whole number.
    fn number(&self, function: Option<unsafe extern "C" fn(Handle, *mut c_uint) -> Code>) -> Result<u64, Silence> {
        let mut value = 0;
        // SAFETY: fills the number.
        self.call(function, |read| unsafe { read(self.handle, &mut value) })?;
        Ok(value.into())
    }

    /// One whole number of several that the function knows.
    fn number_of(
        &self,
        function: Option<unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> Code>,
        which: c_uint,
    ) -> Result<u64, Silence> {
        let mut value = 0;
        // SAFETY: fills the number.
        self.call(function, |read| unsafe { read(self.handle, which, &mut value) })?;
        Ok(value.into())
    }

    fn utilisation(&self) -> Result<Utilisation, Silence> {
        let mut value = Utilisation::default();
        // SAFETY: fills the structure.
        self.call(self.nvml.table.utilisation, |read| unsafe { read(self.handle, &mut value) })?;
        Ok(value)
    }

    /// Used and in all.
    fn memory(&self) -> Result<(u64, u64), Silence> {
        let mut newer = Memory2 { version: size_of::<Memory2>() as c_uint | 2 << 24, ..Memory2::default() };
        // SAFETY: fills the structure, whose size and version it is told.
        let done = self.call(self.nvml.table.memory2, |read| unsafe { read(self.handle, &mut newer) });
        match done {
            Ok(()) => return Ok((newer.used, newer.total)),
            Err(lost @ Silence::Lost(_)) => return Err(lost),
            Err(_) => {}
        }
        let mut older = Memory::default();
        // SAFETY: fills the structure.
        self.call(self.nvml.table.memory, |read| unsafe { read(self.handle, &mut older) })?;
        Ok((older.used, older.total))
    }

    /// Errors since the driver was loaded; `kind` 0: corrected.
    fn ecc(&self, kind: c_uint) -> Result<u64, Silence> {
        let mut value: c_ulonglong = 0;
        // SAFETY: fills the number.
        self.call(self.nvml.table.ecc, |read| unsafe { read(self.handle, kind, 0, &mut value) })?;
        Ok(value)
    }

    fn is_mig(&self) -> bool {
        let (mut now, mut later) = (0, 0);
        // SAFETY: fills the numbers.
        let done = self.call(self.nvml.table.mig, |read| unsafe { read(self.handle, &mut now, &mut later) });
        done.is_ok() && now == 1
    }
}

impl Device for NvidiaDevice {
    fn about(&self) -> &manifest::Device {
        &self.about
    }

    fn ask(&mut self, question: Question) -> Result<u64, Silence> {
        let nvml = Arc::clone(&self.nvml);
        let table = &nvml.table;
        let answer = match question {
            // Of a device that is cut up, the whole says 0 or nothing: neither is true of its parts.
            Question::Utilisation | Question::MemoryUtilisation if self.mig => {
                return Err(Silence::Ever("the GPU is split into MIG instances".into()));
            }
            Question::Utilisation => {
                let rates = self.utilisation()?;
                self.memory_rate = Some(rates.memory.into());
                rates.gpu.into()
            }
            Question::MemoryUtilisation => match self.memory_rate.take() {
                Some(rate) => rate,
                None => self.utilisation()?.memory.into(),
            },
            Question::MemoryUsed => self.memory()?.0,
            Question::MemoryTotal => self.memory()?.1,
            Question::SmClock => self.number_of(table.clock, 1)?,
            Question::MemoryClock => self.number_of(table.clock, 2)?,
            Question::Power => self.number(table.power)?,
            Question::Temperature => self.number_of(table.temperature, 0)?,
            Question::Throttle => {
                let mut value: c_ulonglong = 0;
                // SAFETY: fills the number.
                self.call(table.throttle, |read| unsafe { read(self.handle, &mut value) })?;
                value
            }
            Question::LinkGeneration => self.number(table.link_generation)?,
            Question::LinkWidth => self.number(table.link_width)?,
            Question::EccCorrected => self.ecc(0)?,
            Question::EccUncorrected => self.ecc(1)?,
            // In units of 1000 bytes a second.
            Question::PcieSent => self.number_of(table.pcie, 0)? * 1000,
            Question::PcieReceived => self.number_of(table.pcie, 1)? * 1000,
        };
        if answer == NO_VALUE { Err(Silence::Ever("not available".into())) } else { Ok(answer) }
    }

    fn processes(&mut self) -> Result<Vec<(u32, u64)>, Silence> {
        let mut found = [Process::default(); 128];
        let mut count = found.len() as c_uint;
        let mut too_many = false;
        self.call(self.nvml.table.processes, |read| {
            // SAFETY: fills at most as many as it is told there is room for.
            let code = unsafe { read(self.handle, &mut count, found.as_mut_ptr()) };
            too_many = code == TOO_SMALL;
            code
        })
        .map_err(|silence| if too_many { Silence::Ever("more than 128 processes".into()) } else { silence })?;
        let known = found[..(count as usize).min(found.len())].iter().filter(|process| process.memory != NO_VALUE);
        Ok(known.map(|process| (process.pid, process.memory)).collect())
    }

    fn twin(&self) -> Box<dyn Device> {
        let (nvml, about) = (Arc::clone(&self.nvml), self.about.clone());
        Box::new(NvidiaDevice { nvml, handle: self.handle, about, mig: self.mig, memory_rate: None })
    }
}
