//! Reads what torch.profiler (Kineto) writes: a trace in Chrome's JSON format, plain or gzip, or a folder with the file of each
//! rank. One event is in memory at a time; a broken one costs itself, and a file that ends early opens up to there.

mod about;
mod args;
mod copies;
mod document;
mod event;
mod join;
mod load;
mod names;
mod ranks;
mod warnings;
mod work;

use super::json::places::Places;
use super::json::scan::Stop;
use super::json::{cut_note, place, source, what};
use crate::finish::{RowOrder, Rows};
use crate::{Builder, Limits, OpenError, RecordedBy, State, Timeline};
use document::Document;
use join::Joined;
use load::Loader;
pub use ranks::{files, read_folder};
use std::fs::File;
use std::io;
use std::path::Path;
use trace::plain_file;

pub fn read(path: &Path, limits: Limits, progress: &mut dyn FnMut(u64, u64)) -> Result<Timeline, OpenError> {
    let mut builder = Builder::default();
    let file = take(path, plain_file::open_named(path), &mut builder, 0, limits, progress)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let events = Some(file.events);
    Ok(finish(builder, file, name, events))
}

/// Reads one file into the builder; its number tells it from the others.
fn take(
    path: &Path,
    file: io::Result<File>,
    builder: &mut Builder,
    number: u32,
    limits: Limits,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Joined, OpenError> {
    let unreadable = |source| OpenError::Unreadable { path: path.into(), source };
    let source = source::open(file.map_err(unreadable)?, limits.unpacked, progress).map_err(unreadable)?;
    let packed = source.packed;
    let mut document = Document::new(source.input, Loader::new(builder, number));
    let stop = document.walk().err();
    if stop.as_ref().is_some_and(Stop::is_too_large) {
        return Err(OpenError::TooLarge { path: path.into(), most: limits.unpacked });
    }
    let place = place(packed, document.scan.offset);
    let loader = document.loader;
    if !document.has_events {
        let why = stop
            .map_or("it has no traceEvents".into(), |stop| format!("it {} at {place}, before any event", what(&stop)));
        return Err(OpenError::NotATrace { path: path.into(), why });
    }
    if let Some(strange) = loader.warnings.strange().filter(|_| loader.known == 0) {
        let looks_like = format!("a trace in Chrome's format, but not of torch.profiler ({strange})");
        return Err(OpenError::Foreign { path: path.into(), looks_like });
    }
    let mut joined = loader.finish(document.about);
    if let Some(stop) = stop {
        joined.notes.push(cut_note(&stop, &place, joined.events));
        joined.whole = false;
    } else if joined.events == 0 {
        joined.notes.push("The file holds no events.".into());
    }
    Ok(joined)
}

/// `events` is what was read of the only file.
fn finish(mut builder: Builder, file: Joined, name: String, events: Option<u64>) -> Timeline {
    Places::default().arrange(&mut builder);
    let rows = Rows { order: RowOrder::OuterFirst, notes: file.notes, ..builder.into_rows() };
    let mut timeline = crate::finish::finish(rows);
    let info = &mut timeline.info;
    info.recorded_by = RecordedBy::Kineto;
    info.command = format!("{}: {name}", info.recorded_by);
    info.software = file.software;
    info.state = if file.whole { State::Complete } else { State::Cut { events } };
    info.created_unix_ns = if file.absolute { timeline.start } else { 0 };
    timeline
}
