//! manifest.json: what the trace is, where it comes from, and what is missing from it. Replaced as a whole by a
//! rename, so a reader never sees half of one.

pub use crate::host::Host;
use crate::private;
pub use crate::recorded_settings::RecordedSettings;
use crate::settings::Settings;
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
    pub settings: RecordedSettings,
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
    /// For people.
    pub reason: String,
    /// Of a reason that is one of `trace::codes::ReasonCode`, its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
    /// Time that it spent in its own code, in the workload.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub own_ns: u64,
    /// The largest disagreement that it saw between its clock and ours.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub residual_ns: u64,
    /// Where it recorded by turns, and what that costs could be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<CollectorWindows>,
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
pub struct CollectorWindows {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use trace::codes::NoteCode;
    use trace::manifest as keys;

    /// With everything in it that is left out where there is nothing to say.
    fn whole() -> Manifest {
        let mut manifest = Manifest::new("serve.py".into(), &Settings::default(), trace::Source::Tsc);
        (manifest.id, manifest.attached) = (Some("1".into()), true);
        manifest.arguments = Some("1".into());
        let text = || "x".to_owned();
        let (uuid, pci_bus_id) = (text(), text());
        manifest.devices.push(Device { uuid, pci_bus_id, ..Device::default() });
        let collector = Collector {
            reason_code: Some(text()),
            own_ns: 1,
            residual_ns: 1,
            windows: Some(CollectorWindows::default()),
            stack_reads: Some(StackReads::default()),
            ..Collector::default()
        };
        let device = ProcessDevice {
            uuid: text(),
            multiprocessors: Some(1),
            compute_capability: text(),
            memory_bytes: Some(1),
            bandwidth: Some(1),
            ..ProcessDevice::default()
        };
        let (rank, local_rank, world_size) = (Some(0), Some(0), Some(1));
        let (collectors, devices) = (vec![collector], vec![device]);
        manifest.processes.push(Process { collectors, devices, rank, local_rank, world_size, ..Process::default() });
        manifest.notes.push(Note::new(NoteCode::NoStacks).with("denied").of(12));
        manifest
    }

    #[test]
    fn its_keys_are_those_that_readers_ask_for() {
        let mut manifest = serde_json::to_value(whole()).unwrap();
        let mut exits = BTreeSet::new();
        for exit in [crate::Exit::Code(0), crate::Exit::Signal(9)] {
            let exit = serde_json::to_value(Manifest { exit: Some(exit), ..whole() }).unwrap();
            exits.extend(exit["exit"].as_object().unwrap().keys().cloned());
        }
        manifest["exit"] = exits.into_iter().map(|key| (key, 0.into())).collect::<serde_json::Map<_, _>>().into();
        let process = "/processes/0";
        let [collector, device] = ["collectors", "devices"].map(|list| format!("{process}/{list}/0"));
        for (object, expected) in [
            ("", keys::root::ALL),
            ("/exit", keys::exit::ALL),
            ("/clock", keys::clock::ALL),
            ("/host", keys::host::ALL),
            ("/devices/0", keys::device::ALL),
            (process, keys::process::ALL),
            (&device, keys::process_device::ALL),
            (&collector, keys::collector::ALL),
            (&format!("{collector}/windows"), keys::windows::ALL),
            (&format!("{collector}/stack_reads"), keys::stack_reads::ALL),
            ("/notes/0", keys::note::ALL),
        ] {
            let found: BTreeSet<&str> =
                manifest.pointer(object).unwrap().as_object().unwrap().keys().map(|key| &**key).collect();
            assert_eq!(found, expected.iter().copied().collect(), "{object}");
        }
        let settings = manifest["settings"].as_object().unwrap();
        assert!(keys::settings::ALL.iter().all(|key| settings.contains_key(*key)), "{settings:?}");
        let state = |state| serde_json::to_value(state).unwrap();
        let states = [State::Recording, State::Complete, State::Recovered].map(state);
        assert_eq!(states, [keys::state::RECORDING, keys::state::COMPLETE, keys::state::RECOVERED]);
    }
}
