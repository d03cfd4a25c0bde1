//! Writes the reports with verdicts, made from the timelines of the tests, into a folder, for readers of other tools to try:
//! `cargo run -p inferscope-report --example analyses -- FOLDER`.

#[path = "../tests/verdicts/timelines.rs"]
mod timelines;

use report::{analysis_json, markdown};
use std::error::Error;
use std::fs::File;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder? give its path")?);
    std::fs::create_dir_all(&folder)?;
    for (name, timeline) in &timelines::all() {
        let create = |end: &str| File::create(folder.join(format!("{name}.{end}")));
        let metrics = analysis::measure(timeline);
        let diagnosis = analysis::diagnose(timeline, &analysis::Options::default());
        markdown::write(timeline, &metrics, &diagnosis, &mut create("md")?)?;
        analysis_json::write(timeline, &metrics, &diagnosis, &mut create("analysis.json")?)?;
    }
    Ok(())
}
