//! The steps replayed with something changed, for programs. The replay itself is in `replay`.

use super::most_changed;
use crate::limits::steps_json;
use ::replay::{Answer, Limit, On};
use analysis::steps::Steps;
use diagnosis::wording::replay;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Grows by one after the point when something is added, before it when something changes its meaning or goes.
pub const VERSION: &str = "1.1";

pub fn write(trace: &str, changes: &str, steps: &Steps, answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let check = answer.check;
    let percent = answer.gain();
    let document = json!({
        "whatif_version": VERSION,
        "trace": trace,
        "changes": changes,
        "steps": steps_json(steps),
        "replay": {
            "steps": check.steps,
            "explained": check.explained,
            "recorded_ns": check.recorded_ns,
            "replayed_ns": check.replayed_ns,
            "error_percent": 100.0 * check.off,
            "worst_percent": 100.0 * check.worst,
        },
        "now_ns": answer.now_ns,
        "then_ns": answer.then_ns,
        "gain_ns": {"low": answer.low_ns, "mid": answer.mid_ns, "high": answer.high_ns},
        "gain_percent": {"low": percent.low, "mid": percent.mid, "high": percent.high},
        "changed": most_changed(answer).iter().map(|(name, count)| json!({"name": name, "count": count})).collect::<Vec<_>>(),
        "limits_now": answer.before.iter().map(limit).collect::<Vec<_>>(),
        "limits_then": answer.after.iter().map(limit).collect::<Vec<_>>(),
        "assumed": answer.assumed.iter().map(replay::assumption).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn limit(limit: &Limit) -> Value {
    let kind = match limit.on {
        On::Host => "host_code",
        On::Call => "cuda_call",
        On::Latency => "launch_latency",
        On::Gap => "gap",
        On::Kernel => "kernel",
        On::Copy => "copy",
        On::Unknown => "unknown",
    };
    let name = if limit.name.is_empty() { Value::Null } else { limit.name.as_str().into() };
    json!({"kind": kind, "what": replay::limit(limit), "name": name, "percent": 100.0 * limit.share})
}
