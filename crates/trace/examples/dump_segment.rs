//! Prints a segment as text: who wrote it, its status page, every record that is still in its rings, the calls that are
//! open. One line each, fields separated by tabs. For the tests of the collectors, and for looking at a segment by hand:
//!
//!     cargo run -p inferscope-trace --example dump_segment -- SEGMENT

use std::collections::HashMap;
use std::fmt::Display;
use std::process::ExitCode;
use trace::event::EVENT_WORDS;
use trace::gathered::TextGatherer;
use trace::names::NameCursor;
use trace::ring::Reader;
use trace::status::Collector;
use trace::{Anchor, Event, Kind, Mapping, NameId, SegmentReader, Ticks};

type Names = HashMap<NameId, String>;

/// A field's text on one line without tabs.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn line(kind: &str, fields: &[(&str, &dyn Display)]) {
    let fields: String = fields.iter().map(|(key, value)| format!("\t{key}={}", escaped(&value.to_string()))).collect();
    println!("{kind}{fields}");
}

fn name_of(names: &Names, id: NameId, inline: Option<String>) -> String {
    inline.or_else(|| names.get(&id).cloned()).unwrap_or_else(|| format!("?{}", id.0))
}

fn record(event: &Event, name: String, args: Option<String>, nanos: impl Fn(u64) -> u64) {
    let (time, args) = (nanos(event.time), args.unwrap_or_default());
    let duration = || nanos(event.time.wrapping_add(event.value)).saturating_sub(time);
    match Kind::from_u16(event.kind) {
        Some(kind @ (Kind::ScopeBegin | Kind::StepBegin | Kind::LayerBegin | Kind::EntryBegin)) => {
            let word = match kind {
                Kind::StepBegin => "step-begin",
                Kind::LayerBegin => "layer-begin",
                Kind::EntryBegin => "entry-begin",
                _ => "scope-begin",
            };
            line(
                word,
                &[
                    ("thread", &event.thread),
                    ("time", &time),
                    ("id", &event.extra),
                    ("parent", &event.value),
                    ("name", &name),
                    ("args", &args),
                ],
            );
        }
        Some(kind @ (Kind::ScopeEnd | Kind::StepEnd | Kind::LayerEnd | Kind::EntryEnd)) => {
            let word = match kind {
                Kind::StepEnd => "step-end",
                Kind::LayerEnd => "layer-end",
                Kind::EntryEnd => "entry-end",
                _ => "scope-end",
            };
            let begin = nanos(event.value);
            line(
                word,
                &[("thread", &event.thread), ("time", &time), ("id", &event.extra), ("begin", &begin), ("name", &name)],
            );
        }
        Some(Kind::Mark) => line(
            "mark",
            &[("thread", &event.thread), ("time", &time), ("parent", &event.value), ("name", &name), ("args", &args)],
        ),
        Some(Kind::Fix) => {
            line("fix", &[("thread", &event.thread), ("time", &time), ("moment", &event.extra), ("name", &name)])
        }
        Some(kind @ (Kind::Call | Kind::CCall | Kind::Gc)) => {
            let word = match kind {
                Kind::Call => "call",
                Kind::CCall => "c-call",
                _ => "gc",
            };
            line(
                word,
                &[
                    ("thread", &event.thread),
                    ("time", &time),
                    ("duration", &duration()),
                    ("depth", &event.extra),
                    ("ticks", &event.time),
                    ("end_ticks", &event.time.wrapping_add(event.value)),
                    ("name", &name),
                ],
            );
        }
        _ => line("unknown", &[("kind", &event.kind)]),
    }
}

fn dump(segment: &SegmentReader) {
    let who = segment.identity();
    line("process", &[("pid", &who.pid), ("parent", &who.parent), ("program", &who.program), ("python", &who.python)]);
    for collector in Collector::ALL {
        let status = segment.status(collector);
        let count = |cell: &std::sync::atomic::AtomicU64| cell.load(std::sync::atomic::Ordering::Relaxed);
        line(
            "status",
            &[
                ("collector", &collector.name()),
                ("state", &format!("{:?}", status.state()).to_lowercase()),
                ("message", &status.message()),
                ("dropped", &count(&status.dropped)),
                ("errors", &count(&status.errors)),
                ("unpaired", &count(&status.unpaired)),
                ("cut", &count(&status.cut)),
                ("overflow", &count(&status.overflow)),
            ],
        );
    }
    let mut names = Names::new();
    NameCursor::default().read(segment.names(), |id, text| drop(names.insert(id, text)));
    let source = segment.source();
    let start = segment.start_anchor().unwrap_or_default();
    let mapping = Mapping::new(source, start, Anchor::take(source));
    let nanos = |ticks: u64| mapping.nanos(Ticks(ticks)).0;
    for number in 0..segment.rings() {
        let Some(ring) = segment.ring(number) else { continue };
        let mut records: Vec<[u64; EVENT_WORDS]> = Vec::new();
        let lost = Reader::new(ring.head, ring.slots, 0).drain(&mut records, usize::MAX);
        line("ring", &[("number", &number), ("thread", &ring.thread), ("records", &records.len()), ("lost", &lost)]);
        let mut gatherer = TextGatherer::default();
        for words in records {
            let event = Event::from_words(words);
            if event.kind == Kind::Text as u16 || event.kind == Kind::Numbers as u16 {
                gatherer.add(words);
                continue;
            }
            let gathered = gatherer.take(&event);
            record(&event, name_of(&names, event.name, gathered.name), gathered.args, nanos);
        }
    }
    let calls = segment.open_calls();
    for calls in calls.chunk_by(|a, b| a.thread == b.thread) {
        for (depth, call) in calls.iter().enumerate() {
            let name = name_of(&names, call.name, None);
            line("open", &[("thread", &call.thread), ("time", &nanos(call.start)), ("depth", &depth), ("name", &name)]);
        }
    }
}

fn main() -> ExitCode {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    let [path] = paths.as_slice() else {
        eprintln!("usage: dump_segment SEGMENT");
        return ExitCode::from(2);
    };
    let opened = std::fs::read(path).map_err(Into::into).and_then(|bytes| SegmentReader::load(&bytes));
    match opened {
        Ok(segment) => {
            dump(&segment);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{} {error}", path.display());
            ExitCode::from(5)
        }
    }
}
