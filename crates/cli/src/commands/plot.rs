//! `inferscope plot`: a picture of the memory of a trace, a snapshot or telemetry, as SVG, PNG or a page.

use crate::args::Reading;
use crate::commands::query;
use crate::config::Settings;
use crate::confine::{Needs, Output};
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{open, output};
use analysis::memory::heat::HeatBy;
use clap::{Args, ValueEnum};
use report::plots::{self, Asked, Drawing, PlotFormat, PlotKind, Telemetry};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope plot trace --output memory.svg
                                           what its memory says most clearly
  inferscope plot snapshot.pickle --kind lifetimes --output blocks.html
                                           the blocks of PyTorch's allocator over time
  inferscope plot trace --kind heatmap --by layer --output layers.png
  inferscope plot inferscope-telemetry --kind ranks --output ranks.svg

What it lacks is said, and no picture is written: exit code 1. A page that zooms
is the report: `inferscope analyze trace --output report.html`.")]
pub struct Plot {
    /// A trace, a snapshot of PyTorch's allocator, or memory telemetry [default: the newest run of this folder]
    #[arg(value_name = "WHAT")]
    what: Option<PathBuf>,

    /// The picture: .svg, .png or .html
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// What to draw [default: the first of attribution, lifetimes and timeline that there is; ranks for telemetry of several]
    #[arg(short, long, value_name = "KIND")]
    kind: Option<Kind>,

    /// Rows of the heat map
    #[arg(long, value_name = "ROWS", default_value = "line")]
    by: By,

    /// Only this GPU
    #[arg(long, value_name = "N")]
    device: Option<u32>,

    /// Format [default: by the file extension of --output]
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<Format>,

    #[command(flatten)]
    pub reading: Reading,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// Memory over time: allocators, devices, processes
    Timeline,
    /// Every byte of a device by what it is for
    Attribution,
    /// Allocated bytes by line or layer, and step
    Heatmap,
    /// Blocks of PyTorch's allocator over time
    Lifetimes,
    /// One curve a rank
    Ranks,
    /// What profiled functions kept (telemetry)
    Functions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum By {
    Line,
    Layer,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Shapes; light and dark as the viewer has it
    Svg,
    /// Pixels
    Png,
    /// A page with the SVG; hover tells what a shape is
    Html,
}

impl Format {
    fn of(path: &Path) -> Result<Format, Failure> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match ending.as_str() {
            "svg" => Ok(Format::Svg),
            "png" => Ok(Format::Png),
            "html" | "htm" => Ok(Format::Html),
            _ => Err(Failure::usage(format_args!(
                "a picture is written to .svg, .png or .html, not to {}; or choose with --format",
                path.display()
            ))),
        }
    }
}

pub fn run(settings: &Settings, plot: &Plot) -> Result<Ending, Failure> {
    let file = output::file(Some(&plot.output));
    // Told before a large trace is read.
    let format = match (plot.format, file) {
        (Some(format), _) => format,
        (None, Some(path)) => Format::of(path)?,
        (None, None) => return Err(Failure::usage("to write to stdout, choose a --format: svg, png or html")),
    };
    if format == Format::Png && file.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "PNG is not for a terminal: write it to a file with --output memory.png, or pipe it",
        ));
    }
    if plot.by == By::Layer && plot.kind != Some(Kind::Heatmap) {
        return Err(Failure::usage("--by layer is for --kind heatmap"));
    }
    let written = file.map_or(Output::None, Output::File);
    let (title, drawings) = match plot.what.as_deref() {
        Some(path) if is_telemetry(path) => telemetry(settings, plot, path, written)?,
        what => trace(settings, plot, what, written)?,
    };
    let format = match format {
        Format::Svg => PlotFormat::Svg,
        Format::Png => PlotFormat::Png,
        Format::Html => PlotFormat::Html,
    };
    let picture = plots::write(&title, drawings, format).map_err(Failure::error)?;
    output::write_to(file, |out| out.write_all(&picture))?;
    if let Some(path) = file {
        settings.say(format_args!("wrote {}", path.display()));
    }
    Ok(Ending::FINE)
}

fn trace(
    settings: &Settings,
    plot: &Plot,
    what: Option<&Path>,
    written: Output<'_>,
) -> Result<(String, Vec<Drawing>), Failure> {
    let [mut source] = open::confined(settings, [what], written)?;
    let timeline = source.read(settings)?;
    timeline.notes.iter().for_each(|note| settings.say(note.said()));
    let by = if plot.by == By::Line { HeatBy::Line } else { HeatBy::Layer };
    let asked = Asked { kind: plot.kind.map(Kind::plotted), by, device: plot.device };
    let drawings = plots::of_trace(&timeline, &asked).map_err(|why| nothing(&source.path, &why))?;
    Ok((timeline.info.command.clone(), drawings))
}

fn telemetry(
    settings: &Settings,
    plot: &Plot,
    path: &Path,
    written: Output<'_>,
) -> Result<(String, Vec<Drawing>), Failure> {
    let mut needs = Needs::default();
    let from_stdin = path == Path::new("-");
    if !from_stdin {
        needs.read(path);
    }
    needs.output(written);
    crate::memory::limit(settings.max_memory);
    let confined = needs.confine();
    settings.debug(|| format!("confined by Landlock: {confined}"));
    let mut found = Telemetry::default();
    let mut take = |event: telemetry::Event| {
        let device = plot.device.map(i64::from);
        if device.is_none_or(|device| device == event.source.device_id) {
            found.take(&event);
        }
    };
    match from_stdin {
        true => query::read_json(BufReader::new(std::io::stdin().lock()), "stdin", &mut take)?,
        false => query::read(path, &mut take)?,
    }
    let drawings = found.draw(plot.kind.map(Kind::plotted)).map_err(|why| nothing(path, &why))?;
    Ok((format!("Memory telemetry: {}", path.display()), drawings))
}

impl Kind {
    fn plotted(self) -> PlotKind {
        match self {
            Kind::Timeline => PlotKind::Timeline,
            Kind::Attribution => PlotKind::Attribution,
            Kind::Heatmap => PlotKind::HeatMap,
            Kind::Lifetimes => PlotKind::Lifetimes,
            Kind::Ranks => PlotKind::Ranks,
            Kind::Functions => PlotKind::Functions,
        }
    }
}

fn nothing(path: &Path, why: &str) -> Failure {
    Failure::error(format_args!("nothing to draw in {}: {why}", path.display()))
}

/// A folder or file of a sink, JSON of events, or events on stdin; everything else is opened as a trace.
fn is_telemetry(path: &Path) -> bool {
    if path == Path::new("-") || query::is_telemetry(path) {
        return true;
    }
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match ending.as_str() {
        telemetry::sink::EXTENSION | "jsonl" => path.is_file(),
        "json" => path.is_file() && begins_as_event(path),
        _ => false,
    }
}

/// Other JSON is a trace of ours, or of torch.profiler. Every event has its version and its type within a few fields.
fn begins_as_event(path: &Path) -> bool {
    const ENOUGH: u64 = 4096;
    let Ok(file) = File::open(path) else { return false };
    let mut beginning = Vec::new();
    let read = BufReader::new(file.take(ENOUGH)).read_until(b'}', &mut beginning);
    let text = String::from_utf8_lossy(&beginning);
    read.is_ok() && text.contains("\"event_type\"") && text.contains("\"timestamp")
}
