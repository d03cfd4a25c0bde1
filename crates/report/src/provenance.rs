//! Where an export comes from, in a few lines: the recording, the error of its clock, what was lost and what is not in it.
//! Formats of other tools have a comment for this at best; every export writes it where its format allows.

use diagnosis::wording::origin::completeness;
use std::collections::BTreeMap;
use timeline::{LossReason, Note, Process, Timeline, Track};

/// One fact a line; never empty.
pub fn lines(timeline: &Timeline) -> Vec<String> {
    let info = &timeline.info;
    let state = format!("recording {}", completeness(info.state));
    // Another tool's file says neither which InferScope made it nor how good its times are.
    let mut lines = if info.recorded_by.is_ours() {
        vec![
            format!("recorded by InferScope {}: {}", known(&info.version), known(&info.command)),
            format!("{state}; times are good to {} ns", info.clock.residual_ns),
        ]
    } else {
        vec![format!("recorded by {}", known(&info.command)), state]
    };
    let empty = timeline.slices.is_empty() && timeline.samples.is_empty() && timeline.counters.is_empty();
    if empty && timeline.gpu.is_empty() {
        lines.push("nothing was recorded in this trace".into());
    }
    let mut lost: BTreeMap<(&str, LossReason), u64> = BTreeMap::new();
    for loss in &timeline.losses {
        let count = lost.entry((&loss.collector, loss.reason)).or_default();
        *count = count.saturating_add(loss.count);
    }
    lines.extend(
        lost.into_iter()
            .map(|((collector, reason), count)| format!("lost by {collector}: {count} {}", reason.said(count))),
    );
    lines.extend(timeline.notes.iter().map(Note::said));
    lines
}

fn known(text: &str) -> &str {
    if text.is_empty() { "(not recorded)" } else { text }
}

/// `serve.py (100)`.
pub fn process(process: &Process) -> String {
    let program = if process.program.is_empty() { "process" } else { &process.program };
    match process.pid {
        0 => format!("{program} (pid not recorded)"),
        pid => format!("{program} ({pid})"),
    }
}

/// `MainThread (100)`.
pub fn thread(track: &Track) -> String {
    let name = if track.name.is_empty() { "thread" } else { &*track.name };
    format!("{name} ({})", track.tid)
}
