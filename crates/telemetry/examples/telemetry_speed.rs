//! Prints what an event costs in a sink, how large it is there, and how long a summary of a million takes:
//! `cargo run --release -p inferscope-telemetry --example telemetry_speed [FOLDER]`, which leaves the telemetry in that folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use telemetry::query::{By, Summaries};
use telemetry::sink::{self, Limits, Sink};
use telemetry::{Counters, Event, EventType, Source};

const EVENTS: u64 = 1_000_000;

fn main() -> std::io::Result<()> {
    let temporary = std::env::temp_dir().join(format!("inferscope-telemetry-speed-{}", std::process::id()));
    let kept = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = kept.clone().unwrap_or(temporary);
    let source = |device_id| {
        Arc::new(Source {
            collector: "speed".into(),
            pid: 1,
            host: "h".into(),
            device_id,
            session: "s".into(),
            ..Source::default()
        })
    };
    let sources = [source(0), source(1)];
    let event = |number: u64| Event {
        time_ns: 1_700_000_000_000_000_000 + number * 100_003_017,
        kind: EventType::Sample,
        source: Arc::clone(&sources[number as usize % 2]),
        counters: Counters {
            allocated: Some((number * 7919 * 4096) % (60 << 30)),
            reserved: Some((number / 1000 % 30) << 31),
            change: Some((number as i64 % 4096) - 2048),
            used: Some((number * 7919 * 4096) % (60 << 30) + (1 << 30)),
            free: Some((79 << 30) - (number * 7919 * 4096) % (60 << 30)),
            total: Some(80 << 30),
            ..Counters::default()
        },
        context: None,
        metadata: None,
    };
    let limits = Limits { file_bytes: 64 << 20, files: 100, total_bytes: 1 << 30 };
    let mut sink = Sink::create(&folder, "s", limits)?;
    let events: Vec<Event> = (0..EVENTS).map(event).collect();
    let began = Instant::now();
    events.iter().for_each(|event| sink.append(event));
    let append = began.elapsed();
    assert_eq!(sink.lost, 0);
    let bytes = sink.used();
    drop(sink);
    let began = Instant::now();
    let mut summaries = Summaries::by(By::Device);
    sink::read_folder(&folder, &mut |event| summaries.add(&event))?;
    let query = began.elapsed();
    let found: u64 = summaries.finish().values().map(|summary| summary.events).sum();
    assert_eq!(found, EVENTS);
    println!("append_ns {:.0}", append.as_nanos() as f64 / EVENTS as f64);
    println!("bytes_per_event {:.1}", bytes as f64 / EVENTS as f64);
    println!("query_1m_ms {:.1}", query.as_secs_f64() * 1e3);
    if kept.is_none() { std::fs::remove_dir_all(folder) } else { Ok(()) }
}
