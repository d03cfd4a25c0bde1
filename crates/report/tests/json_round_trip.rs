//! What the JSON export writes comes back when the file is opened: the same events, and the same bytes when it is written
//! again.

use timeline::fixture::{Fixture, TemporaryFolder};
use timeline::{Builder, EnginePhase, Process, SliceExtra, SliceKind, StackIndex, Timeline};

const SERVICE: &str = r#"
    process 100 serve.py 3.12.1
    process 200 worker.py 3.12.1
    process 300 silent.py 3.12.1
    thread 0 100 MainThread
    thread 0 101 "odd\u{1b}[31m
    thread 1 201 idle
    step 0 100 10..90 request #1 {"i":1}
    scope 0 100 20..80 decode #2 ^1 {"n":[3,"x"]}
    scope 0 100 85.. tail #3 ^1 {"cut":"of
    mark 0 100 30 cache_miss ^2 {"key":"k"}
    call 0 100 20..60 forward@model.py:12
    ccall 0 100 30..40 matmul@np.py:3
    scope 0 101 10..50 task-a #4
    scope 0 101 30..70 task-b #5
    scope 0 101 30..70 same-as-b #7 ^5
    scope 0 101 60..90 child-of-a #6 ^4
    sample 0 100 25 active,gil main@a.py:3;forward@model.py:14
    sample 0 100 35 active main@a.py:3;forward@model.py:15
    sample 1 200 35 idle main@w.py:9
    counter 0 0 10 rss_bytes 4096
    counter 0 0 20 rss_bytes -5
    counter 0 100 20 cpu_ns 5000
    counter -1 0 20 psi_cpu_some_us 7
    loss 0 calls 3 overwritten
"#;

/// More than a fixture says: pauses, and notes. Times are nanoseconds here.
const PAUSES: &str = "
    host cpus 8 numa 2
    end 1s
    track main thread
    step request 1..40001
    gc 2 3..7
    call tokenise@service.py:44 5us..10us
    sample 9us
    samples 0..40us every 3us active main>serve>tokenise@service.py:44
    track other
    scope never 20us..
    fix waiting 21us PyTorch was never imported
    fix applied 22us
    counter rss_bytes 0..40us every 10us grows 3
    note the first\\line
    loss stacks 7 stack-changed";

/// Phases of a serving engine come back; a step that only sounds like one says nothing, whatever its tags are. A file from before steps
/// had a phase has the marker.
#[test]
fn phases_of_an_engine_come_back_and_names_make_none() {
    let phases = |timeline: &Timeline| -> Vec<Option<EnginePhase>> {
        (0..timeline.slices.len()).map(|index| timeline.engine_phase(index)).collect()
    };
    let engine = "track main\n step execute~(decode) 0..1ms phase decode args {\"marker\":\"execute_context_0(0)_generation_8(8)\"}";
    let engine = Timeline::from_text(engine).unwrap();
    let user =
        "track main\n step execute~(decode) 0..1ms args {\"marker\":\"step[DECODE]\"}\n step step~(prefill) 2ms..3ms";
    let user = Timeline::from_text(user).unwrap();
    assert_eq!(phases(&again(&written(&engine))), [Some(EnginePhase::Decode)]);
    assert_eq!(phases(&again(&written(&user))), [None, None]);
    let older = String::from_utf8(written(&engine)).unwrap().replace(r#","phase":"decode""#, "");
    assert_eq!(phases(&again(older.as_bytes())), [Some(EnginePhase::Decode)]);
    let unlike = older.replace("execute (decode)", "step (prefill)");
    assert_eq!(phases(&again(unlike.as_bytes())), [None], "the marker of another name");
}

fn written(timeline: &Timeline) -> Vec<u8> {
    let mut bytes = Vec::new();
    report::exports::json::write(timeline, &mut bytes).unwrap();
    bytes
}

fn again(bytes: &[u8]) -> Timeline {
    let folder = TemporaryFolder::new("round-trip");
    let path = folder.path().join("trace.json");
    std::fs::write(&path, bytes).unwrap();
    timeline::open(&path).unwrap()
}

/// Everything that the format carries, a line each, with times after the start.
fn lines(timeline: &Timeline) -> Vec<String> {
    let mut lines = vec![format!("{:?} {:?}", timeline.duration(), timeline.info.command)];
    let host = &timeline.info.host;
    lines.push(format!("{} {:?} {:?} {:?}", host.hostname, host.cpu_count, host.numa_nodes, host.ram_bytes));
    for process in &timeline.processes {
        lines.push(format!("{} {} {} {}", process.pid, process.parent_pid, process.program, process.python));
    }
    for track in &timeline.tracks {
        lines.push(format!("{} {} {:?}", timeline.process(track).pid, track.tid, track.name));
        for index in track.slices.clone() {
            let slice = timeline.slices.get(index);
            let name = timeline.names.get(slice.name);
            let args = timeline.slices.args(index);
            let (start, kind) = (slice.start - timeline.start, slice.kind.name());
            lines.push(format!("{kind} {start} {} {} {name:?} {args:?}", slice.dur, slice.open));
        }
        for index in track.samples.clone() {
            let sample = timeline.samples.get(index);
            let frame = |frame: timeline::Frame| {
                let name = timeline.names.get(frame.name);
                format!("{}@{}:{}", name.text, name.file, frame.line)
            };
            let stack: Vec<_> = timeline.stacks.walk(sample.stack).map(|(_, part)| frame(part)).collect();
            lines.push(format!("{} {} {} {stack:?}", sample.time - timeline.start, sample.active, sample.gil));
        }
    }
    for counter in &timeline.counters {
        let pid = counter.process.map(|process| timeline.processes[process.0 as usize].pid);
        let times: Vec<u64> = counter.time.iter().map(|time| time - timeline.start).collect();
        lines.push(format!("{pid:?} {:?} {} {times:?} {:?}", counter.tid, counter.name, counter.value));
    }
    lines
        .extend(timeline.losses.iter().map(|loss| format!("{} {} {}", loss.collector, loss.reason.name(), loss.count)));
    lines.extend(timeline.notes_said());
    lines
}

fn same_events(timeline: &Timeline) -> Timeline {
    let back = again(&written(timeline));
    assert_eq!(lines(&back), lines(timeline));
    back
}

fn same_bytes(timeline: &Timeline) -> Timeline {
    let back = same_events(timeline);
    assert_eq!(String::from_utf8_lossy(&written(&back)), String::from_utf8_lossy(&written(timeline)));
    back
}

#[test]
fn a_recorded_trace_comes_back() {
    let folder = TemporaryFolder::new("round-trip-native");
    // Arguments that are not JSON are written as text, and come back so.
    Fixture::parse(&SERVICE.replace(r#" {"cut":"of"#, "")).write(folder.path());
    let timeline = timeline::open(folder.path()).unwrap();
    let back = same_bytes(&timeline);
    assert_eq!(back.info.created_unix_ns, timeline.info.created_unix_ns);
    let place = |name: &str| (0..back.slices.len()).find(|index| back.names.text(back.slices.get(*index).name) == name);
    let (request, decode, mark) = (place("request").unwrap(), place("decode").unwrap(), place("cache_miss").unwrap());
    assert_eq!(back.slices.detail(decode).parent, back.slices.detail(request).id);
    assert_eq!(back.slices.detail(mark).parent, back.slices.detail(decode).id);
    assert_ne!(back.slices.detail(request).id, 0);
}

#[test]
fn arguments_that_were_cut_come_back_as_text() {
    let folder = TemporaryFolder::new("round-trip-cut");
    Fixture::parse(SERVICE).write(folder.path());
    let first = written(&timeline::open(folder.path()).unwrap());
    assert_eq!(written(&again(&first)), first);
}

#[test]
fn pauses_notes_and_nanoseconds_come_back() {
    let timeline = Timeline::from_text(PAUSES).unwrap();
    same_bytes(&timeline);
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// Few moments and many events: most start or end together with others, where order is hardest to keep.
#[test]
fn timelines_at_random_come_back() {
    let mut random = Random(0x1dea_5eed_0bad_cafe);
    for _ in 0..300 {
        let mut builder = Builder::default();
        builder.timeline.end = 50;
        for pid in [10, 20] {
            let process = builder.process(Process { pid, program: "p".into(), ..Process::default() });
            for tid in 0..2 {
                let track = builder.track(process, pid as i32 + tid, "t");
                for id in 1..=random.below(12) as u32 {
                    let (start, mut dur) = (random.below(5) * 10, random.below(2) * 10);
                    let kind = SliceKind::from_i32(1 + random.below(6) as i32).unwrap();
                    let call = matches!(kind, SliceKind::Call | SliceKind::CCall | SliceKind::Gc);
                    let names = [("a", "f.py", 1), ("b", "f.py", 2), ("c", "", 0)];
                    let (text, file, line) = names[if call { random.below(3) as usize } else { 2 }];
                    let name = builder.name(text, file, line);
                    dur *= u64::from(kind != SliceKind::Mark);
                    let scope = matches!(kind, SliceKind::Scope | SliceKind::Step);
                    let id = if scope { id + 100 * tid as u32 } else { 0 };
                    let parent = if call { 0 } else { random.below(12) as u32 };
                    builder.slice(track, kind, name, start, dur, SliceExtra { id, parent, ..SliceExtra::default() });
                }
                let mut stack = None;
                for line in 0..random.below(4) as u32 {
                    let name = builder.name("s", "s.py", 0);
                    stack = Some(builder.frame(stack, name, line));
                    let time = random.below(5) * 10;
                    builder.sample(track, time, stack.unwrap_or(StackIndex(0)), line == 1, line == 2);
                }
            }
        }
        // Parents that do not enclose their child are not in the format, so the first time may lose some.
        let back = same_events(&builder.finish());
        same_bytes(&back);
    }
}
