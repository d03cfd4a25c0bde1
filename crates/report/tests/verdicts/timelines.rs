//! The timelines that the reports with verdicts are tested on, each written as the few lines that make it.

#[path = "encoder.rs"]
mod encoder;

use timeline::gpu::{Device, Job, Site, WorkKind};
use timeline::{
    Builder, CollectorState, Exit, LossReason, Note, Process, ProcessIndex, SliceExtra, SliceKind, StackIndex, State,
    Timeline, TrackIndex,
};

/// A service in which one function takes half of every request.
pub const SERVICE: &str = include_str!("../../../diagnosis/tests/service.timeline");

/// Losses, a clock that is far off, a recorder that was killed, a collector that failed.
pub const UNWELL: &str = "
    host cpus 2
    rate 100
    state recovered
    clock residual 9ms
    process app.py python 3.12.1
    collector stacks failed ptrace is not permitted here
    track main
    repeat 5 every 100ms
      step request 0..50ms
    end
    loss scopes 12000 overwritten
    loss calls 3 unpaired
    loss calls 4 unpaired
    note the ring was full for 2 s";

/// Nothing in it repeats; calls were recorded instead of samples.
pub const NO_STEPS: &str = "
    calls on
    state complete
    track main
    call main@app.py:1 0..1s
    repeat 2 every 400ms
      call load@app.py:10 100ms..300ms
      ccall time.sleep 150ms..250ms
    end
    gc 2 920ms..930ms
    scope startup 0..500ms";

/// Letters that mean something to a reader of Markdown or HTML, one trick a word.
pub const TRICKS: [&str; 12] = [
    "<script>alert(1)</script>",
    "a|b|c",
    "`code` ``and`` ```more```",
    "[click](http://evil.example) ![x](https://evil.example/x.png)",
    "@everyone someone@evil.example #1 GH-2 org/repo#3 :tada:",
    "line\nbreak\r\n\n# heading\n\n- list",
    "</details><img src=x onerror=alert(1)>",
    "www.evil.example <https://evil.example> mailto:a@evil.example",
    "$x$ &lt;b&gt; \\| *a* _b_ ~~c~~ $`y`$",
    "control \u{0}\u{1b}[31m\u{7}\u{202e}\u{2028}\u{85}",
    "| --- | --- |\n| x | y |",
    "",
];

pub fn parse(text: &str) -> Timeline {
    Timeline::from_text(text).expect("a timeline")
}

/// A timeline in which every text that can be recorded is a trick, and in which rules fire.
pub fn hostile() -> Timeline {
    let all = TRICKS.join(" ");
    let mut builder = Builder::default();
    let collectors = ["stacks", "gc", "memory"].map(|name| CollectorState {
        name: name.into(),
        state: "failed".into(),
        reason: all.clone(),
        ..CollectorState::default()
    });
    let process = Process {
        pid: 7,
        program: all.clone(),
        python: all.clone(),
        collectors: collectors.into(),
        ..Process::default()
    };
    let process = builder.process(process);
    let tracks: Vec<TrackIndex> =
        TRICKS.iter().enumerate().map(|(place, name)| builder.track(process, place as i32 + 7, name)).collect();
    for (place, trick) in TRICKS.iter().enumerate() {
        play(&mut builder, process, tracks[place], trick);
    }
    for collector in ["scopes", TRICKS[1], TRICKS[3], TRICKS[6]] {
        builder.loss(Some(process), collector, LossReason::Overwritten, 3);
    }
    let timeline = &mut builder.timeline;
    timeline.notes = TRICKS.map(Note::sentence).into();
    timeline.info.command = all.clone();
    timeline.info.version = all.clone();
    timeline.info.state = State::Complete;
    timeline.info.exit = Some(Exit::Signal(9));
    timeline.info.clock.source = all.clone();
    timeline.info.host.hostname = all.clone();
    timeline.info.host.cpu_model = all.clone();
    timeline.info.host.kernel = all;
    timeline.info.settings.rate_hz = Some(100.0);
    builder.finish()
}

/// Forty steps on one thread, a quarter of each in a function that all threads share, so that it is found.
fn play(builder: &mut Builder, process: ProcessIndex, track: TrackIndex, name: &str) {
    const MS: u64 = 1_000_000;
    let step = builder.name(TRICKS[0], "", 0);
    let scope = builder.name(name, "", 0);
    let function = builder.name(name, &format!("/srv/{name}.py"), 3);
    let shared = builder.name(&TRICKS.join(" "), &TRICKS.join("/"), 3);
    let waits = builder.name(name, name, 9);
    let running = builder.frame(None, function, 44);
    let waiting = builder.frame(Some(running), waits, 0);
    let hot = builder.frame(None, shared, 45);
    for round in 0..40 {
        let at = round * 50 * MS;
        let more = SliceExtra { args: Some("{}"), ..SliceExtra::default() };
        builder.slice(track, SliceKind::Step, step, at, 40 * MS, more);
        builder.slice(track, SliceKind::Scope, scope, at + MS, 9 * MS, SliceExtra::default());
        builder.slice(track, SliceKind::Call, function, at + 2 * MS, 3 * MS, SliceExtra::default());
        for (after, stack) in [(1, running), (11, hot), (21, waiting), (31, StackIndex(0))] {
            let runs = stack == running || stack == hot;
            builder.sample(track, at + after * MS, stack, runs, runs);
        }
    }
    builder.count(Some(process), None, name, 0, 5);
    device(builder, process, track, name);
}

/// A device, calls, kernels and layers of that name.
fn device(builder: &mut Builder, process: ProcessIndex, track: TrackIndex, name: &str) {
    let ordinal = builder.timeline.gpu.devices.len() as u32;
    let (text, site) = (name.into(), Site { process, device: ordinal, context: 1, stream: 7 });
    builder.device(Device { process: Some(process), ordinal, name: text, ..Device::default() });
    let named = builder.name(name, "", 0);
    for round in 0..40u64 {
        let (at, correlation) = (round * 50_000_000, ordinal * 40 + round as u32 + 1);
        let id = SliceExtra { id: correlation, ..SliceExtra::default() };
        builder.slice(track, SliceKind::Layer, named, at + 11_000_000, 500_000, SliceExtra::default());
        builder.slice(track, SliceKind::ApiCall, named, at + 11_100_000, 5_000, id);
        for kind in [WorkKind::Kernel, WorkKind::Memcpy] {
            let (start, dur) = (at + 11_200_000, 100_000);
            builder.work(Job {
                site,
                kind,
                name: named,
                start,
                dur,
                correlation,
                shape: None,
                more: Default::default(),
            });
        }
    }
}

/// All of them, with the names that their snapshots have.
/// Two recordings of the same program, to be compared: the later one is slower; with a device in both; and as a whole.
pub fn pairs() -> Vec<(&'static str, Timeline, Timeline)> {
    let slower = SERVICE.replace("step request 0..40ms", "step request 0..44ms").replace("cpus 4", "cpus 8");
    let devices = || parse(include_str!("../gpu/small.timeline"));
    vec![
        ("slower", parse(SERVICE), parse(&slower)),
        ("devices", devices(), devices()),
        ("whole", parse(NO_STEPS), parse(NO_STEPS)),
        ("evil", hostile(), hostile()),
    ]
}

pub fn all() -> [(&'static str, Timeline); 8] {
    [
        ("service", parse(SERVICE)),
        ("unwell", parse(UNWELL)),
        ("no_steps", parse(NO_STEPS)),
        ("empty", parse("track main\n state complete")),
        ("nothing", Timeline::default()),
        ("encoder", encoder::encoder()),
        ("hostile", hostile()),
        ("gpu", parse(include_str!("../gpu/small.timeline"))),
    ]
}

/// What `check` writes of a timeline: a limit that a service fails, one that it keeps, and one of a GPU.
pub fn limits(timeline: &Timeline, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let (metrics, diagnosis) = (analysis::measure(timeline), diagnosis::diagnose(timeline, &Default::default()));
    let named = diagnosis::named::Named::new(timeline, &metrics, diagnosis.figures());
    let limits =
        [("--max-step-ms", "step_p50", 1.0), ("--max-step-ms", "step_p99", 1e6), ("--max-kernels", "kernels", 2.0)];
    let judged = limits.map(|(flag, name, limit)| {
        let metric = diagnosis::named::find(name).unwrap();
        report::limits::Judged { flag, metric, least: false, limit, measured: named.get(metric).clone() }
    });
    report::limits::write_json("trace", &diagnosis.steps, &judged, out)
}

/// What `whatif` writes of a timeline.
pub fn whatif(timeline: &Timeline, changes: &str, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let steps = analysis::Steps::find(timeline, None);
    let asked = replay::parse(changes).unwrap();
    let answer = replay::replay(timeline, &steps, &asked).unwrap();
    report::whatif::json::write("trace", changes, &steps, &answer, out)
}
