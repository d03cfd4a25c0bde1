//! Reads manifest.json leniently: a field that is missing or of the wrong type is unknown, an unknown field is ignored.
//! Only three things are errors: another format, a newer version, and text that is not JSON at all.

use super::workers;
use crate::before_codes;
use crate::gpu::Device;
use crate::ids::ProcessIndex;
use crate::timeline::*;
use crate::{Note, NoteCode};
use serde_json::Value;
use std::collections::BTreeSet;
use trace::codes::{CollectorCode, Condition};
use trace::manifest as keys;

/// 40,000 processes fit; more is not a manifest of ours, and is not taken into memory.
pub const LARGEST: u64 = 16 << 20;
/// Notes beyond this are counted, not kept.
const MOST_NOTES: usize = 200;
/// More than any machine has.
const MOST_DEVICES: usize = 256;

#[derive(Debug, Default)]
pub struct Manifest {
    /// None: there is no manifest to say it.
    pub version: Option<u32>,
    pub info: Info,
    pub started_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    pub processes: Vec<Process>,
    /// Those of the machine first, then those that each process sees.
    pub devices: Vec<Device>,
    pub notes: Vec<Note>,
}

impl Manifest {
    /// Whether the tables have codes; where there is no manifest they are read as the present version writes them.
    pub fn has_codes(&self) -> bool {
        self.version.is_none_or(|version| version >= trace::tables::FIRST_WITH_CODES)
    }

    /// Leaves the processes of one rank: itself and what it started. Gives the new number of each process, or the ranks that
    /// there are.
    pub fn only(&mut self, rank: u32) -> Result<Vec<Option<i32>>, BTreeSet<u32>> {
        let mut numbers = vec![None; self.processes.len()];
        let ours = (0..self.processes.len()).filter(|at| self.processes[*at].rank == Some(rank));
        for (new, old) in ours.enumerate() {
            numbers[old] = Some(new as i32);
        }
        let all = self.processes.len();
        let ranks: BTreeSet<u32> = self.processes.iter().filter_map(|process| process.rank).collect();
        if !ranks.contains(&rank) {
            return Err(ranks);
        }
        self.processes.retain(|process| process.rank == Some(rank));
        self.devices.retain_mut(|device| match device.process {
            Some(process) => match numbers[process.0 as usize] {
                Some(number) => {
                    device.process = Some(ProcessIndex(number as u32));
                    true
                }
                None => false,
            },
            None => true,
        });
        let count = self.processes.len();
        let said = format!("Only rank {rank} of this recording is here: {count} of its {all} processes.");
        self.notes.push(Note::sentence(said));
        Ok(numbers)
    }
}

#[derive(Debug)]
pub enum Refused {
    NotOurs(String),
    Newer(u64),
    Damaged(String),
}

pub fn parse(bytes: &[u8]) -> Result<Manifest, Refused> {
    if bytes.is_empty() {
        return Err(Refused::Damaged("manifest.json is empty".into()));
    }
    let root: Value = serde_json::from_slice(bytes)
        .map_err(|error| Refused::Damaged(format!("manifest.json is cut or damaged ({error})")))?;
    match root.get(keys::root::FORMAT).and_then(Value::as_str) {
        Some(trace::tables::FORMAT_NAME) => {}
        Some(other) => return Err(Refused::NotOurs(format!("its manifest says format {:?}", cut(other, 40)))),
        None => return Err(Refused::NotOurs("its manifest.json does not name a format".into())),
    }
    match root.get(keys::root::FORMAT_VERSION) {
        Some(version) => match version.as_u64() {
            Some(version) if version > u64::from(trace::tables::FORMAT_VERSION) => return Err(Refused::Newer(version)),
            Some(_) => {}
            None => return Err(Refused::Damaged("its manifest.json has a format_version that is not a number".into())),
        },
        None => return Err(Refused::Damaged("its manifest.json has no format_version".into())),
    }
    Ok(read(&Object(&root)))
}

fn read(root: &Object<'_>) -> Manifest {
    let version = root.number(keys::root::FORMAT_VERSION).and_then(|version| u32::try_from(version).ok());
    let (clock, host, settings) =
        (root.object(keys::root::CLOCK), root.object(keys::root::HOST), root.object(keys::root::SETTINGS));
    let mut processes: Vec<Process> =
        root.list(keys::root::PROCESSES).map(|process| self::process(&Object(process))).collect();
    workers::name(&mut processes);
    let info = Info {
        state: match root.text(keys::root::STATE).as_str() {
            keys::state::RECORDING => State::Recording,
            keys::state::COMPLETE => State::Complete,
            keys::state::RECOVERED => State::Recovered,
            _ => State::Unknown,
        },
        version: root.text(keys::root::INFERSCOPE),
        created_unix_ns: root.number(keys::root::CREATED_UNIX_NS).unwrap_or(0),
        command: root.text(keys::root::COMMAND),
        arguments: root.text(keys::root::ARGUMENTS),
        exit: exit(&root.object(keys::root::EXIT)),
        attached: root.0.get(keys::root::ATTACHED).and_then(Value::as_bool).unwrap_or(false),
        clock: Clock {
            source: clock.text(keys::clock::SOURCE),
            unix_minus_mono_ns: clock.0.get(keys::clock::UNIX_MINUS_MONO_NS).and_then(Value::as_i64).unwrap_or(0),
            residual_ns: clock.number(keys::clock::RESIDUAL_NS).unwrap_or(0),
        },
        host: Host {
            hostname: host.text(keys::host::HOSTNAME),
            kernel: host.text(keys::host::KERNEL),
            cpu_model: host.text(keys::host::CPU_MODEL),
            cpu_count: host.number(keys::host::CPU_COUNT),
            numa_nodes: host.number(keys::host::NUMA_NODES),
            ram_bytes: host.number(keys::host::RAM_BYTES),
        },
        settings: Settings {
            rate_hz: settings.0.get(keys::settings::RATE_HZ).and_then(Value::as_f64).filter(|rate| rate.is_finite()),
            calls: match settings.0.get(keys::settings::CALLS) {
                Some(Value::Bool(on)) => Some(*on),
                Some(Value::String(kind)) => Some(!matches!(kind.as_str(), "" | "0" | "off" | "false")),
                _ => None,
            },
            min_us: settings.number(keys::settings::MIN_US),
            layers: settings.0.get(keys::settings::LAYERS).and_then(Value::as_bool),
            memory_stack_bytes: settings.number(keys::settings::MEMORY_STACKS_KB).and_then(|kib| kib.checked_mul(1024)),
        },
        software: cupti(&processes).into_iter().map(|library| ("CUPTI".to_owned(), library)).collect(),
        ..Info::default()
    };
    let mut notes: Vec<Note> = root.list(keys::root::NOTES).filter_map(note).collect();
    if version.is_some_and(|version| version < trace::tables::FIRST_WITH_CODES) {
        notes.iter_mut().for_each(before_codes::code);
    }
    if notes.len() > MOST_NOTES {
        let more = notes.len() - MOST_NOTES;
        notes.truncate(MOST_NOTES);
        notes.push(Note::sentence(format!("{more} further notes of the recorder are not shown.")));
    }
    Manifest {
        version,
        info,
        started_ns: root.number(keys::root::STARTED_NS).filter(|time| *time > 0),
        ended_ns: root.number(keys::root::ENDED_NS).filter(|time| *time > 0),
        processes,
        devices: devices(root),
        notes,
    }
}

/// Longest argument of a note, and most of them.
const LONGEST_ARGUMENT: usize = 500;
const MOST_ARGUMENTS: usize = 16;

/// A note, or the sentence that it was before there were codes. Of a code that only a later version knows, what it says is not known.
fn note(value: &Value) -> Option<Note> {
    if let Some(sentence) = value.as_str() {
        return Some(Note::sentence(cut(sentence, LONGEST_ARGUMENT)));
    }
    let object = Object(value);
    let name = value.get(keys::note::CODE).and_then(Value::as_str)?;
    let small = |key| object.number(key).and_then(|number| u32::try_from(number).ok());
    let args = object.list(keys::note::ARGS).take(MOST_ARGUMENTS).filter_map(Value::as_str);
    let args: Vec<String> = args.map(|text| cut(text, LONGEST_ARGUMENT)).collect();
    Some(match NoteCode::from_name(name) {
        Some(code) => Note {
            code,
            process: small(keys::note::PROCESS),
            processes: small(keys::note::PROCESSES).unwrap_or(0),
            args,
        },
        None => Note::sentence(format!("{}: {}", cut(name, 40), args.join(", "))),
    })
}

fn windows(of: &Object<'_>) -> Option<WindowedRecording> {
    let part = |name| Some(of.number(name)? as f64 / 1e6);
    Some(WindowedRecording {
        recorded: part(keys::windows::RECORDED_PPM)?.min(1.0),
        cost: part(keys::windows::COST_PPM)?,
    })
}

/// The library that recorded the devices, in the collector's words; of several processes there may be several.
fn cupti(processes: &[Process]) -> Option<String> {
    let states = processes.iter().flat_map(|process| &process.collectors);
    let loaded = states
        .filter(|state| state.name == CollectorCode::Gpu && state.state == Condition::On && !state.reason.is_empty());
    let all: BTreeSet<&str> = loaded.map(|state| state.reason.as_str()).collect();
    (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(" and "))
}

fn exit(exit: &Object<'_>) -> Option<Exit> {
    let small = |key| exit.0.get(key).and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok());
    small(keys::exit::CODE).map(Exit::Code).or(small(keys::exit::SIGNAL).map(Exit::Signal))
}

fn process(process: &Object<'_>) -> Process {
    let small = |key| process.number(key).and_then(|number| u32::try_from(number).ok());
    let (program, rank) = (process.text(keys::process::PROGRAM), small(keys::process::RANK));
    // As in a folder with a file for each rank: everything that names the process names its rank.
    let program = match rank.filter(|_| small(keys::process::WORLD_SIZE).is_some_and(|all| all > 1)) {
        Some(rank) => format!("rank {rank} {program}").trim_end().to_owned(),
        None => program,
    };
    Process {
        pid: process.0.get(keys::process::PID).and_then(Value::as_i64).unwrap_or(0),
        parent_pid: process.0.get(keys::process::PARENT_PID).and_then(Value::as_i64).unwrap_or(0),
        program,
        python: process.text(keys::process::PYTHON),
        started_ns: process.number(keys::process::STARTED_NS).filter(|time| *time > 0),
        ended_ns: process.number(keys::process::ENDED_NS).filter(|time| *time > 0),
        rank,
        collectors: process
            .list(keys::process::COLLECTORS)
            .map(Object)
            .map(|c| CollectorState {
                name: c.text(keys::collector::NAME).into(),
                state: c.text(keys::collector::STATE).into(),
                reason: c.text(keys::collector::REASON),
                own_ns: c.number(keys::collector::OWN_NS).unwrap_or(0),
                residual_ns: c.number(keys::collector::RESIDUAL_NS).unwrap_or(0),
                windows: windows(&c.object(keys::collector::WINDOWS)),
            })
            .collect(),
    }
}

fn devices(root: &Object<'_>) -> Vec<Device> {
    let mut all: Vec<Device> = root
        .list(keys::root::DEVICES)
        .take(MOST_DEVICES)
        .map(|one| device(&Object(one), keys::device::INDEX, None))
        .collect();
    for (number, process) in root.list(keys::root::PROCESSES).enumerate() {
        let process_index = Some(ProcessIndex(number as u32));
        let seen = Object(process).list(keys::process::DEVICES).take(MOST_DEVICES);
        all.extend(seen.map(|one| device(&Object(one), keys::process_device::ORDINAL, process_index)));
    }
    all
}

fn device(device: &Object<'_>, number: &str, process: Option<ProcessIndex>) -> Device {
    let small = |key| device.number(key).and_then(|number| u32::try_from(number).ok());
    Device {
        process,
        ordinal: small(number).unwrap_or(0),
        name: device.text(keys::process_device::NAME).into(),
        uuid: device.text(keys::process_device::UUID).into(),
        multiprocessors: small(keys::process_device::MULTIPROCESSORS),
        compute_capability: device.text(keys::process_device::COMPUTE_CAPABILITY).into(),
        memory_bytes: device.number(keys::process_device::MEMORY_BYTES),
        bandwidth: device.number(keys::process_device::BANDWIDTH),
        cupti: device.text(keys::first_version_device::CUPTI).into(),
        driver: device.text(keys::first_version_device::DRIVER).into(),
    }
}

/// A JSON value of which only wanted fields of the wanted type are seen.
struct Object<'a>(&'a Value);

impl<'a> Object<'a> {
    fn text(&self, key: &str) -> String {
        self.0.get(key).and_then(Value::as_str).map(|text| cut(text, 4096)).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Value::as_u64)
    }

    fn object(&self, key: &str) -> Object<'a> {
        Object(self.0.get(key).unwrap_or(&Value::Null))
    }

    fn list(&self, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.0.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
    }
}

fn cut(text: &str, limit: usize) -> String {
    trace::event::cut(text, limit).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_wrong_type_are_unknown_and_new_ones_ignored() {
        let text = r#"{"format":"inferscope-trace","format_version":1,"state":7,"started_ns":-3,"attached":true,"exit":{"signal":9},
            "processes":[{"pid":"x","program":"python"},3],"settings":{"rate_hz":100},"colour":"blue","notes":[1,"a"]}"#;
        let manifest = parse(text.as_bytes()).unwrap();
        assert_eq!((manifest.info.state, manifest.started_ns), (State::Unknown, None));
        assert_eq!((manifest.info.exit, manifest.info.attached), (Some(Exit::Signal(9)), true));
        assert_eq!(manifest.processes.len(), 2);
        assert_eq!(manifest.processes[0].program, "python");
        assert_eq!(manifest.info.settings.rate_hz, Some(100.0));
        assert_eq!(manifest.notes, [Note::sentence("a")]);
    }

    #[test]
    fn devices_of_the_machine_and_of_each_process() {
        let text = r#"{"format":"inferscope-trace","format_version":1,"devices":[{"index":1,"name":"H200"},7],
            "processes":[{},{"devices":[{"ordinal":0,"name":"H200","cupti":"130001","multiprocessors":132},{"ordinal":-1}]}]}"#;
        let devices = parse(text.as_bytes()).unwrap().devices;
        let brief: Vec<_> = devices.iter().map(|d| (d.process.map(|p| p.0), d.ordinal, &*d.cupti)).collect();
        assert_eq!(brief, [(None, 1, ""), (None, 0, ""), (Some(1), 0, "130001"), (Some(1), 0, "")]);
        assert_eq!(devices[2].multiprocessors, Some(132));
    }

    #[test]
    fn the_library_that_recorded_the_devices_is_software() {
        let of = |state: &str| {
            let text = r#"{"format":"inferscope-trace","format_version":1,"processes":[{},{"collectors":[
                {"name":"gpu","state":"STATE","reason":"libcupti.so.13, CUPTI 130001"},{"name":"stacks","state":"on","reason":"x"}]}]}"#;
            parse(text.replace("STATE", state).as_bytes()).unwrap().info.software.get("CUPTI").cloned()
        };
        assert_eq!(of("on").as_deref(), Some("libcupti.so.13, CUPTI 130001"));
        assert_eq!(of("failed"), None);
    }

    #[test]
    fn ranks_of_a_distributed_program_are_named() {
        let text = r#"{"format":"inferscope-trace","format_version":1,"processes":[{"program":"torchrun"},
            {"program":"serve.py","rank":1,"local_rank":1,"world_size":2},{"program":"alone.py","rank":0,"world_size":1},
            {"program":"odd.py","rank":"0","world_size":2},{"program":"odd.py","rank":-1,"world_size":2}]}"#;
        let processes = parse(text.as_bytes()).unwrap().processes;
        let brief: Vec<_> = processes.iter().map(|process| (&*process.program, process.rank)).collect();
        let named = [("torchrun", None), ("rank 1 serve.py", Some(1)), ("alone.py", Some(0))];
        assert_eq!(brief[..3], named);
        assert_eq!(brief[3..], [("odd.py", None); 2]);
    }

    #[test]
    fn another_format_a_newer_version_and_damage_are_told_apart() {
        assert!(matches!(parse(br#"{"format":"chrome"}"#), Err(Refused::NotOurs(_))));
        assert!(matches!(parse(br#"[1,2]"#), Err(Refused::NotOurs(_))));
        assert!(matches!(parse(br#"{"format":"inferscope-trace","format_version":3}"#), Err(Refused::Newer(3))));
        assert!(matches!(parse(br#"{"format":"inferscope-trace","format_version":"x"}"#), Err(Refused::Damaged(_))));
        assert!(matches!(parse(br#"{"format":"inferscope-tr"#), Err(Refused::Damaged(_))));
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(parse(deep.as_bytes()), Err(Refused::Damaged(_))));
    }
}
