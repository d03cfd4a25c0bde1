//! The HTML report: one file that opens offline. The page and its modules stand in `assets/`; here the payload is
//! made, level of detail chosen, and everything put into one document. Nothing of a name can become markup: the payload
//! is JSON with `<` escaped, and the page writes text as text.

mod curves;
mod devices;
mod gpu;
mod lod;
mod memory;
mod names;
mod operators;
mod pack;
mod payload;
mod picture;
mod samples;
mod steps;
mod streams;
mod tracks;
mod waits;
mod words;

use crate::plots;
use analysis::Metrics;
use diagnosis::Diagnosis;
use std::io::{self, Write};
use timeline::Timeline;

const PAGE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
/// In the order that they depend on each other; joined into one module.
const MODULES: [&str; 15] = [
    include_str!("../../assets/data.js"),
    include_str!("../../assets/colours.js"),
    include_str!("../../assets/view.js"),
    include_str!("../../assets/pointer.js"),
    include_str!("../../assets/gpu.js"),
    include_str!("../../assets/links.js"),
    include_str!("../../assets/timeline.js"),
    include_str!("../../assets/flame.js"),
    include_str!("../../assets/tables.js"),
    include_str!("../../assets/gpu_tables.js"),
    include_str!("../../assets/operators.js"),
    include_str!("../../assets/picture.js"),
    include_str!("../../assets/memory.js"),
    include_str!("../../assets/memory_section.js"),
    include_str!("../../assets/main.js"),
];

pub fn write(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let payload = payload::build(timeline, metrics, diagnosis);
    let mut rest = PAGE;
    for (place, fill) in [
        ("/*{{style}}*/", format!("{}{STYLE}", plots::page_colours())),
        ("{{payload}}", json(&payload)?),
        ("{{script}}", script()),
    ] {
        let (before, after) =
            rest.split_once(place).ok_or_else(|| io::Error::other(format!("no {place} in the page")))?;
        out.write_all(before.as_bytes())?;
        out.write_all(fill.as_bytes())?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// JSON that can stand inside a script element: no text of the trace can end it.
fn json(payload: &payload::Payload) -> io::Result<String> {
    let text = serde_json::to_string(payload)?;
    Ok(text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

/// The modules as one: their imports of each other go, and so does the word `export`.
fn script() -> String {
    let mut all = String::new();
    for line in MODULES.iter().flat_map(|module| module.lines()) {
        if !line.starts_with("import ") {
            all.push_str(line.strip_prefix("export ").unwrap_or(line));
            all.push('\n');
        }
    }
    all
}
