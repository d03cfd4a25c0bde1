//! Version 1: events without `schema_version`, as early tools wrote them, with times in seconds and sizes in megabytes or under other names.
//! What they do not say is not invented: a counter that is missing is unknown.

use super::fields::Fields;
use super::{Sources, identity, kind};
use crate::event::{Counters, Event, EventType, Source};
use serde_json::{Map, Value};

/// What an event of this version counts, at least one of them.
pub const COUNTERS: [&str; 5] =
    ["memory_mb", "memory_allocated", "memory_reserved", "allocator_allocated_bytes", "device_used_bytes"];

pub fn event(object: &Map<String, Value>, sources: &mut Sources) -> Result<Event, String> {
    let fields = Fields(object);
    let metadata = match object.get("metadata") {
        None | Some(Value::Null) => None,
        Some(_) => fields.metadata()?,
    };
    let name = match object.contains_key("event_type") {
        true => fields.text_or_null("event_type")?,
        false => fields.text_or_null("type")?,
    };
    let total = ["device_total_bytes", "total_memory", "device_total", "total_bytes"];
    let source = Source {
        collector: named(&fields, "collector")?,
        sampling_interval_ms: said(object, "sampling_interval_ms", Fields::count)?.unwrap_or(0),
        pid: said(object, "pid", Fields::at_least_minus_one)?.unwrap_or(-1),
        host: named(&fields, "host")?,
        device_id: device(object)?,
        session: fields.text_or_null("session_id")?.unwrap_or_default(),
        identity: identity(&fields)?,
    };
    Ok(Event {
        time_ns: time(object)?,
        kind: name.map_or(Ok(EventType::Sample), |name| kind(&name))?,
        source: sources.kept(source),
        counters: Counters {
            allocated: bytes(object, &["allocator_allocated_bytes", "memory_allocated"])?.or(megabytes(object)?),
            reserved: bytes(object, &["allocator_reserved_bytes", "memory_reserved"])?,
            active: bytes(object, &["allocator_active_bytes"])?,
            inactive: bytes(object, &["allocator_inactive_bytes"])?,
            change: match object.contains_key("allocator_change_bytes") {
                true => fields.signed_or_null("allocator_change_bytes")?,
                false => fields.signed_or_null("memory_change")?,
            },
            used: bytes(object, &["device_used_bytes"])?,
            free: bytes(object, &["device_free_bytes"])?,
            total: bytes(object, &total)?,
        },
        context: fields
            .text_or_null(if object.contains_key("context") { "context" } else { "message" })?
            .map(Into::into),
        metadata,
    })
}

/// Nanoseconds, or seconds with a fraction.
fn time(object: &Map<String, Value>) -> Result<u64, String> {
    if object.contains_key("timestamp_ns") {
        return Fields(object).count("timestamp_ns");
    }
    let seconds = object.get("timestamp").and_then(Value::as_f64).filter(|seconds| (0.0..1e10).contains(seconds));
    seconds
        .map(|seconds| (seconds * 1e9) as u64)
        .ok_or_else(|| "timestamp_ns (or timestamp, in seconds) is missing".into())
}

/// A field that need not be there; if it is, it is what it must be.
fn said<'a, T>(
    object: &'a Map<String, Value>,
    name: &str,
    read: impl Fn(&Fields<'a>, &str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let is_said = object.get(name).is_some_and(|value| !value.is_null());
    is_said.then(|| read(&Fields(object), name)).transpose()
}

fn named(fields: &Fields<'_>, name: &str) -> Result<String, String> {
    let text = fields.text_or_null(name)?.filter(|text| !text.is_empty());
    Ok(text.unwrap_or_else(|| "unknown".into()))
}

/// "cuda:1" and 1 are 1, "cpu" is −1.
fn device(object: &Map<String, Value>) -> Result<i64, String> {
    if let Some(number) = said(object, "device_id", Fields::signed)? {
        return Ok(number);
    }
    if let Some(number) = object.get("device").and_then(Value::as_i64) {
        return Ok(number);
    }
    let device = Fields(object).text_or_null("device")?.unwrap_or_else(|| "cpu".into());
    Ok(device.rsplit_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(-1))
}

fn bytes(object: &Map<String, Value>, names: &[&str]) -> Result<Option<u64>, String> {
    let name = names.iter().find(|name| object.contains_key(**name));
    name.map_or(Ok(None), |name| Fields(object).bytes_or_null(name))
}

fn megabytes(object: &Map<String, Value>) -> Result<Option<u64>, String> {
    said(object, "memory_mb", Fields::megabytes)
}
