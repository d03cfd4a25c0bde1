//! Writes the reports with verdicts, made from the timelines of the tests, into a folder, for readers of other tools to try:
//! `cargo run -p inferscope-report --example analyses -- FOLDER`.

#[path = "../tests/verdicts/timelines.rs"]
mod timelines;

use analysis::measure;
use diagnosis::compare::{Gate, Side, compare};
use diagnosis::{Options, diagnose};
use report::comparison::Titles;
use report::reports::{analysis_json, markdown};
use std::error::Error;
use std::fs::File;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("which folder? give its path")?);
    std::fs::create_dir_all(&folder)?;
    for (name, timeline) in &timelines::all() {
        let create = |end: &str| File::create(folder.join(format!("{name}.{end}")));
        let (metrics, diagnosis) = (measure(timeline), diagnose(timeline, &Options::default()));
        markdown::write(timeline, &metrics, &diagnosis, &mut create("md")?)?;
        analysis_json::write(timeline, &metrics, &diagnosis, &mut create("analysis.json")?)?;
        timelines::limits(timeline, &mut create("check.json")?)?;
        if *name == "gpu" {
            timelines::whatif(timeline, "scale kernel:* 0.5", &mut create("whatif.json")?)?;
        }
    }
    for (name, a, b) in &timelines::pairs() {
        let measured = [a, b].map(|one| (measure(one), diagnose(one, &Options::default())));
        let side =
            |timeline, place: usize| Side { timeline, metrics: &measured[place].0, diagnosis: &measured[place].1 };
        let comparison = compare(side(a, 0), side(b, 1))?;
        let gates = [Gate::parse("step_p50 > +5%")?.judge(&comparison)];
        let create = |end: &str| File::create(folder.join(format!("{name}.comparison.{end}")));
        let titles = Titles { a: "before", b: "after" };
        report::comparison::json::write(&comparison, &titles, &gates, &mut create("json")?)?;
        report::comparison::markdown::write(&comparison, &titles, &gates, 12, &mut create("md")?)?;
    }
    Ok(())
}
