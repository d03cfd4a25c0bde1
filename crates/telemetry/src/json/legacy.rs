//! Version 1: events without `schema_version`, as early tools wrote them, with times in seconds and sizes in megabytes or under other names.
//! What they do not say is not invented: a counter that is missing is unknown.

use super::fields::Fields;
use super::{Sources, identity, kind};
use crate::event::{Counters, Event, EventType, Source};
use serde_json::{Map, Value};

pub fn event(object: &Map<String, Value>, sources: &mut Sources) -> Result<Event, String> {
    let fields = Fields(object);
    let metadata = match object.get("metadata") {
        None | Some(Value::Null) => None,
        Some(_) => fields.metadata()?,
    };
    let name = ["event_type", "type"].iter().find_map(|key| object.get(*key).and_then(Value::as_str));
    let total = ["device_total_bytes", "total_memory", "device_total", "total_bytes"];
    let source = Source {
        collector: fields.text_or_null("collector")?.unwrap_or_else(|| "unknown".into()),
        sampling_interval_ms: object.get("sampling_interval_ms").and_then(Value::as_u64).unwrap_or(0),
        pid: object.get("pid").and_then(Value::as_i64).filter(|pid| *pid >= -1).unwrap_or(-1),
        host: fields.text_or_null("host")?.unwrap_or_else(|| "unknown".into()),
        device_id: device(object),
        session: fields.text_or_null("session_id")?.unwrap_or_default(),
        identity: identity(&fields)?,
    };
    Ok(Event {
        time_ns: time(object)?,
        kind: name.map_or(Ok(EventType::Sample), kind)?,
        source: sources.kept(source),
        counters: Counters {
            allocated: bytes(object, &["allocator_allocated_bytes", "memory_allocated"])?.or(megabytes(object)),
            reserved: bytes(object, &["allocator_reserved_bytes", "memory_reserved"])?,
            active: bytes(object, &["allocator_active_bytes"])?,
            inactive: bytes(object, &["allocator_inactive_bytes"])?,
            change: ["allocator_change_bytes", "memory_change"].iter().find_map(|key| object.get(*key)?.as_i64()),
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

/// "cuda:1" is 1, "cpu" is −1.
fn device(object: &Map<String, Value>) -> i64 {
    if let Some(number) = object.get("device_id").and_then(Value::as_i64) {
        return number;
    }
    let device = object.get("device").and_then(Value::as_str).unwrap_or("cpu");
    device.rsplit_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(-1)
}

fn bytes(object: &Map<String, Value>, names: &[&str]) -> Result<Option<u64>, String> {
    let name = names.iter().find(|name| object.contains_key(**name));
    name.map_or(Ok(None), |name| Fields(object).bytes_or_null(name))
}

fn megabytes(object: &Map<String, Value>) -> Option<u64> {
    let megabytes = object.get("memory_mb")?.as_f64().filter(|number| (0.0..1e12).contains(number))?;
    Some((megabytes * 1_048_576.0) as u64)
}
