//! Whatever a trace holds, the diagnosis ends, adds up and invents nothing: no events, one event, nothing closed, clocks that
//! step back, zero lengths, absurd lengths, references to nothing, a great many tracks.

use analysis::StepSource;
use diagnosis::{Diagnosis, Options, diagnose};
use timeline::gpu::{self, Job, Shape, Site, WorkKind};
use timeline::{Builder, LossReason, Process, ProcessIndex, SliceExtra, SliceKind, StackIndex, Timeline, TrackIndex};

pub fn check(timeline: &Timeline) -> Diagnosis {
    let diagnosis = diagnose(timeline, &Options::default());
    let breakdown = &diagnosis.breakdown;
    assert_eq!(
        breakdown.parts.iter().map(|part| u128::from(part.total_ns)).sum::<u128>(),
        u128::from(breakdown.total_ns)
    );
    assert_eq!(breakdown.parts.iter().map(|part| part.ns).sum::<u64>(), breakdown.step_ns);
    assert!(breakdown.parts.iter().all(|part| part.share.is_finite() && (0.0..=1.0).contains(&part.share)));
    for finding in &diagnosis.findings {
        assert!((0.0..=1.0).contains(&finding.confidence()), "{finding:?}");
        assert!(!finding.title.is_empty() && !finding.actions.is_empty() && !finding.verify.is_empty());
        if let Some(gain) = finding.gain {
            let ordered = 0.0 <= gain.low && gain.low <= gain.mid && gain.mid <= gain.high && gain.high <= 100.0;
            assert!(ordered, "{finding:?}");
        }
        for one in &finding.evidence {
            assert!(one.start <= one.end && one.numbers.iter().all(|(_, value)| value.is_finite()), "{one:?}");
        }
    }
    assert!((0.0..=1.0).contains(&diagnosis.bottleneck.confidence));
    for said in diagnosis.answer.iter().chain(diagnosis.health.iter().map(|line| &line.text)) {
        assert!(!said.is_empty() && !said.contains("NaN") && !said.contains("inf "), "{said}");
    }
    check_device(&diagnosis);
    diagnosis
}

/// Shares are shares, and no part of a device's time is longer than the whole.
fn check_device(diagnosis: &Diagnosis) {
    let Some(gpu) = &diagnosis.gpu else { return };
    for device in &gpu.devices {
        assert!(device.busy_ns <= device.window_ns && device.kernel_ns <= device.busy_ns, "{device:?}");
        assert!(device.exposed_copy_ns <= device.copy_ns && device.copy_ns <= device.busy_ns, "{device:?}");
        assert!(device.per_step_busy.iter().all(|busy| (0.0..=1.0).contains(busy)), "{device:?}");
    }
    assert!(gpu.kernels.iter().all(|row| (0.0..=1.0).contains(&row.share) && row.p95_ns <= row.total_ns));
    assert!(gpu.copies.iter().all(|row| row.gb_per_s.is_finite() && row.exposed_ns <= row.total_ns));
    assert!(gpu.layers.iter().all(|row| row.direct + row.by_sequence + row.by_capture == row.kernels));
}

fn of(text: &str) -> Diagnosis {
    check(&Timeline::from_text(text).unwrap())
}

#[test]
fn nothing_and_next_to_nothing() {
    let nothing = check(&Timeline::default());
    assert_eq!(nothing.answer[0], "No timed events were recorded.");
    assert!(nothing.breakdown.parts.is_empty() && nothing.findings.iter().all(|finding| finding.gain.is_none()));
    assert_eq!(nothing.steps.source, StepSource::Whole);
    for one in
        ["track main", "track main\n mark m 5ms", "track main\n sample 5ms active gil f:1", "track main\n sample 5ms"]
    {
        assert!(of(one).findings.iter().all(|finding| finding.gain.is_none()), "{one}");
    }
    of("track main\n step r 0..1ms");
    of("track main\n scope s 3ms..9ms");
    of("counter host psi_memory_some_us 5s=3");
}

#[test]
fn zero_length_everything() {
    let zero = of(
        "track main\n repeat 20 every 0\n step r 1ms..1ms\n gc 2 1ms..1ms\n call f@a.py:1 1ms..1ms\n sample 1ms active gil f:1\n end",
    );
    assert_eq!((zero.steps.count(), zero.steps.p50(), zero.breakdown.total_ns), (20, 0, 0));
    assert_eq!(zero.answer[0], "20 steps recorded, all of zero length.");
    of("track main\n repeat 50 every 10ms\n step r 0..0\n end\n samples 0..500ms every 1ms active gil f:1");
    of("track main\n counter cpu_ns 1ms=5 1ms=9 1ms=3\n counter runqueue_wait_ns 1ms=5 1ms=9\n step r 0..2ms");
}

#[test]
fn scopes_that_never_close_and_scopes_that_overlap() {
    let open = of(
        "end 1s\n track main\n step r 100ms..\n scope s 200ms..\n call f@a.py:1 300ms..\n samples 0..1s every 10ms active gil f:1",
    );
    assert_eq!((open.steps.source, open.steps.count()), (StepSource::Whole, 1));
    let mixed = of("end 9s\n track main\n repeat 5 every 1s\n step r 0..900ms\n end\n step r 8s..");
    assert_eq!((mixed.steps.count(), mixed.steps.unfinished), (5, 1));
    let overlap = of(
        "track main\n repeat 30 every 10ms\n scope r 0..35ms\n scope inner 5ms..50ms\n gc 1 1ms..30ms\n end\n samples 0..300ms every 3ms active f:1",
    );
    assert!(overlap.breakdown.overlapping);
}

#[test]
fn clocks_and_counters_that_step_back() {
    of("track main
        repeat 30 every 10ms\n step r 0..9ms\n end
        samples 0..300ms every 3ms active gil f:1
        counter runqueue_wait_ns 0=5s 100ms=1s 200ms=9s 300ms=0 299ms=7
        counter cpu_ns 0=-5 100ms=-1s 200ms=1s
        counter voluntary_switches 0=9 100ms=3 200ms=900000000000
        counter process major_faults 0=9 100ms=3 300ms=90000000
        counter host psi_memory_some_us 0=9 100ms=3 300ms=9000000000000000000");
}

#[test]
fn absurd_times_and_references_to_nothing() {
    let mut builder = Builder::default();
    let process = builder.process(Process::default());
    let tracks = [builder.track(process, 1, ""), builder.track(process, 1, "same tid"), builder.track(process, -7, "")];
    let name = builder.name("", "", 0);
    for track in tracks {
        for (start, dur) in [(0, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX - 5, 9), (1 << 63, 1 << 63), (0, 0)] {
            for kind in (1..=10).filter_map(SliceKind::from_i32) {
                let more = SliceExtra { id: u32::MAX, parent: u32::MAX, ..SliceExtra::default() };
                builder.slice(track, kind, name, start, dur, if dur == 9 { more } else { SliceExtra::default() });
            }
        }
        for (start, dur) in [(0, u64::MAX), (u64::MAX, u64::MAX), (1 << 63, 1 << 63), (0, 0)] {
            for kind in (1..=5).filter_map(WorkKind::from_i32) {
                let site = Site { process, device: u32::MAX, context: u32::MAX, stream: u32::MAX };
                let shape = Some(Shape { grid: [u32::MAX; 3], ..Shape::default() });
                let more = gpu::WorkExtra { bytes: u64::MAX, detail: u32::MAX, graph: u32::MAX, node: u64::MAX };
                builder.work(Job { site, kind, name, start, dur, correlation: u32::MAX, shape, more });
            }
        }
        for time in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX, u64::MAX] {
            builder.sample(track, time, StackIndex(77), true, time % 2 == 0);
            builder.sample(track, time, StackIndex(0), false, false);
        }
        for value in [i64::MIN, 0, i64::MAX, i64::MIN] {
            builder.count(Some(process), Some(1), "runqueue_wait_ns", value as u64, value);
            builder.count(Some(process), Some(1), "cpu_ns", value as u64, value);
            builder.count(Some(process), None, "numa_remote_bytes", value as u64, value);
            builder.count(Some(process), None, "numa_node0_bytes", value as u64, value);
            builder.count(None, None, "psi_memory_some_us", value as u64, value);
        }
    }
    builder.loss(None, "", LossReason::Unknown, u64::MAX);
    builder.loss(None, "x", LossReason::Unknown, u64::MAX);
    builder.timeline.info.host.numa_nodes = Some(u64::MAX);
    builder.timeline.info.host.cpu_count = Some(0);
    builder.timeline.info.settings.rate_hz = Some(f64::NAN);
    builder.timeline.info.clock.residual_ns = u64::MAX;
    check(&builder.finish());
}

#[test]
fn names_with_anything_in_them_are_only_text() {
    let mut builder = Builder::default();
    let process = builder.process(Process::default());
    let track = builder.track(process, 1, "<b>\u{202e}*");
    let odd = builder.name("<script>alert(1)</script> | `x` \u{0}\n", "../../\u{1F600}/é.py", 3);
    for step in 0..40 {
        builder.slice(track, SliceKind::Step, odd, step * 100, 90, SliceExtra::default());
        let stack = builder.frame(None, odd, 5);
        builder.sample(track, step * 100 + 5, stack, true, true);
    }
    let diagnosis = check(&builder.finish());
    assert!(diagnosis.answer[0].contains("\"<script>"));
    assert_eq!(diagnosis.findings[0].place.line, Some(5));
}

/// A million threads' worth of tracks: each looked at a fixed number of times.
#[test]
fn a_great_many_tracks() {
    let mut builder = Builder::default();
    let process = builder.process(Process { pid: 1, ..Process::default() });
    let (step, function) = (builder.name("r", "", 0), builder.name("f", "a.py", 1));
    let stack = builder.frame(None, function, 7);
    for number in 0..200_000u64 {
        let track = builder.track(ProcessIndex(process.0), number as i32, "");
        builder.slice(track, SliceKind::Step, step, number * 10, 10, SliceExtra::default());
        builder.sample(track, number * 10 + 5, stack, true, number % 3 == 0);
    }
    let diagnosis = check(&builder.finish());
    assert_eq!(diagnosis.steps.count(), 200_000);
    assert_eq!(diagnosis.steps.steps[5].track, TrackIndex(5));
}

/// Small timelines at random, the same in every run: whatever falls together, the sums hold and nothing panics.
#[test]
fn timelines_at_random() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut roll = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below.max(1)
    };
    let files = [
        "app.py",
        "/usr/lib/python3.12/threading.py",
        "/usr/lib/python3.12/asyncio/events.py",
        "x.so",
        "",
        "/usr/lib/python3.12/logging/__init__.py",
    ];
    let functions = ["work", "wait", "_run", "take_gil", "<lambda>", "emit", "print"];
    let counters = [
        "cpu_ns",
        "runqueue_wait_ns",
        "voluntary_switches",
        "major_faults",
        "psi_memory_some_us",
        "numa_remote_bytes",
        "numa_node0_bytes",
    ];
    let kinds = [
        SliceKind::Step,
        SliceKind::Scope,
        SliceKind::Call,
        SliceKind::CCall,
        SliceKind::Gc,
        SliceKind::Mark,
        SliceKind::ApiCall,
        SliceKind::Nvtx,
        SliceKind::Layer,
        SliceKind::Overhead,
        SliceKind::Entry,
        SliceKind::Op,
        SliceKind::Fix,
    ];
    let operators = ["aten::item", "aten::cat", "aten::to", "aten::copy_", "aten::mm", "aten::zeros", "aten::_softmax"];
    let calls = ["cudaLaunchKernel", "cudaStreamSynchronize", "cudaStreamBeginCapture", "cudaStreamEndCapture"];
    for _ in 0..800 {
        let mut builder = Builder::default();
        builder.timeline.info.host.cpu_count = Some(roll(4));
        builder.timeline.info.host.numa_nodes = Some(roll(3));
        let span = [10, 1_000, 1_000_000_000][roll(3) as usize];
        let mut tracks = Vec::new();
        for process in 0..=roll(3) {
            let process = builder.process(Process { pid: process as i64, ..Process::default() });
            for tid in 0..=roll(3) {
                tracks.push((process, tid as i32, builder.track(process, tid as i32, "")));
            }
        }
        for _ in 0..roll(120) {
            let (process, tid, track) = tracks[roll(tracks.len() as u64) as usize];
            let (file, function) = (files[roll(6) as usize], functions[roll(7) as usize]);
            let name = builder.name(function, file, roll(3) as u32);
            let start = roll(span);
            let kind = kinds[roll(kinds.len() as u64) as usize];
            let call = builder.name(calls[roll(4) as usize], "", 0);
            let operator = builder.name(operators[roll(7) as usize], "", 0);
            let name = match kind {
                SliceKind::ApiCall => call,
                SliceKind::Op => operator,
                _ => name,
            };
            let args = hostile_args(&mut roll);
            let args = (roll(4) > 0).then_some(args.as_str());
            let more = SliceExtra { id: roll(9) as u32, parent: roll(9) as u32, open: roll(9) == 0, args };
            builder.slice(track, kind, name, start, roll(span), more);
            let site = Site { process, device: roll(2) as u32, context: roll(2) as u32, stream: roll(3) as u32 };
            let work = WorkKind::from_i32(1 + roll(5) as i32).unwrap();
            let more = gpu::WorkExtra { bytes: roll(9), detail: roll(11) as u32, graph: roll(2) as u32, node: roll(4) };
            let (start, dur, correlation) = (roll(span), roll(span), roll(9) as u32);
            builder.work(Job { site, kind: work, name: call, start, dur, correlation, shape: None, more });
            let mut stack = None;
            for _ in 0..roll(5) {
                let name = builder.name(functions[roll(7) as usize], files[roll(6) as usize], 0);
                stack = Some(builder.frame(stack, name, roll(3) as u32));
            }
            builder.sample(track, roll(span), stack.unwrap_or(StackIndex(0)), roll(2) == 0, roll(3) == 0);
            let owner = [(None, None), (Some(process), None), (Some(process), Some(tid))][roll(3) as usize];
            builder.count(owner.0, owner.1, counters[roll(7) as usize], roll(span), roll(2 * span) as i64);
        }
        check(&builder.finish());
    }
}

#[test]
fn files_that_cannot_be_read_are_said_first_and_are_nobodys_choice() {
    let mut timeline = Timeline::from_text("track main\n repeat 20 every 10ms\n step request 0..9ms\n end").unwrap();
    timeline.info.damaged = vec!["samples.000001.parquet".into(), "gpu.000001.parquet".into()];
    let diagnosis = check(&timeline);
    assert!(diagnosis.answer[0].starts_with("Caution: 2 trace files are damaged"), "{diagnosis:?}");
    assert!(diagnosis.answer[2].starts_with("Record again"), "{:?}", diagnosis.answer);
    let line = |label: &str| diagnosis.health.iter().find(|line| line.label() == label).unwrap();
    assert_eq!(line("recording").state, diagnosis::HealthState::Bad);
    assert_eq!(line("losses").text, "the content of the damaged files");
    assert!(line("samples").text.contains("damaged"), "{:?}", line("samples"));
}

/// Arguments of an operator as nobody sane writes them: few values for all, numbers that are none, sizes without end, turns that go back.
fn hostile_args(roll: &mut impl FnMut(u64) -> u64) -> String {
    let numbers = ["1", "2", "3", "0", "-1", "18446744073709551615", "99999999999999999999", "x"];
    let mut list = |key: &str| {
        let all: Vec<&str> = (0..roll(4)).map(|_| numbers[roll(8) as usize]).collect();
        format!("\"{key}\":[{}]", all.join(","))
    };
    let lists = ["in", "out", "into", "over", "params"].map(&mut list).join(",");
    let turn = list("turn");
    let dims =
        ["[[4,4]]", "[[18446744073709551615,18446744073709551615]]", "[[0]]", "[[[1],[2]],[]]", "[["][roll(5) as usize];
    let flags = ["", ",\"view\":1", ",\"random\":1", ",\"cut\":1"][roll(4) as usize];
    let device = ["cpu", "cuda:0", ""][roll(3) as usize];
    format!(
        "{{\"Input Dims\":{dims},\"Input type\":[\"float\"],\"Output Dims\":{dims},\"Output type\":[\"double\"],\"device\":\"{device}\",{lists}{flags},\"at\":\"app.py:{} work\",{turn}}}",
        roll(3)
    )
}

/// As many operators as are read, in the ways that cost most if anything is done for every two of them: each with a line of its own and a look over
/// all of the time, tensors that are written again and again, turns that go back and forth, one value everywhere.
#[test]
fn four_hundred_thousand_operators_that_lie() {
    const COUNT: u64 = 100_000;
    let ways: [(&str, &dyn Fn(u64) -> String); 4] = [
        ("lines", &|at| {
            format!("\"in\":[{}],\"out\":[{}],\"at\":\"app.py:{at} work\",\"turn\":[0,{}]", at % 7, at + 1, at % 2)
        }),
        ("written again", &|at| {
            format!(
                "\"in\":[{}],\"out\":[{}],\"into\":[{at}],\"at\":\"app.py:3 work\",\"turn\":[0,0]",
                at.max(1),
                at + 1
            )
        }),
        ("one value", &|at| {
            format!("\"in\":[1,1,1],\"out\":[1],\"at\":\"app.py:{} work\",\"turn\":[{},0]", at % 3, COUNT - at)
        }),
        ("signatures", &|at| {
            format!(
                "\"Input Dims\":[[{}]],\"in\":[],\"out\":[{}],\"at\":\"app.py:3 work\",\"turn\":[0,{}]",
                at / 2 % 100_000,
                at + 9,
                2 * at / COUNT
            )
        }),
    ];
    let mut builder = Builder::default();
    let process = builder.process(Process { pid: 1, ..Process::default() });
    let step = builder.name("request", "", 0);
    let names = ["aten::zeros", "aten::add_", "aten::to", "aten::item"].map(|name| builder.name(name, "", 0));
    for (place, (way, args)) in ways.into_iter().enumerate() {
        let track = builder.track(process, place as i32, way);
        for at in 0..20 {
            builder.slice(track, SliceKind::Step, step, at * 100_000_000, 90_000_000, SliceExtra::default());
        }
        for at in 0..COUNT {
            let device = if at % 4 == 2 { "cuda:0" } else { "cpu" };
            let text = args(at).replacen("\"in\"", &format!("\"device\":\"{device}\",\"in\""), 1);
            let text = format!("{{{text}}}");
            let more = SliceExtra { args: Some(&text), ..SliceExtra::default() };
            let name = names[if way == "written again" { usize::from(at > 0) } else { (at % 4) as usize }];
            builder.slice(track, SliceKind::Op, name, 1_000_000_000 + at, 500_000_000, more);
        }
    }
    check(&builder.finish());
}
