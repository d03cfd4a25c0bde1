//! The drain and what devices did: every kind of record, chunks that cut work in two, what a recovery finds, two segments of
//! one process, and how large it all becomes.

use super::*;
use crate::manifest::ProcessDevice;
use trace::codes::MemoryOperation;
use trace::device::{Allocation, Work};
use trace::device_facts::DeviceFacts;

fn work(correlation: u32) -> Work {
    let name = NameId(1);
    Work {
        start: 5_000 + u64::from(correlation) * 9_000,
        dur: 700,
        name,
        context: 2,
        stream: 7,
        correlation,
        ..Work::default()
    }
}

fn kernel(number: u32) -> Work {
    // Every third takes three records; times tremble as real ones do.
    let shared_static = if number.is_multiple_of(3) { 1024 * (number % 7) } else { 0 };
    let (grid, tremble) = ([1 + number % 250 * 7919 % 1777, 1, 1], u64::from(number.wrapping_mul(2_654_435_761) >> 19));
    let plain = work(number * 12 + tremble as u32 % 9);
    let (start, dur) = (plain.start + tremble, 2_000 + u64::from(grid[0]) * 4 + tremble % 600);
    Work { start, dur, grid, block: [128, 1, 1], registers: 40, shared_static, ..plain }
}

impl Bench {
    fn push_work(&mut self, kind: Kind, work: Work) {
        let (records, count) = work.records(kind);
        self.ring.push_all(&records[..count]);
    }
}

#[test]
fn every_kind_of_record_becomes_its_row() {
    let mut bench = Bench::with("device-kinds", 1 << 20, Source::Monotonic);
    let mut names = trace::names::NameWriter::new(|bytes| bench.segment.names(bytes)).unwrap();
    let [gemm, copy, note] = ["gemm", "Memcpy HtoD", "CUPTI 12.9 under CUDA 13"].map(|name| names.intern(name));
    bench.push_work(
        Kind::Kernel,
        Work { name: gemm, graph: 3, node: 1 << 40, block: [32, 1, 1], registers: 40, ..work(9) },
    );
    bench.push_work(Kind::Memcpy, Work { name: copy, bytes: 1 << 33, detail: 0x0003_0201, ..work(11) });
    bench.push_work(Kind::Memset, Work { bytes: 64, device: 1, ..work(12) });
    bench.push_work(Kind::Sync, Work { detail: 3, ..work(13) });
    bench.push_work(Kind::Migration, Work { bytes: 4096, ..work(14) });
    let memory =
        Allocation { time: 9, address: 0x7f00_0000_0000, bytes: 512, memory: 3, correlation: 15, ..Default::default() };
    let freed = Allocation { operation: MemoryOperation::Free, pool: true, ..memory };
    let failed = Allocation { operation: MemoryOperation::Failed, bytes: 1 << 40, address: 0, error: 2, ..memory };
    let mapped = Allocation { operation: MemoryOperation::Map, handle: 77, ..memory };
    for memory in [memory, freed, failed, mapped] {
        let (records, count) = memory.records();
        bench.ring.push_all(&records[..count]);
    }
    bench.push(Kind::ApiCall, gemm, 11, 5, &[]);
    bench.push(Kind::ApiCall, gemm, 0, 5, &[]);
    bench.push(Kind::Nvtx, NameId::INLINE, 0, 5, &[(TextRole::Name, "decode"), (TextRole::Args, "{\"domain\":\"x\"}")]);
    bench.push(Kind::Overhead, gemm, 0, 5, &[]);
    // The same number as a scope's: they do not meet.
    bench.push(Kind::ScopeBegin, gemm, 1, 0, &[]);
    bench.push(Kind::LayerBegin, gemm, 1, 0, &[]);
    bench.push(Kind::LayerEnd, gemm, 1, 7, &[]);
    bench.push(Kind::Note, note, 0, 0, &[]);
    (0..2).for_each(|_| bench.push(Kind::Note, NameId::INLINE, 0, 0, &[(TextRole::Name, "CUPTI is taken")]));
    let device = "{\"ordinal\":0,\"name\":\"NVIDIA H200\"}";
    // As an older library wrote it, and as this one does.
    (0..2).for_each(|_| bench.push(Kind::Device, NameId::INLINE, 0, 0, &[(TextRole::Name, device)]));
    bench.push(Kind::Device, NameId::INLINE, 0, 0, &[(TextRole::Name, "[half")]);
    let name = "{\"ordinal\":0}".to_owned();
    let facts =
        DeviceFacts { ordinal: 1, name, multiprocessors: 132, compute_capability: (9, 0), ..DeviceFacts::default() };
    bench.ring.push_all(&facts.records(5, 77));
    bench.drain.turn();
    assert!(bench.drain.close());

    let (gpu, memory, slices) = (bench.rows(Table::Gpu), bench.rows(Table::Allocations), bench.rows(Table::Slices));
    assert_eq!((gpu.len(), memory.len(), slices.len()), (5, 4, 6), "{gpu:#?} {memory:#?} {slices:#?}");
    assert!(
        has(&gpu, &["kind: 1", "start_ns: 86000", "dur_ns: 700", "stream: 7", "block_x: 32", "bytes: null"]),
        "{gpu:#?}"
    );
    assert!(has(&gpu, &["kind: 1", "graph: 3", "node: 1099511627776", "registers: 40"]), "{gpu:#?}");
    assert!(has(&gpu, &["kind: 2", "bytes: 8589934592", "detail: 197121", "grid_x: null", "graph: null"]), "{gpu:#?}");
    assert!(
        has(&gpu, &["kind: 3", "device: 1", "correlation: 12"]) && has(&gpu, &["kind: 5", "bytes: 4096"]),
        "{gpu:#?}"
    );
    assert!(has(&gpu, &["kind: 4", "detail: 3", "bytes: null"]), "{gpu:#?}");
    assert!(
        has(&memory, &["operation: 1", "address: 139637976727552", "bytes: 512", "memory: 3", "pool: 0"]),
        "{memory:#?}"
    );
    assert!(
        has(&memory, &["operation: 2", "pool: 1", "correlation: 15", "handle: null", "error: null"]),
        "{memory:#?}"
    );
    assert!(has(&memory, &["operation: 3", "bytes: 1099511627776", "handle: null", "error: 2"]), "{memory:#?}");
    assert!(has(&memory, &["operation: 6", "bytes: 512", "handle: 77", "error: null"]), "{memory:#?}");
    assert!(has(&slices, &["kind: 7", "id: 11"]) && has(&slices, &["kind: 7", "id: null"]), "{slices:#?}");
    assert!(has(&slices, &["kind: 8", "{\"domain\":\"x\"}"]) && has(&slices, &["kind: 10"]), "{slices:#?}");
    assert!(has(&slices, &["kind: 9", "id: 1"]) && has(&slices, &["kind: 1", "dur_ns: null"]), "{slices:#?}");
    assert_eq!(bench.drain.shared.notes.said(), ["CUPTI 12.9 under CUDA 13", "CUPTI is taken"]);
    let losses = bench.rows(Table::Losses);
    assert!(losses.len() == 1 && has(&losses, &["\"gpu\"", "unknown-record", "count: 1"]), "{losses:#?}");
    let manifest = Manifest::read(&bench.root.join("trace")).unwrap();
    let devices = &manifest.processes[0].devices;
    assert_eq!(serde_json::to_string(&devices[..1]).unwrap(), format!("[{device}]"));
    assert_eq!((devices.len(), &devices[1]), (2, &ProcessDevice::from(&facts)));
    assert_eq!(manifest.notes.len(), 2);
}

#[test]
fn what_the_device_says_is_in_nanoseconds_and_what_the_host_says_in_its_ticks() {
    let mut bench = Bench::with("device-ticks", 1 << 20, Source::Tsc);
    let anchor = |ticks, mono| trace::clock::Anchor { ticks, mono, ..trace::clock::Anchor::take(Source::Tsc) };
    // Four ticks a nanosecond, from 1,000 on.
    bench.drain.clock = Clock::again(Source::Tsc, anchor(0, 1_000), anchor(4_096, 2_024));
    let at = |start, dur| Work { start, dur, ..work(1) };
    for kind in [Kind::Kernel, Kind::Memcpy, Kind::Memset, Kind::Migration, Kind::Sync] {
        bench.push_work(kind, at(800, 40));
    }
    let call =
        |kind: Kind| Event { time: 800, value: 40, thread: 77, name: NameId(1), kind: kind as u16, flags: 0, extra: 1 };
    for kind in [Kind::ApiCall, Kind::Nvtx, Kind::Overhead] {
        bench.ring.push(call(kind).to_words());
    }
    let (records, count) = Allocation { time: 800, ..Default::default() }.records();
    bench.ring.push_all(&records[..count]);
    bench.drain.turn();
    assert!(bench.drain.close());
    let (gpu, memory, slices) = (bench.rows(Table::Gpu), bench.rows(Table::Allocations), bench.rows(Table::Slices));
    for (rows, kind, times) in [
        (&gpu, "kind: 1,", ["start_ns: 800,", "dur_ns: 40,"]),
        (&gpu, "kind: 2,", ["start_ns: 800,", "dur_ns: 40,"]),
        (&gpu, "kind: 3,", ["start_ns: 800,", "dur_ns: 40,"]),
        (&gpu, "kind: 5,", ["start_ns: 800,", "dur_ns: 40,"]),
        (&slices, "kind: 10,", ["start_ns: 800,", "dur_ns: 40,"]),
        (&gpu, "kind: 4,", ["start_ns: 1200,", "dur_ns: 10,"]),
        (&slices, "kind: 7,", ["start_ns: 1200,", "dur_ns: 10,"]),
        (&slices, "kind: 8,", ["start_ns: 1200,", "dur_ns: 10,"]),
        (&memory, "operation: 1,", ["time_ns: 1200,", ""]),
    ] {
        assert!(has(rows, &[kind, times[0], times[1]]), "{kind} {rows:#?}");
    }
}

#[test]
fn what_is_unknown_or_half_gone_is_counted() {
    let mut bench = Bench::new("device-half");
    let (records, _) = kernel(3).records(Kind::Kernel);
    // One of two records of numbers is missing; then a kind of the future.
    bench.ring.push(records[1]);
    bench.ring.push(records[2]);
    bench
        .ring
        .writer
        .push(Event { time: 1, value: 0, thread: 1, name: NameId(0), kind: 999, flags: 0, extra: 0 }.to_words());
    bench.push_work(Kind::Kernel, kernel(4));
    bench.drain.turn();
    assert!(bench.drain.close());
    assert_eq!(bench.rows(Table::Gpu).len(), 1);
    let losses = bench.rows(Table::Losses);
    assert!(has(&losses, &["\"gpu\"", "incomplete-device-record", "count: 1"]), "{losses:#?}");
    assert!(has(&losses, &["\"recorder\"", "unknown-record", "count: 1"]), "{losses:#?}");
}

#[test]
fn chunks_cut_work_in_two_and_nothing_is_lost_and_kernels_are_small() {
    let mut bench = Bench::with("device-chunks", 64 << 20, Source::Monotonic);
    let count = 100_000;
    (0..count).for_each(|number| bench.push_work(Kind::Kernel, kernel(number)));
    bench.drain.turn();
    bench.drain.drain_all().unwrap();
    let rows = bench.rows(Table::Gpu);
    assert_eq!((rows.len(), bench.rows(Table::Losses).len()), (count as usize, 0));
    for number in [0, 1, 2, 13_107, 21_845, count - 1] {
        let expected = format!("grid_x: {},", kernel(number).grid[0]);
        assert!(rows[number as usize].contains(&expected), "{number}: {}", rows[number as usize]);
    }
    bench.drain.store.finish(None).unwrap();
    let files = bench.drain.store.files().of(Table::Gpu);
    let bytes = files.iter().map(|file| file.bytes).sum::<u64>() as f64 / f64::from(count);
    println!("{bytes:.2} bytes per kernel on disk");
    assert!(files.len() == 1 && bytes <= 20.0, "{bytes} bytes per kernel");
}

/// What a recorder that is killed leaves, seen by the next one.
pub(super) fn again(bench: &mut Bench) {
    let segment = bench.drain.attached[0].segment.clone();
    bench.drain.attached.clear();
    bench.drain.store = Store::open(&bench.root.join("trace")).unwrap();
    let left = scan(&bench.drain.store.files());
    let reader = SegmentReader::open(bench.segment.path()).unwrap();
    bench.drain.adopt(Attached::new(segment, reader, 0, &left.covered));
    bench.drain.drain_all().unwrap();
}

#[test]
fn a_recovery_reads_no_kernel_twice_and_forgets_none() {
    let mut bench = Bench::with("device-again", 8 << 20, Source::Monotonic);
    let count = |bench: &Bench| bench.rows(Table::Gpu).len();
    (0..100).for_each(|number| bench.push_work(Kind::Kernel, kernel(number)));
    bench.drain.turn();
    assert!(bench.drain.close());
    // Nothing but kernels: the slices' footer vouches for them all the same.
    again(&mut bench);
    assert_eq!(count(&bench), 100);
    (100..150).for_each(|number| bench.push_work(Kind::Kernel, kernel(number)));
    bench.push(Kind::ApiCall, NameId(1), 3, 5, &[]);
    assert!(bench.drain.drain_all().is_ok());
    // Killed after the kernels were written and before the slices were.
    let last = bench.drain.store.files().of(Table::Slices).last().unwrap().name();
    fs::remove_file(bench.root.join("trace").join(last)).unwrap();
    (150..160).for_each(|number| bench.push_work(Kind::Kernel, kernel(number)));
    again(&mut bench);
    assert_eq!((count(&bench), bench.rows(Table::Slices).len()), (160, 1));
}

#[test]
fn the_cuda_librarys_segment_adds_to_what_python_said() {
    let mut bench = Bench::new("device-two");
    let status = |segment: &Segment, collector, state, message: &str| segment.status(collector).set(state, message);
    status(bench.segment, status::Collector::Scopes, status::State::On, "");
    bench.drain.turn();
    assert!(bench.drain.close());
    let reader = SegmentReader::open(bench.segment.path()).unwrap();
    let place = trace::segment::RankPlace { rank: Some(3), local_rank: Some(1), world_size: Some(8) };
    let who = Identity { program: "python3".into(), python: String::new(), place, ..reader.identity() };
    let segments = bench.root.join("segments");
    let cuda = Segment::create_with(&segments, 1 << 20, &who, Source::Monotonic).unwrap();
    status(cuda, status::Collector::Gpu, status::State::On, "CUPTI 130001");
    cuda.status(status::Collector::Gpu).own_ns.store(5, Ordering::Relaxed);
    cuda.status(status::Collector::Gpu).set_windows(status::WindowCost { recorded_ppm: 860_400, cost_ppm: 98_760 });
    cuda.status(status::Collector::Gpu).residual_ns.store(900, Ordering::Relaxed);
    bench.drain.find_segments();
    bench.drain.turn();
    assert!(bench.drain.close());
    let processes = bench.drain.shared.processes.all();
    assert_eq!(processes.len(), 1);
    assert_eq!((processes[0].rank, processes[0].local_rank, processes[0].world_size), (Some(3), Some(1), Some(8)));
    assert_eq!((processes[0].program.as_str(), processes[0].python.as_str()), ("bench", "3.12.1"));
    let line = |name: &str| processes[0].collectors.iter().find(|collector| collector.name == name).unwrap().clone();
    assert_eq!((line("scopes").state.as_str(), line("calls").state.as_str()), ("on", "off"));
    let gpu = line("gpu");
    assert_eq!((gpu.state.as_str(), gpu.reason.as_str(), gpu.own_ns, gpu.residual_ns), ("on", "CUPTI 130001", 5, 900));
    assert_eq!(gpu.windows, Some(crate::manifest::CollectorWindows { recorded_ppm: 860_000, cost_ppm: 98_700 }));
}
