//! Telemetry as JSON: one event a line, an array of them, or an object with `events`. Versions 1 to 4 are read, version 2 is written.

mod fields;
mod legacy;
mod stream;
mod write;

use crate::event::{Counters, Event, EventType, Source};
use crate::identity::Identity;
use fields::Fields;
use serde_json::{Map, Value};
use std::fmt::Display;
use std::io::BufRead;
use std::sync::Arc;
pub use write::{line, object};

/// Longer than any event that a tool writes.
const LONGEST_EVENT: u64 = 1 << 20;

/// The first byte of a packed file.
const GZIP: u8 = 0x1f;

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// `at` is the line, or the number of the event in an array.
    #[error("{unit} {at}: {why}")]
    Invalid { unit: &'static str, at: u64, why: String },
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

impl ReadError {
    /// Values of the file stand in what is said: none of them makes it longer than somebody reads.
    const LONGEST: usize = 300;

    fn invalid(unit: &'static str, at: u64, why: impl Display) -> ReadError {
        let mut why = why.to_string();
        if let Some((end, _)) = why.char_indices().nth(ReadError::LONGEST) {
            why.truncate(end);
            why.push('…');
        }
        ReadError::Invalid { unit, at, why }
    }
}

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadReport {
    pub events: u64,
    /// The last event has no end: whoever wrote it was stopped in the middle of it.
    pub cut_short: bool,
}

/// Reads all events; the first that is wrong ends it.
pub fn read(mut input: impl BufRead, take: &mut dyn FnMut(Event)) -> Result<ReadReport, ReadError> {
    let mut sources = Sources::default();
    let mut number = 0;
    let mut each = |value: Value| {
        number += 1;
        event(value, &mut sources).map(&mut *take)
    };
    let first = stream::first_byte(&mut input)?;
    match first {
        None => Ok(ReadReport::default()),
        Some(b'[') => stream::array(input, LONGEST_EVENT, &mut each),
        Some(GZIP) => Err(ReadError::invalid("line", 1, "packed with gzip; unpack it first")),
        Some(_) => stream::lines(input, LONGEST_EVENT, &mut each),
    }
}

/// Whether it looks like telemetry, right or wrong: by the fields of its first event. No more of it is read than one event may be long.
pub fn is_telemetry(mut input: impl BufRead) -> bool {
    let mut is = false;
    let mut first = |value: Value| {
        let has = |name: &&str| value.get(name).is_some();
        is = ["schema_version", "event_type"].iter().all(has)
            || ["timestamp_ns", "timestamp"].iter().any(has) && legacy::COUNTERS.iter().any(has);
        Err("the first is enough".to_owned())
    };
    // Whatever is wrong with it is said where it is read.
    _ = match stream::first_byte(&mut input) {
        Ok(Some(b'[')) => stream::array(input, LONGEST_EVENT, &mut first),
        Ok(Some(b'{')) => stream::lines(input, LONGEST_EVENT, &mut first),
        _ => return false,
    };
    is
}

/// Sources that were met: each is kept once.
#[derive(Default)]
struct Sources(Vec<Arc<Source>>);

impl Sources {
    /// Most files have few; one with a source for each event costs no more than a short search each.
    const REMEMBERED: usize = 16;

    fn kept(&mut self, source: Source) -> Arc<Source> {
        if let Some(known) = self.0.iter().find(|known| ***known == source) {
            return Arc::clone(known);
        }
        let source = Arc::new(source);
        self.0.insert(0, Arc::clone(&source));
        self.0.truncate(Sources::REMEMBERED);
        source
    }
}

const REQUIRED: [&str; 18] = [
    "schema_version",
    "timestamp_ns",
    "event_type",
    "collector",
    "sampling_interval_ms",
    "pid",
    "host",
    "device_id",
    "allocator_allocated_bytes",
    "allocator_reserved_bytes",
    "allocator_active_bytes",
    "allocator_inactive_bytes",
    "allocator_change_bytes",
    "device_used_bytes",
    "device_free_bytes",
    "device_total_bytes",
    "context",
    "metadata",
];
const OPTIONAL: [&str; 4] = ["job_id", "rank", "local_rank", "world_size"];
const SESSION: &str = "session_id";
const CAPABILITIES: &str = "memory_capabilities";

fn event(value: Value, sources: &mut Sources) -> Result<Event, String> {
    let Value::Object(object) = value else { return Err("an event must be an object".into()) };
    let event = match object.get("schema_version") {
        None => legacy::event(&object, sources)?,
        Some(version) => match version.as_u64() {
            Some(version @ 2..=4) => versioned(&object, version, sources)?,
            Some(newer @ 5..) => return Err(format!("schema_version {newer} is newer than this InferScope knows (4)")),
            _ => return Err(format!("schema_version must be 2, 3 or 4, got {version}")),
        },
    };
    let contradiction = event.counters.contradiction().or_else(|| event.source.identity.contradiction());
    contradiction.map_or(Ok(event), |why| Err(why.to_owned()))
}

fn versioned(object: &Map<String, Value>, version: u64, sources: &mut Sources) -> Result<Event, String> {
    let has_session = version > 2;
    let required = || REQUIRED.into_iter().chain(has_session.then_some(SESSION));
    if let Some(missing) = required().find(|name| !object.contains_key(*name)) {
        return Err(format!("{missing} is missing (schema_version {version} requires it)"));
    }
    let known = |name: &str| required().chain(OPTIONAL).any(|known| known == name);
    if let Some(unknown) = object.keys().find(|name| !known(name)) {
        return Err(format!("unknown field {unknown:?}"));
    }
    let fields = Fields(object);
    // Before version 4 these had to be known.
    let counter = |name: &'static str| match version {
        4 => fields.bytes_or_null(name),
        _ => fields.bytes(name).map(Some),
    };
    let metadata = fields.metadata()?;
    if version == 4
        && !object.get("metadata").is_some_and(|metadata| metadata.get(CAPABILITIES).is_some_and(Value::is_object))
    {
        return Err(format!("metadata.{CAPABILITIES} is missing (schema_version 4 requires it)"));
    }
    let source = Source {
        collector: fields.text("collector")?,
        sampling_interval_ms: fields.count("sampling_interval_ms")?,
        pid: fields.at_least_minus_one("pid")?,
        host: fields.text("host")?,
        device_id: fields.signed("device_id")?,
        session: if has_session { fields.text(SESSION)? } else { String::new() },
        identity: identity(&fields)?,
    };
    Ok(Event {
        time_ns: fields.count("timestamp_ns")?,
        kind: kind(&fields.text("event_type")?)?,
        source: sources.kept(source),
        counters: Counters {
            allocated: counter("allocator_allocated_bytes")?,
            reserved: counter("allocator_reserved_bytes")?,
            active: fields.bytes_or_null("allocator_active_bytes")?,
            inactive: fields.bytes_or_null("allocator_inactive_bytes")?,
            change: match version {
                4 => fields.signed_or_null("allocator_change_bytes")?,
                _ => Some(fields.signed("allocator_change_bytes")?),
            },
            used: counter("device_used_bytes")?,
            free: fields.bytes_or_null("device_free_bytes")?,
            total: fields.bytes_or_null("device_total_bytes")?,
        },
        context: fields.text_or_null("context")?.map(Into::into),
        metadata,
    })
}

fn identity(fields: &Fields<'_>) -> Result<Identity, String> {
    Ok(Identity {
        job: fields.text_or_null("job_id")?,
        rank: fields.small_or_absent("rank")?,
        local_rank: fields.small_or_absent("local_rank")?,
        world_size: fields.small_or_absent("world_size")?,
    })
}

fn kind(name: &str) -> Result<EventType, String> {
    EventType::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = EventType::ALL.into_iter().map(EventType::name).collect();
        format!("unknown event_type {name:?}; known: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests;
