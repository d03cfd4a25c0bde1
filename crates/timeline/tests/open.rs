//! Opens traces written by the fixture: what belongs together comes together, and what is damaged is said.

use timeline::fixture::{Fixture, TemporaryFolder, Value};
use timeline::{LossReason, OpenError, Timeline};
use trace::tables::Table;

fn open(text: &str) -> Timeline {
    let folder = TemporaryFolder::new("open");
    Fixture::parse(text).write(folder.path());
    timeline::open(folder.path()).unwrap()
}

/// The slices as text: track, depth by time, name, times.
fn draw(timeline: &Timeline) -> String {
    let mut text = String::new();
    for track in &timeline.tracks {
        text += &format!("{}/{} {}\n", timeline.process(track).pid, track.tid, track.name);
        let mut ends: Vec<u64> = Vec::new();
        for index in track.slices.clone() {
            let slice = timeline.slices.get(index);
            while ends.last().is_some_and(|end| *end <= slice.start && slice.dur > 0) {
                ends.pop();
            }
            let micros = |time: u64| (time - timeline.start) / 1000;
            text += &format!(
                "{}{} {} {}..{}{}{}\n",
                "  ".repeat(ends.len() + 1),
                slice.kind.name(),
                timeline.names.text(slice.name),
                micros(slice.start),
                micros(slice.end()),
                if slice.open { " open" } else { "" },
                timeline.slices.args(index).map(|args| format!(" {args}")).unwrap_or_default(),
            );
            ends.push(slice.end());
        }
    }
    text
}

#[test]
fn slices_nest_by_time_on_their_tracks() {
    let timeline = open(
        r#"
        process 100 serve.py 3.12.1
        thread 0 100 MainThread
        thread 0 90 early
        call 0 100 30..40 matmul@np.py:3
        call 0 100 20..60 forward@model.py:12
        scope 0 100 20..80 decode #2 ^1 {"n":3}
        step 0 100 10..90 request #1
        call 0 90 5..6 f@x.py:1
        "#,
    );
    assert_eq!(
        draw(&timeline),
        "100/100 MainThread\n  step request 10..90\n    scope decode 20..80 {\"n\":3}\n      call forward 20..60\n        \
         call matmul 30..40\n100/90 early\n  call f 5..6\n"
    );
    assert_eq!(timeline.duration(), 90_000);
    assert_eq!(timeline.notes_said(), [] as [&str; 0]);
}

#[test]
fn a_complete_slice_replaces_its_checkpoints_and_the_rest_ends_with_the_process() {
    let timeline = open(
        "process 100 serve.py 3.12.1
        scope 0 100 10.. a #1
        scope 0 100 20.. b #2 ^1 {}
        scope 0 100 10.. a #1
        scope 0 100 20..30 b #2
        step 0 100 25.. a #2
        mark 0 100 50 end",
    );
    assert_eq!(
        draw(&timeline),
        "100/100 \n  scope a 10..50 open\n    scope b 20..30 {}\n      step a 25..50 open\n        mark end 50..50\n"
    );
}

#[test]
fn equal_names_are_unified_and_unknown_references_are_placeholders() {
    let folder = TemporaryFolder::new("odd");
    let mut fixture = Fixture::parse("process 100 a 3.12\ncall 0 100 0..9 f@a.py:1\ncall 0 100 2..3 f@a.py:1");
    use trace::tables::Table;
    fixture.row(Table::Names, [77.into(), "f".into(), "a.py".into(), 1.into()]);
    for (process, name, kind) in [(0, 77, 4), (9, 12345, 4), (-7, 77, 4), (0, 77, 99)] {
        let row = [
            6_000_000_000i64.into(),
            5.into(),
            process.into(),
            100.into(),
            kind.into(),
            name.into(),
            None::<i64>.into(),
            None::<i64>.into(),
            None::<&str>.into(),
        ];
        fixture.row(Table::Slices, row);
    }
    fixture.row(Table::Samples, [6_000_000_000i64.into(), 0.into(), 100.into(), 31.into(), 1.into()]);
    fixture.write(folder.path());
    let timeline = timeline::open(folder.path()).unwrap();
    let f = timeline.slices.get(timeline.tracks[0].slices.start).name;
    let same = timeline.tracks[0].slices.clone().all(|index| timeline.slices.get(index).name == f);
    assert!(same && timeline.tracks[0].slices.len() == 3);
    assert_eq!(timeline.processes.len(), 3);
    assert_eq!(timeline.processes[1].program, "process 9, not in the manifest");
    assert_eq!(
        timeline.notes_said(),
        [
            "1 events with a missing name.",
            "1 samples with a missing stack.",
            "1 slices of an unknown kind, skipped.",
            "2 processes with events that are not in the manifest.",
        ]
    );
}

#[test]
fn samples_walk_to_their_root_and_counters_are_series() {
    let timeline = open(
        "process 100 a 3.12
        sample 0 100 10 active,gil main@a.py:3;work@a.py:9
        sample 0 100 20 idle main@a.py:3
        counter 0 0 10 rss_bytes 4096
        counter 0 0 20 rss_bytes 8192
        counter 0 100 20 cpu_ns 5
        counter -1 0 20 psi_cpu_some_us 1
        loss 0 calls 3 overwritten",
    );
    let first = timeline.samples.get(0);
    assert!(first.active && first.gil && !timeline.samples.get(1).active);
    let walk: Vec<_> = timeline.stacks.walk(first.stack).map(|(_, f)| (timeline.names.text(f.name), f.line)).collect();
    assert_eq!(walk, [("work", 9), ("main", 3)]);
    let series: Vec<_> =
        timeline.counters.iter().map(|c| (&*c.name, c.process.is_some(), c.tid, c.value.len())).collect();
    assert_eq!(
        series,
        [("rss_bytes", true, None, 2), ("cpu_ns", true, Some(100), 1), ("psi_cpu_some_us", false, None, 1)]
    );
    assert_eq!((timeline.losses[0].count, timeline.losses[0].reason), (3, LossReason::Overwritten));
    assert!(timeline.slices.is_empty());
}

#[test]
fn each_thing_that_is_not_a_trace_has_its_own_error() {
    let folder = TemporaryFolder::new("errors");
    let at = |name: &str| folder.path().join(name);
    assert!(matches!(timeline::open(&at("nowhere")), Err(OpenError::Missing { .. })));
    std::fs::write(at("file"), "x").unwrap();
    assert!(matches!(timeline::open(&at("file")), Err(OpenError::NotATrace { .. })));
    let with = |name: &str, manifest: &str| {
        std::fs::create_dir_all(at(name)).unwrap();
        std::fs::write(at(name).join("manifest.json"), manifest).unwrap();
        timeline::open(&at(name)).unwrap_err()
    };
    std::fs::create_dir_all(at("empty")).unwrap();
    assert!(matches!(timeline::open(&at("empty")), Err(OpenError::Empty { .. })));
    assert!(matches!(with("other", r#"{"format":"zip"}"#), OpenError::NotATrace { .. }));
    assert!(matches!(
        with("newer", r#"{"format":"inferscope-trace","format_version":9}"#),
        OpenError::NewerVersion { found: 9, .. }
    ));
    assert!(matches!(with("cut", r#"{"format":"infer"#), OpenError::Damaged { .. }));
    let error = timeline::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("it holds traces; name one, such as"), "{error}");
}

/// A recorder renames the joined file into place, then removes the parts: a reader who saw the parts looks again.
#[test]
fn files_that_are_joined_meanwhile_are_found_again() {
    let folder = TemporaryFolder::new("joined");
    Fixture::parse("process 100 a 3.12\ncall 0 100 0..9 f@a.py:1").write(folder.path());
    let part = folder.path().join("slices.000001-000001.parquet");
    let whole = folder.path().join("slices.000001-000002.parquet");
    let mut joined = false;
    // Names are read first; the parts go after that.
    let timeline = timeline::open_with(folder.path(), timeline::Limits::default(), &mut |_, _| {
        if !std::mem::replace(&mut joined, true) {
            std::fs::rename(&part, &whole).unwrap();
        }
    });
    let timeline = timeline.unwrap();
    assert_eq!((timeline.slices.len(), timeline.notes.len()), (1, 0), "{:?}", timeline.notes_said());
}

#[test]
fn device_work_comes_by_stream_and_is_linked_to_its_calls() {
    let timeline = open(
        r#"
        process 100 serve.py 3.12.1
        device 0 {"ordinal":0,"name":"NVIDIA H200","cupti":"130001","bandwidth":4800000000000}
        api 0 100 40..45 cudaLaunchKernel #7
        api 0 100 46..48 cudaMemcpyAsync #8
        api 0 100 49..79 cudaStreamSynchronize #9
        kernel 0 1 9 50..55 other #0
        copy 0 0 7 60..70 h2d #8 bytes 4096
        kernel 0 0 7 50..60 gemm #7 grid 8 block 128 graph 3 node 5
        sync 0 0 7 49..79 stream #9
        free 0 0 90 4096 17
        alloc 0 0 45 4096 17
        "#,
    );
    let gpu = &timeline.gpu;
    let name = |index: usize| timeline.names.text(gpu.work.get(index).name);
    let streams: Vec<_> =
        gpu.streams.iter().map(|s| (s.device, s.stream, s.work.clone().map(name).collect())).collect();
    assert_eq!(streams, [(0, 7, vec!["stream", "gemm", "h2d"]), (1, 9, vec!["other"])]);
    assert_eq!((&*gpu.devices[0].name, &*gpu.devices[0].cupti), ("NVIDIA H200", "130001"));
    let launch =
        |index: usize| gpu.work.launch(index).map(|slice| timeline.names.text(timeline.slices.get(slice).name));
    assert_eq!(launch(1), Some("cudaLaunchKernel"));
    assert_eq!((launch(2), launch(3)), (Some("cudaMemcpyAsync"), None));
    let piece = gpu.work.get(1);
    assert_eq!((piece.graph, piece.node, gpu.shape(1).unwrap().block), (3, 5, [128, 1, 1]));
    assert_eq!((gpu.work.get(2).bytes, gpu.work.get(2).copy().source, gpu.shape(2)), (4096, 1, None));
    assert_eq!(timeline.waited_for(2).map(name), Some("h2d"));
    assert_eq!((gpu.clock.shortest_launch_ns, gpu.clock.shortest_return_ns), (Some(10_000), Some(9_000)));
    assert_eq!(gpu.allocations.iter().map(|one| one.operation as i32).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(timeline.notes_said(), [] as [&str; 0]);
}

#[test]
fn blocks_become_the_events_of_one_allocator_a_process_and_device() {
    use timeline::memory::MemoryEventKind::{Alloc, FreeCompleted, OutOfMemory};
    let timeline = open(
        r#"
        process 100 serve.py 3.12.1
        block 0 100 0 50 alloc 512 17 allocated 512 reserved 2097152
        block 0 100 -1 40 alloc 64 9
        block 0 101 0 60 free 512 17 allocated 0 reserved 2097152
        block 0 100 -1 70 free 0 9
        block 0 100 -1 80 free 0 33
        block 0 100 0 90 out-of-memory 4096 0 allocated 0 reserved 2097152
        "#,
    );
    let memory = &timeline.memory;
    let allocators: Vec<_> = memory.allocators.iter().map(|one| (one.device, &*one.backend, one.began_late)).collect();
    assert_eq!(allocators, [(None, "torch.cpu", true), (Some(0), "torch.cuda", false)], "33 is from before");
    let events: Vec<_> = memory.events.iter().map(|one| (one.allocator.0, one.kind, one.address, one.bytes)).collect();
    let freed = [(1, FreeCompleted, 17, 512), (0, FreeCompleted, 9, 64), (0, FreeCompleted, 33, 0)];
    assert_eq!(events[..2], [(0, Alloc, 9, 64), (1, Alloc, 17, 512)]);
    assert_eq!((&events[2..5], &events[5..]), (&freed[..], &[(1, OutOfMemory, 0, 4096)][..]));
    assert_eq!((memory.events[1].allocated, memory.events[1].reserved), (Some(512), Some(2 << 20)));
    assert_eq!((memory.events[0].allocated, memory.events[0].reserved), (None, None));
    let thread = memory.events[2].track.map(|track| timeline.tracks[track.0 as usize].tid);
    assert_eq!(thread, Some(101), "the thread that gave it back");
}

/// A block from before the first stack was not passed over by the sampling: the recording of stacks had not begun.
#[test]
fn what_the_stack_of_a_block_stands_for_is_known() {
    use timeline::memory::StackBasis::{Always, Missing, Own, PassedOver, Sampled};
    use trace::codes::{StackMissing, StackReason};
    let folder = TemporaryFolder::new("stacks");
    let text = "process 100 a 3.12\n sample 0 100 5 active main@a.py:3\n block 0 100 0 10 alloc 512 1\n
        block 0 100 0 20 alloc 2097152 2 stack 1 stack_reason 1\n block 0 100 0 30 alloc 512 3\n
        block 0 100 0 40 alloc 512 4 stack 1 stack_reason 3\n block 0 100 0 50 alloc 512 5 stack_reason 3 stack_missing 1\n
        block 0 100 0 60 alloc 512 6 stack_reason 99\n block 0 100 0 70 free 0 4";
    let mut fixture = Fixture::parse(text);
    fixture.manifest["settings"]["memory_stacks_kb"] = 64.into();
    fixture.write(folder.path());
    let timeline = timeline::open(folder.path()).unwrap();
    let basis: Vec<_> = timeline.memory.events.iter().map(|event| event.stack_basis).collect();
    assert_eq!(
        basis,
        [Own, Always, PassedOver, Sampled, Missing(StackReason::Sampled, StackMissing::NoPython), PassedOver, Own]
    );
    assert_eq!(timeline.memory.allocators[0].sampled_bytes, Some(64 << 10));
    let frame = timeline.stacks.frame(timeline.memory.events[3].stack);
    assert_eq!(timeline.names.text(frame.name), "main");
}

#[test]
fn blocks_and_driver_calls_that_cannot_be_are_counted_and_left_out() {
    let folder = TemporaryFolder::new("blocks");
    let mut fixture = Fixture::parse("process 100 a 3.12\n block 0 100 0 50 alloc 512 17\n alloc 0 0 45 4096 17");
    for (time, device, operation) in [(0, 0, 1), (-1, 0, 1), (9, -7, 1), (9, 0, 99)] {
        let mut row: [Value; 12] = std::array::from_fn(|_| Value::Null);
        let required: [i64; 7] = [time, 0, 100, device, operation, 17, 512];
        required.into_iter().enumerate().for_each(|(place, value)| row[place] = value.into());
        fixture.row(Table::Blocks, row);
    }
    let mut of_later: [Value; 14] = std::array::from_fn(|_| Value::Int(1));
    of_later[5] = Value::Int(99);
    fixture.row(Table::Allocations, of_later);
    fixture.write(folder.path());
    let timeline = timeline::open(folder.path()).unwrap();
    // The block, and the segment that it lies in.
    assert_eq!((timeline.memory.events.len(), timeline.gpu.allocations.len()), (2, 1));
    let notes = timeline.notes_said().join(" ");
    assert!(notes.contains("4 invalid allocator events") && notes.contains("1 invalid GPU allocations"), "{notes}");
}

#[test]
fn device_work_that_cannot_be_is_counted_and_left_out() {
    let folder = TemporaryFolder::new("device");
    let mut fixture = Fixture::parse("process 100 a 3.12\n kernel 0 0 7 50..60 gemm #7");
    let row = |start: i64, dur: i64, kind: i64| {
        let mut row: [Value; 22] = std::array::from_fn(|_| Value::Null);
        let required = [start, dur, 0, -1, -1, -1, kind, 1, -1];
        required.into_iter().enumerate().for_each(|(place, value)| row[place] = value.into());
        row[10] = Value::Int(0);
        row
    };
    for (start, dur, kind) in [(0, 5, 1), (-5, 5, 1), (9, -1, 1), (9, i64::MAX, 1), (9, 5, 99)] {
        fixture.row(Table::Gpu, row(start, dur, kind));
    }
    fixture.write(folder.path());
    let timeline = timeline::open(folder.path()).unwrap();
    assert_eq!((timeline.gpu.work.len(), timeline.start), (1, timeline::fixture::text::START_NS as u64));
    assert_eq!(
        timeline.notes_said(),
        ["1 GPU operations of an unknown kind, skipped.", "4 GPU operations with a missing or invalid time, skipped.",]
    );
}

/// Many row groups in one file are read side by side: each must read its own bytes.
#[test]
fn groups_of_one_file_do_not_get_in_each_others_way() {
    const ROWS: i64 = 300_000;
    let folder = TemporaryFolder::new("groups");
    let mut fixture = Fixture::parse("process 7 main.py 3.12.1");
    fixture.row(Table::Names, [1.into(), "f".into(), Value::Null, Value::Null]);
    for number in 0..ROWS {
        let (start, dur) = (Value::from(1_000_000 + number * 100), Value::from(number * 7_919 % 90));
        let place = [0.into(), 7.into(), 7.into(), 1.into()];
        let [process, thread, kind, name] = place;
        let id = Value::from(number + 1);
        fixture.row(Table::Slices, [start, dur, process, thread, kind, name, id, Value::Null, Value::Null]);
    }
    fixture.write(folder.path());
    for _ in 0..3 {
        let timeline = timeline::open(folder.path()).unwrap();
        assert_eq!((timeline.slices.len() as i64, &timeline.notes_said()[..]), (ROWS, &[][..]));
        for number in 0..ROWS {
            let (slice, id) = (timeline.slices.get(number as usize), timeline.slices.id(number as usize));
            let wanted = (1_000_000 + number * 100, number * 7_919 % 90, number + 1);
            assert_eq!((slice.start as i64, slice.dur as i64, i64::from(id)), wanted);
        }
    }
}

#[test]
fn a_program_that_does_the_same_at_an_even_pace_takes_less_than_a_byte_a_row() {
    const ROWS: i64 = 1_200_000;
    let mut fixture = Fixture::parse("process 100 serve.py 3.12.1\n thread 0 100 MainThread\n scope 0 100 0..1 tick");
    for number in 1..ROWS {
        let [start, dur, process, thread, kind, name] = [number * 200, 100, 0, 100, 3, 1].map(Value::from);
        fixture.row(Table::Slices, [start, dur, process, thread, kind, name, Value::Null, Value::Null, Value::Null]);
    }
    let folder = TemporaryFolder::new("even");
    fixture.write(folder.path());
    let file = folder.path().join(trace::tables::file_name(Table::Slices, 1, 1));
    assert!(file.metadata().unwrap().len() < ROWS as u64);
    let timeline = timeline::open(folder.path()).unwrap();
    assert_eq!((timeline.slices.len(), timeline.notes.len()), (ROWS as usize, 0), "{:?}", timeline.notes_said());
}
