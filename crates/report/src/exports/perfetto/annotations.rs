//! The arguments of a slice as debug annotations, which Perfetto shows when the slice is selected and finds by query.

use super::messages::DebugAnnotation;
use super::packets::{CORRELATION, ID, NOT_CLOSED, PARENT};
use serde_json::Value;
use timeline::{SliceKind, Timeline};

/// Everything a slice has beside a time and a name.
pub fn of_slice(timeline: &Timeline, index: usize, annotations: &mut Vec<DebugAnnotation>) {
    let detail = timeline.slices.detail(index);
    let id = if timeline.slices.kind(index) == SliceKind::ApiCall { CORRELATION } else { ID };
    for (name_iid, number) in [(id, detail.id), (PARENT, detail.parent)] {
        if number != 0 {
            let uint_value = Some(number.into());
            annotations.push(DebugAnnotation { name_iid: Some(name_iid), uint_value, ..Default::default() });
        }
    }
    if timeline.slices.get(index).open {
        let bool_value = Some(true);
        annotations.push(DebugAnnotation { name_iid: Some(NOT_CLOSED), bool_value, ..Default::default() });
    }
    if let Some(args) = timeline.slices.args(index) {
        match serde_json::from_str(args) {
            Ok(Value::Object(map)) => annotations.extend(map.into_iter().map(|(key, value)| named(key, value))),
            // Not what the collectors write: shown as it is rather than hidden.
            _ => annotations.push(named("args", args)),
        }
    }
}

pub fn named(name: impl Into<String>, value: impl Into<Value>) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.into()), ..annotation(value.into()) }
}

fn annotation(value: Value) -> DebugAnnotation {
    let mut annotation = DebugAnnotation::default();
    match value {
        Value::Bool(truth) => annotation.bool_value = Some(truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => annotation.int_value = Some(number),
            (None, Some(number)) => annotation.uint_value = Some(number),
            (None, None) => annotation.double_value = number.as_f64(),
        },
        Value::String(text) => annotation.string_value = Some(text),
        Value::Object(map) if !map.is_empty() => {
            annotation.dict_entries = map.into_iter().map(|(key, value)| named(key, value)).collect();
        }
        Value::Array(values) if !values.is_empty() => {
            annotation.array_values = values.into_iter().map(self::annotation).collect();
        }
        // The proto has neither null nor an empty list: without a value the reader would drop the name as well.
        empty => annotation.string_value = Some(empty.to_string()),
    }
    annotation
}
