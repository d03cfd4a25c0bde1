//! manifest.json: what the trace is, where it comes from, and what is missing from it. Replaced as a whole by a
//! rename, so a reader never sees half of one.

pub use crate::host::Host;
use crate::private;
use crate::settings::{Calls, Settings};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;
use trace::codes::Note;
use trace::device_facts::DeviceFacts;
use trace::plain_file;
use trace::tables::{FORMAT_NAME, FORMAT_VERSION, MANIFEST};

/// Holds room on the disk while a trace is not complete.
pub(crate) const RESERVE: &str = "manifest.json.reserve";
/// 40,000 processes fit.
const LARGEST: u64 = 16 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Recording,
    Complete,
    /// Completed after the recorder was killed.
    Recovered,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub format_version: u32,
    pub state: State,
    pub inferscope: String,
    /// A number that nobody guesses: the segments' folder carries the same. Older traces have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub created_unix_ns: u64,
    pub started_ns: u64,
    pub ended_ns: Option<u64>,
    pub recorder_pid: u32,
    /// Where the workload's segments are while they hold records that are not in the trace.
    pub segments: Option<String>,
    /// Program and script, never arguments: they may hold secrets.
    pub command: String,
    /// Whether they are those of another recording, without saying which: see `arguments.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    pub exit: Option<crate::Exit>,
    /// The process ran already: nothing was brought into it, and nothing recorded from inside.
    #[serde(default, skip_serializing_if = "is_false")]
    pub attached: bool,
    pub clock: Clock,
    pub host: Host,
    pub settings: Recorded,
    /// The devices of the machine, by the index that their counters carry as `thread`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Device>,
    pub processes: Vec<Process>,
    #[serde(with = "crate::note_json")]
    pub notes: Vec<Note>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Clock {
    pub source: String,
    pub unix_minus_mono_ns: i64,
    /// The error bar of every time in the trace.
    pub residual_ns: u64,
    /// The counter starts anew with every boot.
    #[serde(default)]
    pub boot_id: String,
}

/// A device of the machine, as the driver numbers it; a process may number its own in another way, the uuid tells.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Device {
    pub index: u32,
    /// `nvidia` or `amd`.
    pub kind: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uuid: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pci_bus_id: String,
}

/// The settings that a reader of the trace needs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Recorded {
    pub rate_hz: u32,
    pub native: bool,
    pub calls: bool,
    pub c_calls: bool,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub min_us: u64,
    pub trace_size_mb: u32,
    pub memory_hz: f64,
    #[serde(default)]
    pub gpu_detail: String,
    /// `auto`, `none` or a percentage.
    #[serde(default)]
    pub overhead_budget: String,
    #[serde(default)]
    pub layers: bool,
    #[serde(default)]
    pub device_hz: f64,
}

impl From<&Settings> for Recorded {
    fn from(settings: &Settings) -> Recorded {
        Recorded {
            rate_hz: settings.rate_hz,
            native: settings.native,
            calls: settings.calls != Calls::Off,
            c_calls: settings.calls == Calls::WithC,
            include: settings.include.clone(),
            exclude: settings.exclude.clone(),
            min_us: settings.min_us,
            trace_size_mb: settings.trace_size_mb,
            memory_hz: settings.memory_hz,
            gpu_detail: settings.gpu_detail.name().into(),
            overhead_budget: settings.overhead_budget.to_string(),
            layers: settings.layers,
            device_hz: settings.device_hz,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub parent_pid: u32,
    pub program: String,
    pub python: String,
    pub started_ns: u64,
    pub ended_ns: Option<u64>,
    pub collectors: Vec<Collector>,
    /// Field 22 of /proc/PID/stat.
    #[serde(default)]
    pub start_ticks: u64,
    /// The devices that this process uses, as its collector describes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<ProcessDevice>,
    /// Its place in a distributed program, as torchrun gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_rank: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world_size: Option<u32>,
}

/// A device as a process numbers it, in CUDA's words. What CUDA does not tell is 0; what its collector did not ask is left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProcessDevice {
    pub ordinal: u32,
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uuid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiprocessors: Option<u32>,
    /// `9.0`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compute_capability: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
}

impl From<&DeviceFacts> for ProcessDevice {
    fn from(facts: &DeviceFacts) -> ProcessDevice {
        let (major, minor) = facts.compute_capability;
        ProcessDevice {
            ordinal: facts.ordinal,
            name: facts.name.clone(),
            uuid: facts.uuid_text(),
            multiprocessors: Some(facts.multiprocessors),
            compute_capability: format!("{major}.{minor}"),
            memory_bytes: Some(facts.memory_bytes),
            bandwidth: Some(facts.bandwidth),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Collector {
    pub name: String,
    /// `on`, `off` or `failed`.
    pub state: String,
    pub reason: String,
    /// Time that it spent in its own code, in the workload.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub own_ns: u64,
    /// The largest disagreement that it saw between its clock and ours.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub residual_ns: u64,
    /// Where it recorded by turns, and what that costs could be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// Of the sampler of stacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_reads: Option<StackReads>,
}

/// How often a stack was read, and how often its thread had not run and it was used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StackReads {
    pub read: u64,
    pub reused: u64,
}

/// In millionths: the part of the time that was recorded, and how much longer the program takes in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Windows {
    pub recorded_ppm: u64,
    pub cost_ppm: u64,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Manifest {
    /// The manifest of a recording that starts now.
    pub fn new(command: String, settings: &Settings, source: trace::Source) -> Manifest {
        let (mono, real) = (trace::clock::monotonic().0, trace::clock::realtime());
        Manifest {
            format: FORMAT_NAME.into(),
            format_version: FORMAT_VERSION,
            state: State::Recording,
            inferscope: env!("CARGO_PKG_VERSION").into(),
            id: None,
            created_unix_ns: real,
            started_ns: mono,
            ended_ns: None,
            recorder_pid: std::process::id(),
            segments: None,
            command,
            arguments: None,
            exit: None,
            attached: false,
            clock: Clock {
                source: if source == trace::Source::Tsc { "tsc" } else { "monotonic" }.into(),
                unix_minus_mono_ns: real as i64 - mono as i64,
                residual_ns: 0,
                boot_id: crate::host::boot_id(),
            },
            host: crate::host::describe(),
            settings: settings.into(),
            devices: Vec::new(),
            processes: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Writes the manifest of a trace. While recording, some room is held beside it: the note that the disk is full, and
    /// how the command ended, are written even when not a page is left.
    pub fn write_in_reserve(&self, folder: &Path) -> io::Result<()> {
        let reserve = folder.join(RESERVE);
        let mut written = self.write(folder);
        if written.is_err() && fs::remove_file(&reserve).is_ok() {
            written = self.write(folder);
        }
        if self.state != State::Recording {
            let _ = fs::remove_file(&reserve);
        } else if written.is_ok() {
            let needed = 4 * fs::metadata(folder.join(MANIFEST)).map_or(0, |manifest| manifest.len()).max(4096);
            if fs::metadata(&reserve).map_or(0, |held| held.len()) < needed {
                // What the disk does not take now is tried again next time.
                let _ = private::write(&reserve, &vec![0; needed as usize]);
            }
        }
        written
    }

    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let unfinished = folder.join(format!("{MANIFEST}.tmp"));
        let text = serde_json::to_vec_pretty(self)?;
        let written = private::write(&unfinished, &text).and_then(|()| fs::rename(&unfinished, folder.join(MANIFEST)));
        written.inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })
    }

    pub fn read(folder: &Path) -> io::Result<Manifest> {
        let text = plain_file::read_inside(&folder.join(MANIFEST), LARGEST)?;
        Ok(serde_json::from_slice(&text)?)
    }
}
