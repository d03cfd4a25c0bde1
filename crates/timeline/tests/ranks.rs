//! One rank of a recording of several: `TRACE/rank-1` holds its processes, their threads, steps, work, counters and losses, what is
//! of the whole machine, and nothing of the others.

use serde_json::json;
use timeline::fixture::{Fixture, TemporaryFolder};
use timeline::{ProcessIndex, Timeline};

const TWO_RANKS: &str = r#"
    process 100 torchrun 3.12
    process 200 serve.py 3.12
    process 300 serve.py 3.12
    process 301 worker 3.12
    thread 1 200 main
    thread 2 300 main
    step 1 200 10..50 request #1
    step 2 300 20..90 request #1
    scope 3 301 30..40 load #1
    sample 1 200 25 active main@a.py:3
    sample 2 300 25 active main@a.py:4
    sample 2 300 35 active main@a.py:4
    counter -1 0 10 gpu_power_mw 500
    counter 1 0 10 rss_bytes 1000
    counter 2 0 10 rss_bytes 2000
    loss 1 calls 3 overwritten
    loss 2 calls 5 overwritten
    device 1 {"ordinal":0,"name":"A"}
    device 2 {"ordinal":0,"name":"B"}
    api 1 200 20..25 cudaLaunchKernel #7
    api 2 300 40..45 cudaLaunchKernel #7
    kernel 1 0 7 30..35 gemm #7
    kernel 2 0 7 50..59 gemm #7
"#;

fn recorded(folder: &TemporaryFolder) {
    let mut fixture = Fixture::parse(TWO_RANKS);
    for (process, rank) in [(1, 0), (2, 1), (3, 1)] {
        let process = &mut fixture.manifest["processes"][process];
        (process["rank"], process["world_size"]) = (json!(rank), json!(2));
    }
    fixture.write(folder.path());
}

fn open(folder: &TemporaryFolder, what: &str) -> Timeline {
    timeline::open(&folder.path().join(what)).unwrap_or_else(|error| panic!("{what}: {error}"))
}

#[test]
fn all_ranks_are_one_timeline_and_named() {
    let folder = TemporaryFolder::new("ranks-all");
    recorded(&folder);
    let timeline = open(&folder, "");
    let named: Vec<_> = timeline.processes.iter().map(|process| (&*process.program, process.rank)).collect();
    let ranks = [("rank 0 serve.py", Some(0)), ("rank 1 serve.py", Some(1)), ("rank 1 worker", Some(1))];
    assert_eq!(named, [&[("torchrun", None)][..], &ranks].concat());
    assert_eq!((timeline.samples.len(), timeline.gpu.work.len(), timeline.counters.len()), (3, 2, 3));
}

#[test]
fn one_rank_has_what_is_its_own_and_the_machines() {
    let folder = TemporaryFolder::new("ranks-one");
    recorded(&folder);
    let timeline = open(&folder, "rank-1");
    let pids: Vec<_> = timeline.processes.iter().map(|process| process.pid).collect();
    assert_eq!(pids, [300, 301]);
    let tracks: Vec<_> = timeline.tracks.iter().map(|track| (track.process.0, track.tid)).collect();
    assert_eq!(tracks, [(0, 300), (1, 301)]);
    assert_eq!((timeline.slices.len(), timeline.samples.len(), timeline.gpu.work.len()), (3, 2, 1));
    assert_eq!((timeline.gpu.work.dur[0], timeline.gpu.clock.linked), (9_000, 1));
    let devices: Vec<_> = timeline.gpu.devices.iter().map(|device| (device.process, &*device.name)).collect();
    assert_eq!(devices, [(Some(ProcessIndex(0)), "B")]);
    let counters: Vec<_> = timeline.counters.iter().map(|counter| (counter.process, &*counter.name)).collect();
    assert_eq!(counters, [(None, "gpu_power_mw"), (Some(ProcessIndex(0)), "rss_bytes")]);
    assert_eq!(timeline.losses.iter().map(|loss| loss.count).collect::<Vec<_>>(), [5]);
    assert!(timeline.notes_said().iter().any(|note| note.contains("Only rank 1") && note.contains("2 of its 4")));
}

#[test]
fn a_rank_that_is_not_there_is_said() {
    let folder = TemporaryFolder::new("ranks-none");
    recorded(&folder);
    let error = |what: &str| timeline::open(&folder.path().join(what)).unwrap_err().to_string();
    assert!(error("rank-2").contains("no such rank, only 0, 1"), "{}", error("rank-2"));
    assert!(error("rank-x").contains("there is no trace at"), "{}", error("rank-x"));
    let alone = TemporaryFolder::new("ranks-without");
    Fixture::parse("process 100 a 3.12").write(alone.path());
    let error = timeline::open(&alone.path().join("rank-0")).unwrap_err().to_string();
    assert!(error.contains("has no ranks"), "{error}");
}
