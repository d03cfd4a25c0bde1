//! Writes HTML reports of timelines with devices, and of one without, into a folder, for a browser to try, and numbers as the other reports
//! write them, for the page's own formatters: `cargo run -p inferscope-report --example pages -- FOLDER`.

#[path = "../tests/verdicts/encoder.rs"]
mod encoder;
#[path = "../tests/memory_timelines.rs"]
mod memory_timelines;
#[path = "../tests/gpu/timelines.rs"]
mod timelines;

use analysis::phrase;
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder? give its path")?);
    std::fs::create_dir_all(&folder)?;
    // The last has a million events of the device; the one before it more steps than a page holds.
    let all = [
        ("encoder", encoder::encoder()),
        ("small", timelines::small()),
        ("model", timelines::model(60, 12)),
        ("memory", memory_timelines::service()),
        ("hostile_memory", memory_timelines::hostile()),
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
    std::fs::write(folder.join("numbers.json"), serde_json::to_vec(&numbers())?)?;
    Ok(())
}

/// Numbers at the edges of every unit, and those halfway between two decimals, each with its text.
fn numbers() -> serde_json::Value {
    let edges = [0, 1, 999, 1_125, 9_994, 9_995, 9_996, 99_949, 99_950, 999_499, 999_500, 12_250_000, 999_499_999];
    let long = [0.9995, 1.125, 7.89, 65.25, 119.0, 125.0, 599.9, 600.0, 725.0, 3599.9, 3600.0, 11_220.0, 90_000.0];
    let times = edges.into_iter().chain(long.map(|seconds| (seconds * 1e9) as u64));
    let sizes = [0, 999, 1000, 1023, 1024, 1152, 10_235, 12_544, 1_023_488, 3 << 30, 5 << 50];
    let parts = [(0, 7), (1, 3), (1, 1_000_000), (1, 800), (3, 800), (7, 7)];
    serde_json::json!({
        "times": times.map(|ns| (ns, phrase::duration(ns))).collect::<Vec<_>>(),
        "sizes": sizes.map(|bytes| (bytes, phrase::bytes(bytes))),
        "parts": parts.map(|(part, whole)| (part, whole, phrase::percent_of(part, whole))),
    })
}
