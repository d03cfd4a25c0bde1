//! One event of the file: which of its fields we use, and when it begins and ends.

use super::warnings::JsonWarnings;
use crate::import::json::LATEST;
use crate::import::json::fields::{Raw, fields};
use std::borrow::Cow;

/// Ten years: no event lasts so long, but broken clocks have written it.
pub const LONGEST: i64 = 10 * 366 * 86_400 * 1_000_000_000;

#[derive(Default)]
pub struct Event<'a> {
    pub sort: Cow<'a, str>,
    pub name: Option<Cow<'a, str>>,
    pub process: Raw<'a>,
    pub thread: Raw<'a>,
    pub scope: Raw<'a>,
    pub parent: Raw<'a>,
    pub kind: Raw<'a>,
    pub category: Raw<'a>,
    pub args: Raw<'a>,
    pub file: Raw<'a>,
    pub line: Raw<'a>,
    pub open: Raw<'a>,
    pub active: Raw<'a>,
    pub gil: Raw<'a>,
    pub stack: Raw<'a>,
    pub value: Raw<'a>,
    pub window: Raw<'a>,
    pub fix: Raw<'a>,
    pub overhead: Raw<'a>,
    pub phase: Raw<'a>,
    pub metadata: Raw<'a>,
    start: Raw<'a>,
    end: Raw<'a>,
    duration: Raw<'a>,
    /// It has the fields of Chrome's trace format, or of memory telemetry.
    pub chrome: bool,
    pub telemetry: bool,
}

impl<'a> Event<'a> {
    pub fn parse(text: &'a str) -> Result<Event<'a>, serde_json::Error> {
        let mut event = Event::default();
        fields(text, |key, value| match key {
            "type" => event.sort = value.text().unwrap_or_default(),
            "name" => event.name = value.text(),
            "timestamp_start_us" => event.start = value,
            "timestamp_us" if !event.start.given() => event.start = value,
            "timestamp_end_us" => event.end = value,
            "duration_us" => event.duration = value,
            "metadata" => event.metadata = value,
            "ph" => event.chrome = true,
            "event_type" | "schema_version" => event.telemetry = true,
            _ => {}
        })?;
        if let Some(metadata) = event.metadata.object() {
            fields(metadata, |key, value| match key {
                "process_id" => event.process = value,
                "thread_id" => event.thread = value,
                "scope" => event.scope = value,
                "parent_scope" => event.parent = value,
                "kind" => event.kind = value,
                "category" => event.category = value,
                "args" => event.args = value,
                "file" => event.file = value,
                "line" => event.line = value,
                "open" => event.open = value,
                "active" => event.active = value,
                "gil" => event.gil = value,
                "stack" => event.stack = value,
                "value" => event.value = value,
                "window" => event.window = value,
                "fix" => event.fix = value,
                "overhead" => event.overhead = value,
                "phase" => event.phase = value,
                _ => {}
            })?;
        }
        Ok(event)
    }

    /// The moment of an event that has no length.
    pub fn time(&self) -> Option<u64> {
        nanos(if self.start.given() { self.start } else { self.end })
    }

    /// Start and duration in nanoseconds. What cannot be is counted: without any time there is nothing to show; without a
    /// believable end the event is shown as a moment.
    pub fn span(&self, warnings: &mut JsonWarnings) -> Option<(u64, u64)> {
        let (end, duration) = (nanos(self.end), length(self.duration));
        let Some(start) = nanos(self.start) else {
            let start = end.zip(duration).and_then(|(end, duration)| end.checked_sub(duration))?;
            return Some((start, duration?));
        };
        let by_end = end.and_then(|end| end.checked_sub(start)).filter(|length| *length <= LONGEST as u64);
        if self.end.given() && by_end.is_none() {
            warnings.ends += 1;
        } else if self.duration.given() && by_end.is_none() && duration.is_none() {
            warnings.lengths += 1;
        } else if !self.end.given() && !self.duration.given() {
            warnings.endless += 1;
        }
        Some((start, by_end.or(duration).unwrap_or(0)))
    }
}

fn nanos(micros: Raw<'_>) -> Option<u64> {
    micros.scaled(3).filter(|time| (0..=LATEST).contains(time)).map(|time| time as u64)
}

fn length(micros: Raw<'_>) -> Option<u64> {
    micros.scaled(3).filter(|time| (0..=LONGEST).contains(time)).map(|time| time as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> (Option<(u64, u64)>, [u64; 3]) {
        let mut warnings = JsonWarnings::default();
        let span = Event::parse(text).unwrap().span(&mut warnings);
        (span, [warnings.ends, warnings.lengths, warnings.endless])
    }

    #[test]
    fn an_event_lasts_as_long_as_can_be_believed() {
        for (text, expected, warnings) in [
            (r#"{"timestamp_start_us":1.5,"timestamp_end_us":"4"}"#, Some((1500, 2500)), [0, 0, 0]),
            (r#"{"timestamp_start_us":1,"duration_us":2}"#, Some((1000, 2000)), [0, 0, 0]),
            (r#"{"timestamp_end_us":5,"duration_us":2}"#, Some((3000, 2000)), [0, 0, 0]),
            (r#"{"timestamp_start_us":9,"timestamp_end_us":4,"duration_us":3}"#, Some((9000, 3000)), [1, 0, 0]),
            (r#"{"timestamp_start_us":9,"timestamp_end_us":4}"#, Some((9000, 0)), [1, 0, 0]),
            (r#"{"timestamp_start_us":9,"duration_us":-1}"#, Some((9000, 0)), [0, 1, 0]),
            (r#"{"timestamp_start_us":9,"duration_us":1e15}"#, Some((9000, 0)), [0, 1, 0]),
            (r#"{"timestamp_start_us":9,"duration_us":[]}"#, Some((9000, 0)), [0, 1, 0]),
            (r#"{"timestamp_us":9}"#, Some((9000, 0)), [0, 0, 1]),
            (r#"{"timestamp_start_us":-9,"duration_us":1}"#, None, [0, 0, 0]),
            (r#"{"timestamp_start_us":{},"timestamp_end_us":null}"#, None, [0, 0, 0]),
            (r#"{"timestamp_end_us":1,"duration_us":2}"#, None, [0, 0, 0]),
        ] {
            assert_eq!(span(text), (expected, warnings), "{text}");
        }
    }
}
