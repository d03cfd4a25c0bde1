//! Memory telemetry: events of every version as lines, arrays and objects, and the files of a sink. What is read can be asked for, shown, and written so
//! that it is read again.

use fuzz::{NUMBERS, Random, fuzz};
use report::Style;
use std::path::Path;
use std::sync::Arc;
use telemetry::alerts::{Alerts, Thresholds};
use telemetry::query::{By, Ranks, Summaries, is_oom};
use telemetry::risk::Gathered;
use telemetry::sink::{self, Limits, Sink};
use telemetry::{Counters, Event, EventType, Identity, Source};

const TEXTS: [&str; 8] = ["a", "=1+1", "", "\u{202e}x\u{0}\n", "oom", "rank 0", "\"quoted\",", "\u{1F600}"];
const METADATA: [&str; 5] = [
    "{}",
    r#"{"reason":"out_of_memory"}"#,
    r#"{"memory_capabilities":{}}"#,
    r#"{"memory_capabilities":5}"#,
    r#"{"process_bytes":-1,"a":[[]]}"#,
];

fn text(random: &mut Random) -> String {
    serde_json::Value::from(random.pick(&TEXTS)).to_string()
}

/// As a tool writes it, most of the time.
fn event(random: &mut Random) -> String {
    let mut fields = Vec::new();
    let mut put = |name: &str, value: String| fields.push(format!("\"{name}\":{value}"));
    let version = random.below(5);
    let kind = random.pick(&EventType::ALL).name();
    if version > 1 {
        put("schema_version", version.to_string());
        put("event_type", format!("\"{kind}\""));
        for name in ["collector", "host"] {
            put(name, "\"a\"".into());
        }
        put("sampling_interval_ms", "100".into());
        put("metadata", random.pick(&METADATA).into());
        put("context", if random.one_in(2) { "null".into() } else { text(random) });
    } else {
        put(random.pick(&["type", "event_type"]), format!("\"{kind}\""));
        put(random.pick(&["device", "collector", "host", "context", "message", "metadata"]), text(random));
        put("memory_mb", random.number(90));
    }
    if version > 2 {
        put("session_id", format!("\"s{}\"", random.below(3)));
    }
    put(if version > 1 || random.one_in(2) { "timestamp_ns" } else { "timestamp" }, random.number(4_000_000_000));
    put("pid", random.number(9));
    put("device_id", (random.below(3) as i64 - 1).to_string());
    for name in ["allocated", "reserved", "active", "inactive", "change"] {
        let name = format!("allocator_{name}_bytes");
        put(&name, if random.one_in(9) { "null".into() } else { random.number(1 << 30) });
    }
    for (name, most) in [("used", 1 << 20), ("free", 1 << 20), ("total", 1 << 30)] {
        let value = if name == "total" { (1_u64 << 53).to_string() } else { random.number(most) };
        put(&format!("device_{name}_bytes"), if random.one_in(9) { "null".into() } else { value });
    }
    if random.one_in(2) {
        put("rank", random.number(4));
        put("world_size", if random.one_in(9) { random.pick(&NUMBERS).into() } else { "9".into() });
    }
    fields.retain(|_| !random.one_in(40));
    format!("{{{}}}", fields.join(","))
}

#[test]
fn telemetry_as_json() {
    let make = |random: &mut Random, path: &Path| {
        let events: Vec<String> = (0..1 + random.below(20)).map(|_| event(random)).collect();
        let text = match random.below(4) {
            0 => format!("[{}]", events.join(",")),
            1 => format!("{{\"events\":[{}]}}", events.join(",")),
            2 => format!("{{\n \"tool\": {{}},\n \"events\": [\n{}\n]\n}}", events.join(",\n")),
            _ => events.join("\n"),
        };
        let mut text = text.into_bytes();
        if random.one_in(2) {
            random.json(&mut text);
        }
        std::fs::write(path, text).expect("written");
    };
    fuzz("telemetry-json", 1500, make, |_, path| {
        let bytes = std::fs::read(path).expect("what was written");
        let mut events = Vec::new();
        let read = telemetry::json::read(&bytes[..], &mut |event| events.push(event));
        if let Err(why) = &read {
            let said = why.to_string();
            assert!(!said.is_empty() && said.lines().count() == 1 && said.len() < 1500, "{said}");
        }
        assert!(read.is_err() || events.is_empty() || telemetry::json::is_telemetry(&bytes[..]) || bytes.len() > 64);
        told(&events);
    });
}

fn made(random: &mut Random) -> Event {
    let number = |random: &mut Random| random.number(1 << 30).parse::<u64>().ok();
    let source = Source {
        collector: format!("c{}", random.below(3)),
        sampling_interval_ms: 100,
        pid: random.below(9) as i64 - 1,
        host: "h".into(),
        device_id: random.below(3) as i64 - 1,
        session: random.pick(&TEXTS).into(),
        identity: Identity { rank: Some(random.below(4) as u32), world_size: Some(4), ..Identity::default() },
    };
    let [allocated, reserved, used] = [(); 3].map(|()| number(random));
    Event {
        time_ns: number(random).unwrap_or(u64::MAX),
        kind: random.pick(&EventType::ALL),
        source: Arc::new(source),
        counters: Counters { allocated, reserved, used, total: Some(u64::MAX), ..Counters::default() },
        context: random.one_in(2).then(|| random.pick(&TEXTS).into()),
        metadata: random.one_in(2).then(|| random.pick(&METADATA).into()),
    }
}

#[test]
fn files_of_a_sink() {
    let make = |random: &mut Random, path: &Path| {
        let mut sink = Sink::create(path, "s", Limits::default()).expect("a sink");
        (0..1 + random.below(60)).for_each(|_| sink.append(&made(random)));
        let file = sink.path().expect("a file").to_owned();
        drop(sink);
        let mut bytes = std::fs::read(&file).expect("what was written");
        if !random.one_in(4) {
            random.bytes(&mut bytes);
            std::fs::write(&file, bytes).expect("written");
        }
    };
    fuzz("sink", 400, make, |_, path| {
        let mut events = Vec::new();
        let damage = sink::read_folder(path, &mut |event| events.push(event)).expect("a folder");
        assert!(damage.iter().all(|one| !one.what.is_empty()));
        told(&events);
    });
}

/// Everything that is asked of events, and what must hold whatever is in them.
fn told(events: &[Event]) {
    let style = Style::default();
    let (mut ranks, mut gathered, mut alerts) =
        (Ranks::default(), Gathered::default(), Alerts::new(Thresholds::default()));
    for event in events {
        ranks.add(event);
        gathered.add(event);
        _ = is_oom(event);
        if let Some(share) = event.counters.share_used() {
            assert!((0.0..=1.0).contains(&share), "{event:?}");
            _ = alerts.see(event.time_ns, share);
        }
        let mut line = Vec::new();
        telemetry::json::line(event, &mut line).expect("written");
        telemetry::csv::row(event, &mut line.clone()).expect("written");
        let mut again = Vec::new();
        let read = telemetry::json::read(&line[..], &mut |event| again.push(event));
        assert!(read.is_ok(), "{read:?}: {}", String::from_utf8_lossy(&line));
        assert_eq!((again[0].counters, again[0].time_ns, again[0].kind), (event.counters, event.time_ns, event.kind));
    }
    let mut out = Vec::new();
    for by in [By::Session, By::Rank, By::Device] {
        let mut summaries = Summaries::by(by);
        events.iter().for_each(|event| summaries.add(event));
        let found = summaries.finish();
        assert_eq!(found.values().map(|summary| summary.events).sum::<u64>(), events.len() as u64);
        let doubts = report::telemetry::doubts(&found, &ranks.missing());
        report::telemetry::overview("place", &found, events, &doubts, &style, &mut out).expect("written");
    }
    let figures = gathered.finish();
    let advice = report::telemetry::advice(figures.risks());
    out.extend(report::telemetry::diagnosis(&figures, &advice).join("\n").into_bytes());
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(!text.contains("NaN") && !text.contains('\u{202e}') && !text.contains('\u{0}'), "{text}");
}
