//! The timelines that the exports are tested on: one with a bit of everything, one whose names try to break out of every
//! format, and one with nothing in it.

use timeline::Timeline;
use timeline::fixture::{Fixture, TemporaryFolder, Value};
use trace::tables::{SliceKind, Table, sample_state};

/// Letters that mean something in one format or another.
pub const HOSTILE: &str =
    "a;b c\td\r\n7 \u{0}\u{1b}[31m\u{7f}\u{85}<script>alert(\"1\")</script>'`\\ % {}[]|*_ \u{2028}\u{202e} 名前 🦀 é ";

pub fn open(fixture: &Fixture) -> Timeline {
    let folder = TemporaryFolder::new("export");
    fixture.write(folder.path());
    timeline::open(folder.path()).expect("a fixture opens")
}

pub fn everything() -> Fixture {
    Fixture::parse(
        r#"
        process 100 serve.py 3.12.1
        process 200 tokenizer 3.12.1
        thread 0 100 MainThread
        thread 0 101 loop
        step  0 100 0..90000 request #1
        scope 0 100 10000..80000 decode #2 ^1 {"tokens":3,"ratio":0.5,"deep":{"list":[1,null,"x"],"none":{}}}
        mark  0 100 12000 cache_miss ^2 {"key":"k"}
        call  0 100 20000..60000 forward@model.py:12
        ccall 0 100 30000..40000 matmul
        scope 0 100 85000.. answer #3 ^1
        scope 0 101 10000..50000 task_a #4
        scope 0 101 20000..30000 task_b #5
        scope 0 101 25000..70000 task_c #6
        scope 0 101 22000..28000 inner_b #7 ^5
        scope 0 101 52000..60000 task_d #8
        sample 0 100 10000 active,gil main@a.py:3;forward@model.py:14
        sample 0 100 20000 active,gil main@a.py:3;forward@model.py:15;matmul@np.py:2
        sample 0 100 30000 active main@a.py:3;forward@model.py:15;matmul@np.py:2
        sample 0 100 40000 - main@a.py:4;wait@sync.py:8
        sample 0 100 80000 active,gil main@a.py:3
        sample 0 101 10000 - loop@asyncio.py:1
        call  1 200 5000..6000 encode@tok.py:1
        counter 0 0 10000 rss_bytes 4096
        counter 0 0 20000 rss_bytes 8192
        counter 0 100 10000 runqueue_wait_ns 7
        counter 0 999 10000 timeslices 1
        counter -1 0 10000 psi_cpu_some_us 3
        loss 0 calls 3 overwritten
        "#,
    )
}

/// As [`everything`], with a thread in which all text is [`HOSTILE`].
pub fn hostile() -> Timeline {
    let mut fixture = everything();
    let (name, file) = (1000, 1001);
    let at = |micros: i64| Value::Int(timeline::fixture::text::START_NS + micros * 1000);
    fixture.row(Table::Names, [name.into(), HOSTILE.into(), HOSTILE.into(), 7.into()]);
    fixture.row(Table::Names, [file.into(), "".into(), Value::Null, Value::Null]);
    fixture.row(Table::Threads, [at(0), 1.into(), 201.into(), HOSTILE.into()]);
    let args = serde_json::json!({ HOSTILE: HOSTILE, "more": [HOSTILE, 1e300, u64::MAX, i64::MIN] }).to_string();
    let slice = |id: i32, start, dur: i64, kind: SliceKind, name: i32, args: &str| {
        [
            at(start),
            dur.into(),
            1.into(),
            201.into(),
            (kind as i32).into(),
            name.into(),
            id.into(),
            0.into(),
            args.into(),
        ]
    };
    fixture.row(Table::Slices, slice(50, 100, 1_000_000, SliceKind::Scope, name, &args));
    fixture.row(Table::Slices, slice(51, 5000, 1_000_000, SliceKind::Step, file, "not an object"));
    fixture.row(Table::Slices, slice(0, 5500, 0, SliceKind::Mark, name, "[1]"));
    fixture.row(Table::Stacks, [1000.into(), Value::Null, name.into(), 8.into()]);
    fixture.row(Table::Samples, [at(10_000), 1.into(), 201.into(), 1000.into(), sample_state::ACTIVE.into()]);
    // A stack that is missing.
    fixture.row(Table::Samples, [at(20_000), 1.into(), 201.into(), 4242.into(), sample_state::ACTIVE.into()]);
    fixture.row(Table::Counters, [at(10_000), 1.into(), 201.into(), name.into(), i64::MIN.into()]);
    fixture.row(Table::Losses, [at(10_000), 1.into(), HOSTILE.into(), HOSTILE.into(), 1.into()]);
    fixture.manifest["processes"][1]["program"] = HOSTILE.into();
    fixture.manifest["notes"] = serde_json::json!([HOSTILE]);
    open(&fixture)
}

/// Devices: see tests/gpu.
pub fn gpu() -> Timeline {
    Timeline::from_text(include_str!("../gpu/small.timeline")).expect("a timeline")
}

/// Opened, but nothing in it.
pub fn nothing() -> Timeline {
    Timeline::default()
}
