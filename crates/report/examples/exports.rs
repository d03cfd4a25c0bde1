//! Writes the timelines of the tests in every export format into a folder, for readers of other tools to try:
//! `cargo run -p inferscope-report --example exports -- FOLDER`.

#[path = "../tests/formats/timelines.rs"]
mod timelines;

use report::exports::{collapsed, perfetto, pprof, speedscope};
use std::error::Error;
use std::fs::File;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder? give its path")?);
    std::fs::create_dir_all(&folder)?;
    let all = [
        ("everything", timelines::open(&timelines::everything())),
        ("hostile", timelines::hostile()),
        ("nothing", timelines::nothing()),
        ("gpu", timelines::gpu()),
    ];
    for (name, timeline) in &all {
        let create = |end: &str| File::create(folder.join(format!("{name}.{end}")));
        perfetto::write(timeline, &mut create("perfetto-trace")?)?;
        speedscope::write(timeline, &mut create("speedscope.json")?)?;
        pprof::write(timeline, &mut create("pb.gz")?)?;
        let options = collapsed::Options { idle: true, lines: true };
        collapsed::write(timeline, options, &mut create("collapsed.txt")?)?;
    }
    Ok(())
}
