//! `inferscope export`: writes every event of a trace for another tool.

use crate::args::{Export, Format};
use crate::config::Settings;
use crate::confine::Output;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{open, output};
use report::exports::collapsed;
use std::fs::File;
use std::path::Path;
use timeline::Timeline;
use trace::plain_file;

pub fn run(settings: &Settings, export: &Export) -> Result<Ending, Failure> {
    let file = output::file(export.output.as_deref());
    let written = match (file, export.format) {
        (None, _) => Output::None,
        (Some(folder), Format::Parquet) => Output::Folder(folder),
        (Some(file), _) => Output::File(file),
    };
    let [mut source] = open::confined(settings, [export.trace.as_deref()], written)?;
    let timeline = source.read(settings)?;
    timeline.notes.iter().for_each(|note| settings.say(note.said()));
    if export.format == Format::Parquet {
        return tables(settings, source.folder(), file);
    }
    match export.format {
        Format::Collapsed => stacks(&timeline)?,
        Format::Pprof if timeline.samples.is_empty() => stacks(&timeline)?,
        _ => {}
    }
    output::write_to(file, |mut out| match export.format {
        Format::Chrome => report::exports::chrome::write(&timeline, &mut out),
        Format::Json => report::exports::json::write(&timeline, &mut out),
        Format::Perfetto => report::exports::perfetto::write(&timeline, &mut out),
        Format::Speedscope => report::exports::speedscope::write(&timeline, &mut out),
        Format::Collapsed => collapsed::write(&timeline, collapsed::Options { idle: false, lines: false }, &mut out),
        Format::Pprof => report::exports::pprof::write(&timeline, &mut out),
        Format::Parquet => Ok(()),
    })?;
    if let Some(path) = file {
        settings.say(format_args!("wrote {}", path.display()));
    }
    Ok(Ending::FINE)
}

/// Scripts take any line for a stack, and pprof a file without one for a broken one: there is nothing to write.
fn stacks(timeline: &Timeline) -> Result<(), Failure> {
    let samples = &timeline.samples;
    if samples.is_empty() {
        return Err(Failure::error("nothing to write: no stack was sampled"));
    }
    if !(0..samples.len()).any(|index| samples.get(index).active) {
        return Err(Failure::error("nothing to write: no thread was seen running when stacks were sampled"));
    }
    Ok(())
}

/// A trace is Parquet tables already: they are copied into a folder of their own, one file each.
fn tables(settings: &Settings, trace: &Path, folder: Option<&Path>) -> Result<Ending, Failure> {
    let Some(folder) = folder else {
        return Err(Failure::usage("Parquet tables are files: name a folder for them with --output DIR"));
    };
    if !trace.is_dir() {
        return Err(Failure::bad_input(format_args!(
            "Parquet export needs the folder of a trace that InferScope recorded, and {} is a file: choose another --format",
            trace.display()
        )));
    }
    // Copied onto themselves, the tables would be lost.
    if folder.canonicalize().is_ok_and(|folder| trace.canonicalize().is_ok_and(|trace| trace == folder)) {
        return Err(Failure::usage(format_args!("{} is the trace itself: name another folder", folder.display())));
    }
    let failed = |error: std::io::Error| Failure::writing(folder.display(), &error);
    let unread = |error| Failure::error(format_args!("cannot read {}: {error}", trace.display()));
    let names =
        std::fs::read_dir(trace).map_err(unread)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let found = trace::tables::current_files(names.filter_map(|name| trace::tables::parse_file_name(&name)).collect());
    if found.is_empty() {
        let text = format!("{} holds no Parquet tables: only a recorded trace's folder does", trace.display());
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
                settings.say(format_args!("{name} is left out: {why}"));
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
