//! Samples of devices, from a stand-in for NVIDIA's library that is built here and from a tree of amdgpu's files: what is
//! there is recorded, what is not is missing and never 0, and a device that goes away is said to have.

use crate::roles::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use trace::tables::Table;

/// A library with the names of NVIDIA's.
fn build(folder: &Folder, options: &[&str]) -> PathBuf {
    let library = folder.path("libnvidia-ml.so.1");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_nvml/fake_nvml.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library).arg(source).args(options);
    assert!(compiler.status().expect("a C compiler (cc) is needed for this test").success());
    library
}

/// Files of AMD's driver as in tests/sysfs.
fn plant(folder: &Folder) -> PathBuf {
    let (root, text) = (folder.path("sys"), include_str!("sysfs/mi300x.txt"));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (path, contents) = line.split_once(": ").unwrap();
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents.replace('|', "\n") + "\n").unwrap();
    }
    root
}

/// A recording of a shell that writes its pid and waits for `go`.
struct Recorded<'a> {
    folder: &'a Folder,
    child: Child,
}

impl Recorded<'_> {
    fn start<'a>(folder: &'a Folder, nvml: &Path, sysfs: &Path) -> Recorded<'a> {
        let (pid, go) = (folder.path("pid"), folder.path("go"));
        let line = format!(
            "echo $$ > {p}.new; mv {p}.new {p}; until [ -e {go} ]; do sleep 0.02; done",
            p = pid.display(),
            go = go.display()
        );
        let variables: [(&str, &Path); 6] = [
            ("OUTPUT", &folder.path("trace")),
            ("RESULT", &folder.path("result")),
            ("COMMAND", Path::new(&line)),
            ("FAKE_NVML_PIDS", &pid),
            ("INFERSCOPE_NVML", nvml),
            ("INFERSCOPE_SYSFS", sysfs),
        ];
        Recorded { folder, child: spawn("recorder", &variables) }
    }

    fn trace(&self) -> PathBuf {
        self.folder.path("trace")
    }

    /// Lets it run until its counters say something, then to its end.
    fn until(mut self, so: impl Fn(&Counters) -> bool) -> (Counters, Vec<String>) {
        until("the counters are there", || self.trace().is_dir() && so(&Counters::read(&self.trace())));
        fs::write(self.folder.path("go"), "").unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        (Counters::read(&self.trace()), sentences(&state(&self.trace()).notes))
    }
}

/// The values of each counter, by process, device and name.
struct Counters(BTreeMap<(i64, i64, String), Vec<i64>>);

impl Counters {
    fn read(trace: &Path) -> Counters {
        let name = |row| (integer(row, "id").unwrap(), text(row, "text").unwrap());
        // Names are written before the rows that use them: the rows first.
        let counters = rows(trace, Table::Counters);
        let names: BTreeMap<i64, String> = rows(trace, Table::Names).iter().map(name).collect();
        let mut all: BTreeMap<_, Vec<i64>> = BTreeMap::new();
        for row in &counters {
            let column = |name| integer(row, name).unwrap();
            let key = (column("process"), column("thread"), names[&column("counter")].clone());
            all.entry(key).or_default().push(column("value"));
        }
        Counters(all)
    }

    fn of(&self, device: i64, name: &str) -> Option<i64> {
        self.0.get(&(-1, device, name.to_owned())).and_then(|values| values.last().copied())
    }

    fn count(&self, device: i64, name: &str) -> usize {
        self.0.get(&(-1, device, name.to_owned())).map_or(0, Vec::len)
    }

    fn names(&self, device: i64) -> BTreeSet<&str> {
        self.0.keys().filter(|key| key.0 == -1 && key.1 == device).map(|key| key.2.as_str()).collect()
    }
}

const NONE: &str = "/nonexistent/libnvidia-ml.so.1";

#[test]
fn nvidia_devices_are_sampled_and_what_they_lack_is_missing() {
    let folder = Folder::new("nvml");
    let nvml = build(&folder, &["-DNO_POWER", "-DMIG"]);
    let recorded = Recorded::start(&folder, &nvml, Path::new("/nonexistent"));
    let (counters, notes) = recorded.until(|counters| {
        counters.count(1, "gpu_utilisation_percent") > 5 && counters.of(1, "gpu_pcie_tx_bytes_per_s").is_some()
    });
    let expected = [
        ("gpu_memory_used_bytes", 7_000_000_000),
        ("gpu_memory_total_bytes", 150_754_820_096),
        ("gpu_sm_clock_mhz", 1980),
        ("gpu_memory_clock_mhz", 3201),
        ("gpu_temperature_c", 61),
        ("gpu_throttle_reasons", 4),
        ("gpu_pcie_tx_bytes_per_s", 11_000),
        ("gpu_pcie_rx_bytes_per_s", 22_000),
        ("gpu_pcie_link_gen", 5),
        ("gpu_pcie_link_width", 16),
        ("gpu_other_processes_memory_bytes", 0),
    ];
    for (name, value) in expected {
        assert_eq!((counters.of(0, name), counters.of(1, name)), (Some(value), Some(value)), "{name}");
    }
    assert_eq!(counters.of(1, "gpu_memory_bandwidth_utilisation_percent"), Some(40));
    // Not supported, without a symbol, and of a device in pieces: missing, not 0.
    let whole = expected.map(|(name, _)| name).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(counters.names(0), whole, "device 0 is cut into instances");
    for name in ["gpu_ecc_corrected", "gpu_ecc_uncorrected", "gpu_power_mw"] {
        assert_eq!(counters.of(1, name), None, "{name}");
    }
    // What the process holds, added up; nothing of processes that are not ours.
    let held = counters.0.iter().filter(|(key, _)| key.2 == "gpu_process_memory_bytes");
    assert_eq!(held.map(|(key, values)| (key.0, key.1, values[0])).collect::<Vec<_>>(), [(0, 0, 1500), (0, 1, 1501)]);
    let devices = state(&folder.path("trace")).devices;
    assert_eq!(
        (devices.len(), devices[1].name.as_str(), devices[1].uuid.as_str()),
        (2, "Fake H200 number 1", "GPU-0000-1")
    );
    assert_eq!((devices[1].kind.as_str(), devices[1].pci_bus_id.as_str()), ("nvidia", "00000000:1C:00.0"));
    assert!(!notes.iter().any(|note| note.contains("NVIDIA") || note.contains("device")), "{notes:?}");
}

#[test]
fn a_device_that_disappears_is_said_and_the_other_goes_on() {
    let folder = Folder::new("nvml-lost");
    let nvml = build(&folder, &["-DLOSE=4"]);
    let recorded = Recorded::start(&folder, &nvml, Path::new("/nonexistent"));
    let (counters, notes) = recorded.until(|counters| counters.count(0, "gpu_utilisation_percent") > 9);
    assert!(counters.count(1, "gpu_utilisation_percent") <= 4);
    let lost = "GPU 1 (Fake H200 number 1) was lost while recording: GPU is lost";
    assert!(notes.iter().any(|note| note == lost), "{notes:?}");
}

#[test]
fn a_driver_that_does_not_start_is_said_and_one_that_is_not_there_is_not() {
    let cases: [(&[&str], bool); 3] = [(&["-DFAIL_INIT=999"], true), (&["-DFAIL_INIT=9"], false), (&[], false)];
    for (options, is_said) in cases {
        let folder = Folder::new("nvml-broken");
        let nvml = if options.is_empty() { NONE.into() } else { build(&folder, options) };
        let said = "no readings of NVIDIA GPUs: NVML does not start: Unknown Error";
        let (trace, read) = (folder.path("trace"), recorder::manifest::Manifest::read);
        let noted =
            |_: &Counters| read(&trace).is_ok_and(|now| now.notes.iter().any(|note| note.said() == said)) || !is_said;
        let (counters, notes) = Recorded::start(&folder, &nvml, Path::new("/nonexistent")).until(noted);
        assert!(counters.names(0).is_empty() && state(&folder.path("trace")).devices.is_empty());
        assert_eq!(notes.iter().any(|note| note == said), is_said, "{notes:?}");
        assert_eq!(notes.iter().filter(|note| note.contains("NVML")).count(), usize::from(is_said), "{notes:?}");
    }
}

#[test]
fn amd_devices_are_sampled_from_sysfs() {
    let folder = Folder::new("amd");
    let sysfs = plant(&folder);
    let recorded = Recorded::start(&folder, Path::new(NONE), &sysfs);
    let (counters, notes) = recorded.until(|counters| {
        counters.of(1, "gpu_power_mw").is_some() && counters.of(0, "gpu_pcie_tx_bytes_per_s").is_some()
    });
    let expected = [
        ("gpu_ecc_corrected", 3),
        ("gpu_ecc_uncorrected", 0),
        ("gpu_memory_bandwidth_utilisation_percent", 41),
        ("gpu_memory_clock_mhz", 1300),
        ("gpu_memory_total_bytes", 206_141_652_992),
        ("gpu_memory_used_bytes", 68_719_476_736),
        ("gpu_pcie_link_gen", 5),
        ("gpu_pcie_link_width", 16),
        ("gpu_pcie_rx_bytes_per_s", 384_000),
        ("gpu_pcie_tx_bytes_per_s", 179_200),
        ("gpu_power_mw", 612_000),
        ("gpu_sm_clock_mhz", 2100),
        ("gpu_temperature_c", 64),
        ("gpu_utilisation_percent", 97),
    ];
    for (name, value) in expected {
        assert_eq!(counters.of(0, name), Some(value), "{name}");
    }
    assert_eq!(counters.names(0).len(), expected.len());
    let some = ["gpu_memory_used_bytes", "gpu_power_mw", "gpu_utilisation_percent"];
    assert_eq!(counters.names(1), some.into_iter().collect());
    assert_eq!(counters.of(1, "gpu_power_mw"), Some(41_500));
    let devices = state(&folder.path("trace")).devices;
    let about = devices.iter().map(|device| (device.kind.as_str(), device.name.as_str(), device.pci_bus_id.as_str()));
    assert_eq!(
        about.collect::<Vec<_>>(),
        [("amd", "AMD Instinct MI300X", "0000:05:00.0"), ("amd", "AMD device 0x731f", "0000:85:00.0")]
    );
    assert!(!notes.iter().any(|note| note.contains("device")), "{notes:?}");
}

#[test]
fn a_sleeping_amd_device_is_left_asleep_and_a_lost_one_is_said() {
    let folder = Folder::new("amd-lost");
    let sysfs = plant(&folder);
    let card = sysfs.join("class/drm/card2");
    let asleep = sysfs.join("class/drm/card1/device/power/runtime_status");
    fs::write(asleep, "suspended\n").unwrap();
    let recorded = Recorded::start(&folder, Path::new(NONE), &sysfs);
    until("the second device is sampled", || {
        recorded.trace().is_dir() && Counters::read(&recorded.trace()).of(1, "gpu_power_mw").is_some()
    });
    fs::remove_dir_all(&card).unwrap();
    let lost = "GPU 1 (AMD device 0x731f) was lost while recording: its files are gone from sysfs";
    let trace = recorded.trace();
    let (counters, notes) = recorded.until(|_| state(&trace).notes.iter().any(|note| note.said() == lost));
    assert!(notes.iter().any(|note| note == lost), "{notes:?}");
    assert!(counters.names(0).is_empty(), "{:?}", counters.names(0));
}

#[test]
fn doctor_is_told_what_each_device_lacks_and_what_asking_costs() {
    let folder = Folder::new("device-doctor");
    let (nvml, sysfs, result) = (build(&folder, &["-DNO_POWER"]), plant(&folder), folder.path("result"));
    let told = |nvml: &Path, sysfs: &Path| {
        let variables = [("RESULT", result.as_path()), ("INFERSCOPE_NVML", nvml), ("INFERSCOPE_SYSFS", sysfs)];
        assert!(spawn("doctor", &variables).wait().unwrap().success());
        fs::read_to_string(&result).unwrap()
    };
    let report = told(&nvml, &sysfs);
    for words in [
        "580.65.06",
        "Fake H200 number 1",
        "not in this driver's library",
        "not supported",
        "AMD Instinct MI300X",
        "amdgpu has no mem_busy_percent for it",
        "NVML device 1",
        "amdgpu device 2",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    let report = told(Path::new(NONE), Path::new("/nonexistent"));
    assert!(report.contains("no NVIDIA driver") && !report.contains("NVML device"), "{report}");
}
