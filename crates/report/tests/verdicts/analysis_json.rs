//! The analysis JSON has the fields that its schema asks for and no others, adds up, and invents nothing. The whole of the
//! schema is checked in tests/exports/test_analysis.py.

use super::timelines::{self, NO_STEPS, SERVICE, UNWELL, parse};
use super::{reports, timelines::TRICKS};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../schema/analysis.schema.json");

fn analysis(timeline: &timeline::Timeline) -> Value {
    serde_json::from_str(&reports(timeline).1).unwrap()
}

/// Fields, and whether null and lists are where the schema has them.
pub fn check(root: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        return check(root, &root["$defs"][name.trim_start_matches("#/$defs/")], value, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = |one: &&Value| (one["type"] == "null") == value.is_null();
        return check(root, any.iter().find(fits).unwrap_or_else(|| panic!("{at}: {value}")), value, at);
    }
    if let Some(known) = schema["enum"].as_array() {
        assert!(known.contains(value), "{at}: {value} is none of {known:?}");
    }
    if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
        for name in schema["required"].as_array().unwrap() {
            assert!(fields.contains_key(name.as_str().unwrap()), "{at}: no {name}");
        }
        for (name, field) in fields {
            let of = properties.get(name).unwrap_or_else(|| panic!("{at}: {name} is not in the schema"));
            check(root, of, field, &format!("{at}.{name}"));
        }
    }
    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
        check(root, &schema["items"], item, &format!("{at}[{place}]"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(types.is_empty() || types.contains(&is) || is == "integer" && types.contains(&"number"), "{at}: {is}");
}

#[test]
fn every_field_is_in_the_schema_and_every_field_of_the_schema_is_there() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (name, timeline) in timelines::all() {
        check(&schema, &schema, &analysis(&timeline), name);
    }
}

#[test]
fn shares_and_times_add_up() {
    for (name, timeline) in timelines::all() {
        let analysis = analysis(&timeline);
        let sum = |list: &str, field: &str| {
            analysis[list].as_array().unwrap().iter().map(|part| part[field].as_f64().unwrap()).sum::<f64>()
        };
        // The busy time of a device and why it was idle make up the whole, for each of them.
        let idle = analysis["idle_breakdown"].as_array().unwrap();
        let devices = idle.iter().filter(|row| row["category"] == "busy").count();
        let wholes = [("timeline_breakdown", 1), ("idle_breakdown", devices.max(1))];
        for (list, whole) in wholes {
            let empty = analysis[list].as_array().unwrap().is_empty();
            assert!(empty || (sum(list, "percentage") - 100.0 * whole as f64).abs() < 1e-9, "{name} {list}");
        }
        let summary = |field: &str| analysis["summary"][field].as_f64().unwrap_or(0.0);
        assert!((sum("timeline_breakdown", "duration_us") - summary("breakdown_us")).abs() < 1e-6, "{name}");
        let waits = (sum("idle_breakdown", "duration_us") - summary("total_idle_us")).abs();
        assert!(devices > 0 || waits < 1e-6, "{name}");
    }
}

#[test]
fn findings_are_ranked_and_suggested_in_their_order() {
    let analysis = analysis(&parse(SERVICE));
    let findings = analysis["findings"].as_array().unwrap();
    let gains: Vec<f64> = findings.iter().map(|one| one["gain_percent"]["mid"].as_f64().unwrap_or(-1.0)).collect();
    assert!(gains.len() > 1 && gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
    let first = &analysis["suggestions"][0];
    assert_eq!((&first["priority"], &first["rule"]), (&1.into(), &findings[0]["code"]));
    assert_eq!(first["action"], findings[0]["actions"][0]);
    assert_eq!(first["estimated_improvement_percent"], findings[0]["gain_percent"]);
    assert_eq!(analysis["bottleneck"]["type"], "cpu_bound");
    assert_eq!(findings[0]["where"]["function"], "compile_pattern");
}

#[test]
fn what_was_not_measured_is_null() {
    let service = analysis(&parse(SERVICE));
    for field in ["total_gpu_time_us", "total_h2d_us", "total_d2h_us"] {
        assert!(service["summary"][field].is_null(), "{field}");
    }
    assert!(service["health"]["overhead_percent"].is_null());
    assert_eq!(service["gpu"], Value::Array(Vec::new()));
    assert_eq!(service["steps"]["p50_us"], 40_000.0);

    let unwell = analysis(&parse(UNWELL));
    assert_eq!((&unwell["health"]["dropped"], &unwell["health"]["state"]), (&12_007.into(), &"recovered".into()));
    for field in ["total_cpu_time_us", "total_idle_us", "mean_cores", "peak_memory_bytes", "recorded_cpu_time_us"] {
        assert!(unwell["summary"][field].is_null(), "{field}");
    }

    let whole = analysis(&parse(NO_STEPS));
    assert_eq!((&whole["steps"]["source"], &whole["steps"]["count"]), (&"whole".into(), &0.into()));
    assert!(whole["steps"]["p99_us"].is_null() && whole["health"]["clock_residual_ns"].is_null());
    assert_eq!(whole["summary"]["end_to_end_latency_us"], 1_000_000.0);

    let nothing = analysis(&timeline::Timeline::default());
    assert!(nothing["summary"]["end_to_end_latency_us"].is_null());
    assert_eq!(nothing["bottleneck"]["type"], "unknown");
}

#[test]
fn names_come_through_whole() {
    let hostile = analysis(&timelines::hostile());
    assert_eq!(hostile["steps"]["name"], TRICKS[0]);
    let notes: Vec<&str> = hostile["health"]["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(notes, TRICKS);
}
