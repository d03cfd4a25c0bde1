//! Telemetry as CSV, for spreadsheets and pandas: a row an event, an empty field where nothing was measured.

use crate::event::Event;
use std::io::{self, Write};

const COLUMNS: &str = "timestamp_ns,event_type,collector,pid,host,device_id,session_id,rank,allocator_allocated_bytes,allocator_reserved_bytes,\
     allocator_active_bytes,allocator_inactive_bytes,allocator_change_bytes,device_used_bytes,device_free_bytes,device_total_bytes,context";

pub fn header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{COLUMNS}")
}

pub fn row(event: &Event, out: &mut dyn Write) -> io::Result<()> {
    let (source, counters) = (&event.source, &event.counters);
    let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let fields = [
        event.time_ns.to_string(),
        event.kind.name().to_owned(),
        quoted(&source.collector),
        source.pid.to_string(),
        quoted(&source.host),
        source.device_id.to_string(),
        quoted(&source.session),
        number(source.identity.rank.map(u64::from)),
        number(counters.allocated),
        number(counters.reserved),
        number(counters.active),
        number(counters.inactive),
        counters.change.map_or(String::new(), |change| change.to_string()),
        number(counters.used),
        number(counters.free),
        number(counters.total),
        quoted(event.context.as_deref().unwrap_or_default()),
    ];
    writeln!(out, "{}", fields.join(","))
}

/// In quotes where it has to be, and never a formula: spreadsheets run what begins with one of these.
pub fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_break_out_of_their_field() {
        assert_eq!((quoted("a"), quoted("a,\"b\"")), ("a".into(), "\"a,\"\"b\"\"\"".into()));
        assert_eq!((quoted("=1+1"), quoted("x\ny")), ("'=1+1".into(), "\"x\ny\"".into()));
    }
}
