//! Writes version 2. Counters that version 2 requires and nobody measured are an error, not a 0: such events are written as version 4,
//! which has null for them.

use crate::event::Event;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// One event as an object.
pub fn object(event: &Event) -> Map<String, Value> {
    let (source, counters) = (&*event.source, &event.counters);
    let known = counters.allocated.is_some() && counters.reserved.is_some() && counters.used.is_some();
    let version = if known && counters.change.is_some() { 2 } else { 4 };
    let mut metadata: Map<String, Value> =
        event.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("schema_version", json!(version));
    if version == 4 {
        put("session_id", json!(if source.session.is_empty() { "unknown" } else { &source.session }));
        // What is there may be of another version, where it means something else.
        if !metadata.get("memory_capabilities").is_some_and(Value::is_object) {
            let measured = json!({
                "supports_allocator_allocated": counters.allocated.is_some(),
                "supports_allocator_reserved": counters.reserved.is_some(),
                "supports_allocator_active": counters.active.is_some(),
                "supports_allocator_inactive": counters.inactive.is_some(),
                "supports_device_used": counters.used.is_some(),
                "supports_device_free": counters.free.is_some(),
                "supports_device_total": counters.total.is_some(),
            });
            metadata.insert("memory_capabilities".to_owned(), measured);
        }
    }
    put("timestamp_ns", json!(event.time_ns));
    put("event_type", json!(event.kind.name()));
    put("collector", json!(source.collector));
    put("sampling_interval_ms", json!(source.sampling_interval_ms));
    put("pid", json!(source.pid));
    put("host", json!(source.host));
    put("device_id", json!(source.device_id));
    put("allocator_allocated_bytes", json!(counters.allocated));
    put("allocator_reserved_bytes", json!(counters.reserved));
    put("allocator_active_bytes", json!(counters.active));
    put("allocator_inactive_bytes", json!(counters.inactive));
    put("allocator_change_bytes", json!(counters.change));
    put("device_used_bytes", json!(counters.used));
    put("device_free_bytes", json!(counters.free));
    put("device_total_bytes", json!(counters.total));
    put("context", json!(event.context.as_deref()));
    put("metadata", Value::Object(metadata));
    let identity = &source.identity;
    let numbers = [("rank", identity.rank), ("local_rank", identity.local_rank), ("world_size", identity.world_size)];
    for (name, number) in numbers {
        if let Some(number) = number {
            put(name, json!(number));
        }
    }
    if let Some(job) = &identity.job {
        put("job_id", json!(job));
    }
    object
}

/// One event as a line.
pub fn line(event: &Event, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &object(event))?;
    out.write_all(b"\n")
}
