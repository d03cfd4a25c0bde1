//! AMD's devices, from the files that amdgpu has in sysfs. A file that is not there is an answer that this device does not
//! have; a sleeping device is left asleep.

use super::{Device, Question, Silence};
use crate::manifest;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use trace::settings::internal;

const VENDOR: &str = "0x1002";

/// Where sysfs is: `INFERSCOPE_SYSFS` names another place.
pub(crate) fn root() -> PathBuf {
    let set = std::env::var_os(internal::SYSFS).filter(|path| !path.is_empty());
    set.map_or_else(|| "/sys".into(), PathBuf::from)
}

/// The devices under a sysfs, numbered from `first`.
pub(crate) fn devices(root: &Path, first: u32) -> Vec<Box<dyn Device>> {
    let entries = fs::read_dir(root.join("class/drm")).into_iter().flatten().flatten();
    let card = |name: &str| name.strip_prefix("card")?.parse::<u32>().ok();
    let mut cards: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((card(entry.file_name().to_str()?)?, entry.path().join("device")))).collect();
    cards.sort();
    let ours = cards.into_iter().filter(|(_, folder)| word(&folder.join("vendor")).is_ok_and(|id| id == VENDOR));
    (first..).zip(ours).map(|(index, (_, folder))| Box::new(AmdDevice::open(index, folder)) as _).collect()
}

#[derive(Clone)]
struct AmdDevice {
    folder: PathBuf,
    sensors: Option<PathBuf>,
    about: manifest::Device,
    /// The other half of the last look at the bus, which takes a second.
    sent: Option<u64>,
}

fn word(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

impl AmdDevice {
    fn open(index: u32, folder: PathBuf) -> AmdDevice {
        let text = |file: &str| word(&folder.join(file)).unwrap_or_default();
        let named = Some(text("product_name")).filter(|name| !name.is_empty());
        let slot = text("uevent").lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME=").map(str::to_owned));
        let about = manifest::Device {
            index,
            kind: "amd".into(),
            name: named.unwrap_or_else(|| format!("AMD device {}", text("device"))),
            uuid: text("unique_id"),
            pci_bus_id: slot.unwrap_or_default(),
        };
        let sensors =
            fs::read_dir(folder.join("hwmon")).into_iter().flatten().flatten().map(|entry| entry.path()).min();
        AmdDevice { folder, sensors, about, sent: None }
    }

    fn sleeps(&self) -> bool {
        word(&self.folder.join("power/runtime_status")).is_ok_and(|status| status == "suspended")
    }

    /// The text of a file; what went wrong decides whether it is asked for again.
    fn read(&self, path: &Path) -> Result<String, Silence> {
        word(path).map_err(|error| {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match error.kind() {
                _ if !self.folder.join("vendor").exists() => Silence::Lost("its files are gone from sysfs".into()),
                io::ErrorKind::NotFound => Silence::Ever(format!("amdgpu has no {file} for it")),
                io::ErrorKind::PermissionDenied if error.raw_os_error() == Some(libc::EACCES) => {
                    Silence::Ever(format!("{file}: {error}"))
                }
                io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => Silence::Ever(format!("{file}: {error}")),
                // Among others what amdgpu says while the device is reset.
                _ => Silence::Now,
            }
        })
    }

    fn number(&self, path: &Path) -> Result<u64, Silence> {
        self.read(path)?.parse().map_err(|_| Silence::Now)
    }

    fn file(&self, file: &str) -> Result<u64, Silence> {
        self.number(&self.folder.join(file))
    }

    fn sensor(&self, files: &[&str]) -> Result<u64, Silence> {
        let folder = self.sensors.as_ref().ok_or_else(|| Silence::Ever("it has no hwmon".into()))?;
        let there = files.iter().map(|file| folder.join(file)).find(|path| path.exists());
        self.number(&there.unwrap_or_else(|| folder.join(files[0])))
    }

    /// Bytes received in the last second, at most; those that were sent are kept. The file has both as packets, and how large
    /// one may be.
    fn received(&mut self) -> Result<u64, Silence> {
        let text = self.read(&self.folder.join("pcie_bw"))?;
        let numbers: Vec<u64> = text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [received, sent, largest] = numbers[..] else { return Err(Silence::Now) };
        self.sent = Some(sent.saturating_mul(largest));
        Ok(received.saturating_mul(largest))
    }

    /// Errors of the memory controller: lines `ue: N` and `ce: N`.
    fn errors(&self, line: &str) -> Result<u64, Silence> {
        let text = self.read(&self.folder.join("ras/umc_err_count"))?;
        let found = text.lines().find_map(|text| text.strip_prefix(line)?.trim().parse().ok());
        found.ok_or(Silence::Now)
    }

    fn link_generation(&self) -> Result<u64, Silence> {
        let text = self.read(&self.folder.join("current_link_speed"))?;
        let speed = text.split(' ').next().unwrap_or_default();
        let known = ["2.5", "5.0", "8.0", "16.0", "32.0", "64.0"].iter().position(|known| *known == speed);
        known.map(|at| at as u64 + 1).ok_or(Silence::Now)
    }
}

impl Device for AmdDevice {
    fn about(&self) -> &manifest::Device {
        &self.about
    }

    fn ask(&mut self, question: Question) -> Result<u64, Silence> {
        if self.sleeps() {
            return Err(Silence::Now);
        }
        match question {
            Question::Utilisation => self.file("gpu_busy_percent"),
            Question::MemoryUtilisation => self.file("mem_busy_percent"),
            Question::MemoryUsed => self.file("mem_info_vram_used"),
            Question::MemoryTotal => self.file("mem_info_vram_total"),
            // Hertz, microwatts and thousandths of a degree.
            Question::SmClock => Ok(self.sensor(&["freq1_input"])? / 1_000_000),
            Question::MemoryClock => Ok(self.sensor(&["freq2_input"])? / 1_000_000),
            Question::Power => Ok(self.sensor(&["power1_average", "power1_input"])? / 1000),
            Question::Temperature => Ok(self.sensor(&["temp1_input"])? / 1000),
            Question::Throttle => Err(Silence::Ever("amdgpu has no file for it".into())),
            Question::LinkGeneration => self.link_generation(),
            Question::LinkWidth => self.file("current_link_width"),
            Question::EccCorrected => self.errors("ce:"),
            Question::EccUncorrected => self.errors("ue:"),
            Question::PcieReceived => self.received(),
            Question::PcieSent => match self.sent.take() {
                Some(sent) => Ok(sent),
                None => self.received().and_then(|_| self.sent.take().ok_or(Silence::Now)),
            },
        }
    }

    fn processes(&mut self) -> Result<Vec<(u32, u64)>, Silence> {
        Err(Silence::Ever("amdgpu does not report it in one place".into()))
    }

    fn twin(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}
