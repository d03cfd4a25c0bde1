//! `inferscope export`: writes every event of a trace for another tool.

use crate::args::{Export, ExportFormat, export_formats};
use crate::config::Settings;
use crate::confine::Output;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{open, output};
use report::exports::collapsed;
use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use timeline::Timeline;
use trace::plain_file;

pub fn run(settings: &Settings, export: &Export) -> Result<Ending, Failure> {
    let file = output::file(export.output.as_deref());
    // Told before a large trace is read.
    let format = format(export, file)?;
    let written = match (file, format) {
        (None, _) => Output::None,
        (Some(folder), ExportFormat::Parquet) => Output::Folder(folder),
        (Some(file), _) => Output::File(file),
    };
    let [mut source] = open::confined(settings, [export.trace.as_deref()], written)?;
    let timeline = source.read(settings)?;
    timeline.notes.iter().for_each(|note| settings.say(note.said()));
    if format == ExportFormat::Parquet {
        return tables(settings, source.folder(), file);
    }
    match format {
        ExportFormat::Collapsed => stacks(&timeline)?,
        ExportFormat::Pprof if timeline.samples.is_empty() => stacks(&timeline)?,
        _ => {}
    }
    output::write_to(file, |mut out| match format {
        ExportFormat::Chrome => report::exports::chrome::write(&timeline, &mut out),
        ExportFormat::Json => report::exports::json::write(&timeline, &mut out),
        ExportFormat::Perfetto => report::exports::perfetto::write(&timeline, &mut out),
        ExportFormat::Speedscope => report::exports::speedscope::write(&timeline, &mut out),
        ExportFormat::Collapsed => {
            collapsed::write(&timeline, collapsed::Options { idle: false, lines: false }, &mut out)
        }
        ExportFormat::Pprof => report::exports::pprof::write(&timeline, &mut out),
        ExportFormat::Parquet => Ok(()),
    })?;
    if let Some(path) = file {
        // A plain .json may have been meant for a viewer.
        let other = match (export.format, format) {
            (None, ExportFormat::Json) => " (InferScope JSON; for ui.perfetto.dev: --format chrome)",
            _ => "",
        };
        settings.say(format_args!("wrote {}{other}", path.display()));
    }
    Ok(Ending::FINE)
}

/// What was asked for, or what the file's name asks for.
fn format(export: &Export, file: Option<&Path>) -> Result<ExportFormat, Failure> {
    let format = match (export.format, file) {
        (Some(format), _) => format,
        (None, Some(path)) => ExportFormat::of(path).map_err(Failure::usage)?,
        (None, None) => {
            let formats = export_formats();
            return Err(Failure::usage(format_args!(
                "no output named: name a file, such as --output trace.pftrace, or a format: --format {formats}"
            )));
        }
    };
    match (format.binary(), file) {
        (Some(ending), None) if std::io::stdout().is_terminal() => Err(Failure::usage(format_args!(
            "{} is a binary format, not for a terminal: write it to a file with --output trace{ending}, or pipe it",
            format.name()
        ))),
        _ => Ok(format),
    }
}

/// Scripts take any line for a stack, and pprof a file without one for a broken one: there is nothing to write.
fn stacks(timeline: &Timeline) -> Result<(), Failure> {
    let samples = &timeline.samples;
    if samples.is_empty() {
        return Err(Failure::error("nothing to write: no stacks were sampled; record without --no-stacks"));
    }
    if !(0..samples.len()).any(|index| samples.get(index).active) {
        return Err(Failure::error("nothing to write: no thread was running in any stack sample"));
    }
    Ok(())
}

/// A trace is Parquet tables already: they are copied into a folder of their own, one file each.
fn tables(settings: &Settings, trace: &Path, folder: Option<&Path>) -> Result<Ending, Failure> {
    let Some(folder) = folder else {
        return Err(Failure::usage("Parquet tables are written to a folder: name it with --output DIR"));
    };
    if !trace.is_dir() {
        return Err(Failure::bad_input(format_args!(
            "only a trace folder that InferScope recorded has Parquet tables, and {} is a file: choose another --format",
            trace.display()
        )));
    }
    // Copied onto themselves, the tables would be lost.
    if folder.canonicalize().is_ok_and(|folder| trace.canonicalize().is_ok_and(|trace| trace == folder)) {
        return Err(Failure::usage(format_args!("{} is the trace itself: choose another folder", folder.display())));
    }
    let failed = |error: std::io::Error| Failure::writing(folder.display(), &error);
    let unread = |error| Failure::error(format_args!("cannot read {}: {error}", trace.display()));
    let names =
        std::fs::read_dir(trace).map_err(unread)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let found = trace::tables::current_files(names.filter_map(|name| trace::tables::parse_file_name(&name)).collect());
    if found.is_empty() {
        let text =
            format!("{} has no Parquet tables: it is not a trace folder that InferScope recorded", trace.display());
        return Err(Failure::bad_input(text));
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut written = 0;
    for (table, first, last) in &found {
        let name = trace::tables::file_name(*table, *first, *last);
        // Whoever made the folder may have put anything there; the notes have said what of it cannot be read.
        let mut table = match sound(&trace.join(&name)) {
            Ok(table) => table,
            Err(why) => {
                settings.say(format_args!("skipped {name}: {why}"));
                continue;
            }
        };
        // Not with the rights of the trace, which is private: what was asked for is as any other file.
        let copied = File::create(folder.join(&name)).and_then(|mut copy| std::io::copy(&mut table, &mut copy));
        copied.map_err(failed)?;
        written += 1;
    }
    settings.say(format_args!("wrote {written} tables to {}", folder.display()));
    Ok(Ending::FINE)
}

/// A table that can be read, and is as large as it says.
fn sound(path: &Path) -> Result<File, String> {
    timeline::check_table(path)?;
    plain_file::open_inside(path).map_err(|error| error.to_string())
}
