//! Opens memory snapshots of PyTorch: of every protocol and age, with fields missing and fields that are not known yet.

use std::path::PathBuf;
use timeline::fixture::TemporaryFolder;
use timeline::fixture::pickle::Py;
use timeline::memory::{BlockState, MemoryEventKind};
use timeline::{OpenError, RecordedBy, SliceKind, Timeline};

pub fn frame(name: &str, file: &str, line: u64) -> Py {
    Py::dict([("name", name.into()), ("filename", file.into()), ("line", line.into())])
}

pub fn event(action: &str, address: u64, bytes: u64, time: u64) -> Py {
    let frames =
        vec![frame("at::empty()", "??", 0), frame("forward", "model.py", 41), frame("<module>", "serve.py", 7)];
    let event =
        Py::dict([("action", action.into()), ("size", bytes.into()), ("stream", 0.into()), ("time_us", time.into())]);
    let place = if action == "oom" { "device_free" } else { "addr" };
    event.with(place, address).with("frames", frames)
}

fn block(address: u64, bytes: u64, state: &str) -> Py {
    let block =
        Py::dict([("address", address.into()), ("size", bytes.into()), ("requested_size", (bytes - 12).into())]);
    block.with("state", state).with("frames", vec![frame("forward", "model.py", 41)])
}

pub fn segment(address: u64, bytes: u64, blocks: Vec<Py>) -> Py {
    let segment = Py::dict([("device", 0.into()), ("address", address.into()), ("total_size", bytes.into())]);
    let pool = Py::Tuple(vec![0.into(), 0.into()]);
    segment.with("stream", 0).with("segment_type", "large").with("segment_pool_id", pool).with("blocks", blocks)
}

pub fn snapshot() -> Py {
    of_devices(2)
}

/// Of so many devices, of which the first has events.
pub fn of_devices(count: usize) -> Py {
    let blocks = vec![block(1 << 33, 1 << 20, "active_allocated"), block((1 << 33) + (1 << 20), 19 << 20, "inactive")];
    let mut events = vec![
        event("segment_alloc", 1 << 33, 20 << 20, 1_700_000_000_000_000),
        event("alloc", 1 << 33, 1 << 20, 1_700_000_000_000_001),
        event("alloc", (1 << 33) + (1 << 20), 2 << 20, 1_700_000_000_000_002),
        event("free_requested", (1 << 33) + (1 << 20), 2 << 20, 1_700_000_000_000_003),
    ];
    events.push(event("free_completed", (1 << 33) + (1 << 20), 2 << 20, 1_700_000_000_000_003));
    events.push(event("oom", 512 << 20, 80 << 30, 1_700_000_000_000_009));
    let settings = Py::dict([("expandable_segments", Py::Bool(false)), ("max_split_size", Py::Int(-1))]);
    let rounding = Py::dict([("256", 0.into()), ("512", 4.into())]);
    let settings =
        settings.with("garbage_collection_threshold", Py::Float(0.8)).with("roundup_power2_divisions", rounding);
    Py::dict([
        ("segments", vec![segment(1 << 33, 20 << 20, blocks)].into()),
        ("device_traces", [vec![Py::List(events)], vec![Py::List(vec![]); count - 1]].concat().into()),
        ("allocator_settings", settings),
    ])
}

pub fn open(bytes: &[u8]) -> Result<Timeline, OpenError> {
    let folder = TemporaryFolder::new("snapshot");
    let path: PathBuf = folder.path().join("snapshot.pickle");
    std::fs::write(&path, bytes).unwrap();
    timeline::open(&path)
}

#[test]
fn a_snapshot_of_every_protocol_is_the_same() {
    for protocol in 0..=5 {
        let timeline = open(&snapshot().pickle(protocol)).unwrap_or_else(|why| panic!("protocol {protocol}: {why}"));
        let memory = &timeline.memory;
        assert_eq!(timeline.notes_said(), Vec::<String>::new(), "protocol {protocol}");
        assert_eq!(memory.allocators.len(), 1);
        let allocator = &memory.allocators[0];
        assert_eq!((allocator.device, &*allocator.backend, allocator.began_late), (Some(0), "torch.cuda", false));
        let setting = |name: &str| allocator.settings[name].as_str();
        let settings = ["max_split_size", "garbage_collection_threshold", "roundup_power2_divisions"].map(setting);
        assert_eq!(settings, ["-1", "0.8", "512:4"]);
        let kinds: Vec<MemoryEventKind> = memory.events.iter().map(|event| event.kind).collect();
        use MemoryEventKind::{Alloc, FreeCompleted, FreeRequested, OutOfMemory, SegmentAlloc};
        assert_eq!(kinds, [SegmentAlloc, Alloc, Alloc, FreeRequested, FreeCompleted, OutOfMemory]);
        let (first, last) = (memory.events[1], memory.events[5]);
        assert_eq!((first.address, first.bytes, first.time), (1 << 33, 1 << 20, 1_700_000_000_000_001_000));
        assert_eq!((last.address, last.bytes), (512 << 20, 80 << 30));
        let frames: Vec<_> = timeline.stacks.walk(first.stack).map(|(_, frame)| frame).collect();
        let said = |at: usize| {
            (timeline.names.text(frames[at].name), &*timeline.names.get(frames[at].name).file, frames[at].line)
        };
        assert_eq!(
            [said(0), said(1), said(2)],
            [("at::empty()", "", 0), ("forward", "model.py", 41), ("<module>", "serve.py", 7)]
        );
        let segment = &memory.states[0].segments[0];
        assert_eq!((segment.bytes, segment.large, segment.expandable, segment.pool), (20 << 20, true, false, 0));
        let blocks: Vec<_> = segment.blocks.iter().map(|block| (block.bytes, block.requested, block.state)).collect();
        let expected = [(1 << 20, BlockState::Active), (19 << 20, BlockState::Inactive)];
        assert_eq!(blocks, expected.map(|(bytes, state)| (bytes, Some(bytes - 12), state)));
        assert_eq!((timeline.info.recorded_by, timeline.duration()), (RecordedBy::Snapshot, 9_000));
    }
}

#[test]
fn old_ones_are_a_list_of_segments_without_addresses_of_blocks() {
    let owner = Py::dict([
        ("addr", (1 << 33).into()),
        ("real_size", 500.into()),
        ("frames", vec![frame("f", "a.py", 3)].into()),
    ]);
    let old = |bytes: u64, state: &str| Py::dict([("size", bytes.into()), ("state", state.into())]);
    let blocks = vec![
        old(512, "active_allocated").with("history", vec![owner]),
        old(1 << 20, "inactive"),
        old(1024, "active_pending_free"),
    ];
    let timeline = open(&Py::List(vec![segment(1 << 33, 2 << 20, blocks)]).pickle(2)).unwrap();
    let blocks = &timeline.memory.states[0].segments[0].blocks;
    let placed: Vec<_> = blocks.iter().map(|block| (block.address - (1 << 33), block.requested, block.state)).collect();
    let (active, free, waits) = (BlockState::Active, BlockState::Inactive, BlockState::AwaitingFree);
    assert_eq!(placed, [(0, Some(500), active), (512, None, free), (512 + (1 << 20), None, waits)]);
    assert_ne!(blocks[0].stack.0, 0);
    assert!(timeline.memory.allocators[0].began_late);
}

#[test]
fn new_fields_are_taken_or_skipped() {
    let annotation = |stage: &str, name: &str, time: u64| {
        Py::dict([("stage", stage.into()), ("name", name.into()), ("device", 0.into()), ("time_us", time.into())])
    };
    let annotations = vec![
        annotation("START", "ProfilerStep#1", 100),
        annotation("START", "decode", 120),
        annotation("END", "decode", 150),
        annotation("END", "ProfilerStep#1", 200),
        annotation("END", "never begun", 210),
    ];
    let pinned =
        Py::dict([("action", "alloc".into()), ("addr", 64.into()), ("size", 4096.into()), ("time_us", 130.into())]);
    let noted = event("annotate", 1 << 33, 1, 140).with("user_metadata", "kv cache");
    let events =
        vec![event("alloc", 1 << 33, 512, 110).with("pool_id", Py::Tuple(vec![])).with("fx_node_op", "x"), noted];
    let timeline = open(
        &Py::dict([
            ("segments", Py::List(vec![])),
            (
                "device_traces",
                vec![Py::List(vec![]), Py::List(events), Py::List(vec![event("new action", 1, 1, 150)])].into(),
            ),
            ("host_traces", vec![Py::List(vec![pinned])].into()),
            ("host_segments", Py::List(vec![])),
            ("external_annotations", annotations.into()),
            ("of the future", Py::None),
        ])
        .pickle(5),
    )
    .unwrap();
    let memory = &timeline.memory;
    let allocators: Vec<_> = memory.allocators.iter().map(|one| (one.device, &*one.backend)).collect();
    assert_eq!(allocators, [(Some(1), "torch.cuda"), (None, "torch.pinned")]);
    assert_eq!(memory.events.iter().map(|event| event.allocator.0).collect::<Vec<_>>(), [0, 1]);
    let slices: Vec<_> =
        (0..timeline.slices.len()).map(|at| (timeline.slices.kind(at), timeline.slices.get(at).dur)).collect();
    assert_eq!(slices, [(SliceKind::Step, 100_000), (SliceKind::Scope, 30_000)]);
    assert_eq!(timeline.notes_said(), ["1 events with an unknown action, skipped."]);
}

#[test]
fn without_times_events_keep_their_order() {
    let untimed = |action: &str, address: u64| {
        Py::dict([("action", action.into()), ("addr", address.into()), ("size", 512.into())])
    };
    let events = vec![untimed("alloc", 1), untimed("free_requested", 1), untimed("alloc", 2)];
    let timeline = open(&Py::dict([("device_traces", vec![Py::List(events)].into())]).pickle(4)).unwrap();
    assert!(timeline.memory.ordered_only && timeline.notes_said()[0].contains("no times"));
    assert_eq!(timeline.memory.events.iter().map(|event| event.address).collect::<Vec<_>>(), [1, 1, 2]);
}

#[test]
fn nothing_in_it_is_a_snapshot_too() {
    let timeline =
        open(&Py::dict([("segments", Py::List(vec![])), ("device_traces", Py::List(vec![]))]).pickle(4)).unwrap();
    assert!(timeline.memory.is_empty() && timeline.memory.allocators.is_empty());
    assert!(open(&Py::List(vec![]).pickle(2)).unwrap().memory.is_empty());
}
