//! What a real GPU said, as it was recorded on one (tests/traces/README.md): every piece of work is linked to its call, none starts
//! before it, and the numbers are those of the programs.

use diagnosis::{Diagnosis, Options, diagnose};
use std::path::Path;
use timeline::{Timeline, WorkKind};

fn open(name: &str) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name);
    timeline::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn diagnosed(timeline: &Timeline) -> Diagnosis {
    diagnose(timeline, &Options::default())
}

const TRACES: [&str; 4] = ["decode", "bert", "copies", "graphs"];

#[test]
fn all_work_is_linked_and_follows_its_call() {
    for name in TRACES {
        let timeline = open(name);
        let clock = timeline.gpu.clock;
        assert!(clock.linked > 50, "{name}: {clock:?}");
        assert_eq!((clock.unlinked, clock.violations), (0, 0), "{name}: {clock:?}");
        // The H200 was never nearer to its launch than this, and the clock of CUPTI is ours to within 100 ns.
        assert!(clock.shortest_launch_ns.is_some_and(|shortest| shortest > 1000), "{name}: {clock:?}");
        assert!(clock.residual_ns < 1000, "{name}: {clock:?}");
        // The machine has one, and the process sees it.
        let devices: Vec<_> = timeline.gpu.devices.iter().filter(|device| device.process.is_some()).collect();
        assert!(devices.len() == 1 && &*devices[0].name == "NVIDIA H200", "{name}: {devices:?}");
        let lost = timeline.losses.iter().filter(|loss| ["gpu", "launches"].contains(&loss.collector.as_str())).count();
        assert_eq!(lost, 0, "{name}");
    }
}

#[test]
fn a_decode_that_waits_for_the_host_is_told_from_an_encoder_that_keeps_the_device_busy() {
    let busy = |name: &str| {
        let timeline = open(name);
        let gpu = diagnosed(&timeline).gpu.unwrap_or_else(|| panic!("{name} has a GPU"));
        gpu.devices[0].busy_ns as f64 / gpu.devices[0].window_ns as f64
    };
    let (decode, bert) = (busy("decode"), busy("bert"));
    assert!((0.05..0.2).contains(&decode), "{decode}");
    assert!((0.7..0.99).contains(&bert), "{bert}");
}

#[test]
fn copies_say_what_they_copied() {
    let timeline = open("copies");
    let gpu = diagnosed(&timeline).gpu.expect("a GPU");
    let of = |label: &str| gpu.copies.iter().find(|row| row.label == label).unwrap_or_else(|| panic!("no {label}"));
    let (pageable, pinned) = (of("host → device, pageable"), of("host → device, pinned"));
    assert!(pinned.gb_per_s > 3.0 * pageable.gb_per_s, "{} against {}", pinned.gb_per_s, pageable.gb_per_s);
}

#[test]
fn a_replayed_graph_has_its_nodes_and_their_layers() {
    let timeline = open("graphs");
    let work = &timeline.gpu.work;
    let replayed: Vec<_> = (0..work.len()).map(|at| work.get(at)).filter(|piece| piece.graph != 0).collect();
    let kernels = replayed.iter().filter(|piece| piece.kind == WorkKind::Kernel).count();
    assert!(kernels > 0 && kernels.is_multiple_of(12), "twelve replays of one graph: {kernels}");
    let gpu = diagnosed(&timeline).gpu.expect("a GPU");
    let by_capture: u64 = gpu.layers.iter().map(|layer| layer.by_capture).sum();
    assert!(by_capture as usize >= kernels * 9 / 10, "{by_capture} of {kernels}");
}

#[test]
fn the_same_recording_gets_the_same_diagnosis_each_time() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces/suite");
    for name in ["gil_thread", "healthy_encoder", "recompile"] {
        let timeline = timeline::open(&suite.join(name)).unwrap();
        let said = || {
            let diagnosis = diagnose(&timeline, &Options::default());
            format!("{:?} {:?} {:?}", diagnosis.breakdown, diagnosis.slow_steps, diagnosis.findings)
        };
        let first = said();
        (0..3).for_each(|_| assert!(said() == first, "{name}"));
    }
}
