//! The arguments of an event that we use, and those of an operator that are kept for rules: shapes, types, strides, what a
//! collective moves.

use crate::import::json::LONGEST_ARGS;
use crate::import::json::fields::{Raw, fields};

#[derive(Default)]
pub struct Args<'a> {
    pub device: Raw<'a>,
    pub context: Raw<'a>,
    pub stream: Raw<'a>,
    pub correlation: Raw<'a>,
    pub bytes: Raw<'a>,
    pub grid: Raw<'a>,
    pub block: Raw<'a>,
    pub registers: Raw<'a>,
    pub shared: Raw<'a>,
    pub graph: Raw<'a>,
    pub node: Raw<'a>,
    pub sync: Raw<'a>,
    /// Of memory instants.
    pub allocated: Raw<'a>,
    pub reserved: Raw<'a>,
    pub device_id: Raw<'a>,
    pub device_type: Raw<'a>,
}

impl<'a> Args<'a> {
    /// What cannot be read is missing: the event itself was read already.
    pub fn of(args: Raw<'a>) -> Args<'a> {
        let mut found = Args::default();
        let _ = fields(args.object().unwrap_or("{}"), |key, value| match key {
            "correlation" => found.correlation = value,
            "device" | "Device" => found.device = value,
            "context" => found.context = value,
            "stream" => found.stream = value,
            "bytes" => found.bytes = value,
            "grid" => found.grid = value,
            "block" => found.block = value,
            "registers per thread" => found.registers = value,
            "shared memory" => found.shared = value,
            "graph id" => found.graph = value,
            "graph node id" => found.node = value,
            "cuda_sync_kind" => found.sync = value,
            "Total Allocated" => found.allocated = value,
            "Total Reserved" => found.reserved = value,
            "Device Id" => found.device_id = value,
            "Device Type" => found.device_type = value,
            _ => {}
        });
        found
    }
}

/// Arguments of an operator that rules may ask for, by the name that they have today. Numbers that differ at every call
/// (`External id`, `Ev Idx`) would make each text another one.
fn kept(key: &str) -> Option<&'static str> {
    Some(match key {
        "Input Dims" | "Input dims" => "Input Dims",
        "Input type" | "Input Type" => "Input type",
        "Input Strides" => "Input Strides",
        "Collective name" => "Collective name",
        "In msg nelems" => "In msg nelems",
        "Out msg nelems" => "Out msg nelems",
        "Group size" => "Group size",
        "dtype" => "dtype",
        _ => return None,
    })
}

/// Scalars are kept where they decide what an operator does: whether a copy blocks, how a convolution steps, whether
/// attention is causal.
fn scalars_matter(name: &str) -> bool {
    ["copy", "::to", "conv", "attention"].iter().any(|part| name.contains(part))
}

/// The kept arguments as one JSON object in `text`; false when there are none, or too long ones.
pub fn of_op(name: &str, args: Raw<'_>, text: &mut String) -> bool {
    text.clear();
    let Some(object) = args.object() else { return false };
    let scalars = scalars_matter(name);
    let read = fields(object, |key, value| {
        let key = match key {
            "Concrete Inputs" if scalars => "Concrete Inputs",
            other => match kept(other) {
                Some(key) => key,
                None => return,
            },
        };
        if !value.given() || matches!(value.0, "[]" | "\"\"") {
            return;
        }
        text.push(if text.is_empty() { '{' } else { ',' });
        text.extend(["\"", key, "\":", value.0]);
    });
    if text.is_empty() || read.is_err() || text.len() >= LONGEST_ARGS {
        return false;
    }
    text.push('}');
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_types_are_kept_and_numbers_of_the_call_are_not() {
        let args = r#"{"External id":7,"Concrete Inputs":["","False"],"Input type":["float"],"Input dims":[[2,3]],"Ev Idx":1}"#;
        let mut text = String::new();
        assert!(of_op("aten::add", Raw(args), &mut text));
        assert_eq!(text, r#"{"Input type":["float"],"Input Dims":[[2,3]]}"#);
        assert!(of_op("aten::copy_", Raw(args), &mut text) && text.contains("False"));
        assert!(!of_op("aten::add", Raw(r#"{"External id":7}"#), &mut text));
        assert!(!of_op("aten::add", Raw("[1]"), &mut text));
    }
}
