//! The settings of a recording, as its manifest has them: every row that says what is recorded, by its field.

use crate::settings::{Calls, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use trace::manifest::settings as keys;
use trace::settings::{Accepts, Group};

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordedSettings(Map<String, Value>);

impl From<&Settings> for RecordedSettings {
    fn from(settings: &Settings) -> RecordedSettings {
        let mut all = Map::new();
        // Where the trace is it does not have to say; whether there are stacks is in their rate.
        for row in Settings::ROWS.iter().filter(|row| !["output", "stacks"].contains(&row.field)) {
            let text = settings.text(row);
            let value = match row.accepts {
                Accepts::Whole { .. } => text.parse::<u64>().map_or(Value::Null, Value::from),
                Accepts::Number { .. } => text.parse::<f64>().map_or(Value::Null, Value::from),
                Accepts::Truth => (text == "true").into(),
                Accepts::List => text.split(',').filter(|word| !word.is_empty()).collect(),
                Accepts::Calls => (settings.calls != Calls::Off).into(),
                Accepts::GpuDetail | Accepts::Budget | Accepts::OneOf(_) | Accepts::Folder => text.into(),
            };
            all.insert(row.field.into(), value);
        }
        all.insert(keys::RATE_HZ.into(), settings.stack_rate_hz().into());
        all.insert(keys::C_CALLS.into(), json!(settings.calls == Calls::WithC));
        RecordedSettings(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_the_type_that_readers_of_a_trace_expect() {
        let include = vec!["a".to_owned(), "b.c".to_owned()];
        let settings = Settings { calls: Calls::WithC, stacks: false, include, ..Settings::default() };
        let expected = json!({
            "rate_hz": 0, "native": true, "calls": true, "c_calls": true, "include": ["a", "b.c"], "exclude": [],
            "min_us": 0, "trace_size_mb": 100, "memory_hz": 10.0, "gpu_detail": "launch", "overhead_budget": "auto",
            "layers": false, "ops": true, "memory_events": "none", "device_hz": 10.0,
        });
        let RecordedSettings(recorded) = RecordedSettings::from(&settings);
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(recorded.get(key), Some(value), "{key}");
        }
    }
}
