//! Writes HTML reports of timelines with devices into a folder, for a browser to try:
//! `cargo run -p inferscope-report --example pages -- FOLDER`.

#[path = "../tests/gpu/timelines.rs"]
mod timelines;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder? give its path")?);
    std::fs::create_dir_all(&folder)?;
    // The last has a million events of the device; the one before it more steps than a page holds.
    let all = [
        ("small", timelines::small()),
        ("model", timelines::model(60, 12)),
        ("tail", timelines::tail()),
        ("steps", timelines::many_steps(40_000)),
        ("million", timelines::model(5600, 24)),
    ];
    for (name, timeline) in &all {
        let metrics = analysis::measure(timeline);
        let diagnosis = diagnosis::diagnose(timeline, &diagnosis::Options::default());
        let mut page = BufWriter::new(File::create(folder.join(format!("{name}.html")))?);
        report::reports::html::write(timeline, &metrics, &diagnosis, &mut page)?;
    }
    Ok(())
}
