//! The decoder on activity buffers that a real GPU filled (tests/traces/buffers): the same work comes out as in the traces of the
//! same programs, and buffers that are cut or spoiled are read no further than they reach.

mod recorded_buffers;

use super::super::decode::{Decoder, Trouble};
use ::trace::device::Work;
use ::trace::event::Kind;
use recorded_buffers::{Fenced, Told, buffers, trace};
use std::collections::{BTreeMap, HashMap};
use timeline::{Timeline, WorkKind};

const PROGRAMS: [&str; 2] = ["copies", "graphs"];

/// How often there was what: kind, stream, bytes, detail, grid, block, registers and shared memory, whether in a graph.
type Counts = BTreeMap<(i32, u32, u64, u32, [u32; 9], bool), u32>;

fn number(kind: Kind) -> i32 {
    match kind {
        Kind::Kernel => WorkKind::Kernel as i32,
        Kind::Memcpy => WorkKind::Memcpy as i32,
        Kind::Memset => WorkKind::Memset as i32,
        _ => WorkKind::Migration as i32,
    }
}

fn decoded(work: &[(Kind, Work)]) -> Counts {
    let mut counts = Counts::new();
    for (kind, work) in work {
        let ([x, y, z], [a, b, c]) = (work.grid, work.block);
        let shape = [x, y, z, a, b, c, work.registers.into(), work.shared_static, work.shared_dynamic];
        let one = (number(*kind), work.stream, work.bytes, work.detail, shape, work.graph != 0);
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// The same out of a trace. Waits are not in CUPTI's buffers: they come from the calls.
fn recorded(timeline: &Timeline) -> Counts {
    let (gpu, mut counts) = (&timeline.gpu, Counts::new());
    for index in (0..gpu.work.len()).filter(|index| gpu.work.kind(*index) != WorkKind::Sync) {
        let piece = gpu.work.get(index);
        let shape = gpu.shape(index).map_or([0; 9], |shape| {
            let ([x, y, z], [a, b, c]) = (shape.grid, shape.block);
            [x, y, z, a, b, c, shape.registers, shape.shared_static, shape.shared_dynamic]
        });
        let stream = gpu.stream_of(index).stream;
        let one = (piece.kind as i32, stream, piece.bytes, piece.detail, shape, piece.graph != 0);
        *counts.entry(one).or_default() += 1;
    }
    counts
}

#[test]
fn the_decoder_finds_what_was_recorded_of_the_same_programs() {
    for program in PROGRAMS {
        let told = Told::of(program);
        assert_eq!(decoded(&told.work()), recorded(&trace(program)), "{program}");
        // One context, which we do not ask for; nothing else is unknown, without times or cut.
        assert_eq!(told.troubles, HashMap::from([(Trouble::Unknown, 1)]), "{program}");
    }
}

#[test]
fn copies_have_their_kinds_and_bytes() {
    let work = Told::of("copies").work();
    let of = |kind: Kind| work.iter().filter(move |(there, _)| *there == kind).map(|(_, work)| work);
    assert_eq!((of(Kind::Kernel).count(), of(Kind::Memcpy).count(), of(Kind::Memset).count()), (30, 22, 12));
    // Direction, memory there, memory here: 1 1 3 is pageable to the device, 1 2 3 pinned to it, 2 3 1 back.
    let images = 64 * 3 * 112 * 112 * 4;
    for (expected, bytes, count) in [([1, 1, 3], images, 5), ([1, 2, 3], images, 5), ([2, 3, 1], 64 * 4, 10)] {
        let fits = |copy: &&Work| copy.detail.to_le_bytes()[..3] == expected && copy.bytes == bytes;
        assert_eq!(of(Kind::Memcpy).filter(fits).count(), count, "{expected:?}");
    }
}

#[test]
fn every_replay_of_the_graph_has_every_node_once() {
    let mut nodes: BTreeMap<(u32, u64), Vec<u32>> = BTreeMap::new();
    for (_, work) in Told::of("graphs").work().into_iter().filter(|(_, work)| work.graph != 0) {
        nodes.entry((work.graph, work.node)).or_default().push(work.correlation);
    }
    assert_eq!(nodes.len(), 47);
    let replays = nodes.values().next().unwrap();
    assert!(replays.len() == 12 && replays.is_sorted_by(|one, next| one < next), "{replays:?}");
    assert!(nodes.values().all(|of| of == replays), "one launch asks for all nodes: {nodes:?}");
}

#[test]
fn times_are_those_of_the_machine() {
    for program in PROGRAMS {
        let (work, recorded) = (Told::of(program).work(), trace(program));
        let mut last: HashMap<u32, u64> = HashMap::new();
        for (_, work) in &work {
            let before = last.insert(work.stream, work.start + work.dur).unwrap_or(0);
            assert!(work.start >= before, "{program}: a stream does one thing after the other: {work:?}");
            assert!((500..10_000_000).contains(&work.dur), "{program}: {work:?}");
        }
        // The same kernels on the same device take about as long in another run.
        let ours: u64 = work.iter().filter(|(kind, _)| *kind == Kind::Kernel).map(|(_, work)| work.dur).sum();
        let all = 0..recorded.gpu.work.len();
        let kernels = all.filter(|index| recorded.gpu.work.kind(*index) == WorkKind::Kernel);
        let theirs: u64 = kernels.map(|index| recorded.gpu.work.dur[index]).sum();
        let ratio = ours as f64 / theirs as f64;
        assert!((0.7..1.4).contains(&ratio), "{program}: {ours} against {theirs} ns");
    }
}

#[test]
fn the_device_and_cuptis_own_time_are_told() {
    for (program, overheads) in [("copies", 16), ("graphs", 21)] {
        let told = Told::of(program);
        let devices = told.devices();
        assert_eq!(devices.len(), 1);
        let said = &devices[0];
        let recorded = trace(program);
        let device = recorded.gpu.devices.iter().find(|device| device.process.is_some()).unwrap();
        assert_eq!(Some(said.multiprocessors), device.multiprocessors);
        let (major, minor) = said.compute_capability;
        assert_eq!(format!("{major}.{minor}"), &*device.compute_capability);
        assert_eq!(Some(said.memory_bytes), device.memory_bytes);
        assert_eq!(Some(said.bandwidth), device.bandwidth);
        assert_eq!(said.name, "", "nobody follows a dead pointer");
        let own = told.events(Kind::Overhead);
        assert_eq!(own.len(), overheads, "{program}");
        assert!(own.iter().all(|event| event.value < 10_000_000_000), "{own:?}");
    }
}

/// As many of the first bytes as given, decoded by a decoder of its own.
fn cut(fenced: &Fenced, buffer: &[u8], length: usize) -> Told {
    let mut told = Told::default();
    fenced.decode(&mut Decoder::default(), &mut told, &buffer[..length]);
    told
}

#[test]
fn a_buffer_that_ends_anywhere_gives_what_is_whole() {
    for (program, step) in [("copies", 1), ("graphs", 173)] {
        for buffer in buffers(program) {
            let fenced = Fenced::new(buffer.len());
            let whole = cut(&fenced, &buffer, buffer.len()).work();
            let mut before = 0;
            for length in (0..buffer.len()).step_by(step) {
                let told = cut(&fenced, &buffer, length);
                let work = told.work();
                assert!(whole.starts_with(&work) && work.len() >= before, "{program} {length}");
                assert!(told.troubles.get(&Trouble::Cut).is_none_or(|count| *count == 1), "{program} {length}");
                before = work.len();
            }
        }
    }
}

#[test]
fn spoiled_buffers_are_survived() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for program in PROGRAMS {
        for buffer in buffers(program) {
            let fenced = Fenced::new(buffer.len());
            for round in 0..300 {
                let mut spoiled = buffer[..1 + random(buffer.len())].to_vec();
                for _ in 0..1 + random(64) {
                    let at = random(spoiled.len());
                    spoiled[at] = match round % 3 {
                        0 => random(256) as u8,
                        1 => 0xff,
                        // Small numbers, which are kinds.
                        _ => random(32) as u8,
                    };
                }
                let told = cut(&fenced, &spoiled, spoiled.len());
                // `work` unpacks every record again, or panics.
                assert!(told.work().len() <= spoiled.len() / 8, "{program} {round}");
            }
        }
    }
}
