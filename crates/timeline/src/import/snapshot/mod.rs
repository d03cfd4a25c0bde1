//! Reads a memory snapshot of PyTorch (`torch.cuda.memory._dump_snapshot`): a pickle of every protocol, read as plain data, without executing
//! anything in it. Files of all ages, of any size, and the beginning of one that was cut.

mod heap;
mod input;
mod load;
mod memo;
mod pickle;
mod records;
mod settings;
mod text;
mod value;
mod words;

use crate::finish::{RowOrder, Rows};
use crate::{OpenError, RecordedBy, State, Timeline};
use input::{Input, Stop};
use load::Loader;
use pickle::Pickle;
use std::io::Read;
use std::path::Path;
use trace::plain_file;

/// What reading may take, as a multiple of the file, and for small ones.
const TIMES_FILE: u64 = 3;
const AT_LEAST: u64 = 64 << 20;

/// Whether it is a pickle, by its first bytes: the mark of protocols 2 to 5, or a dictionary or list of the older ones.
pub fn is(path: &Path) -> bool {
    let mut first = [0; 3];
    let read = plain_file::open_named(path).and_then(|file| file.take(3).read(&mut first));
    matches!((read, first), (Ok(2..), [0x80, 0..=5, _] | [b'(', b'd' | b'l', _] | [b'}' | b']', b'q' | b'(' | b'.', _]))
}

pub fn read(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Timeline, OpenError> {
    let unreadable = |source| OpenError::Unreadable { path: path.into(), source };
    let file = plain_file::open_named(path).map_err(unreadable)?;
    let total = file.metadata().map_err(unreadable)?.len();
    let input = Input::new(file, total, progress);
    let mut pickle = Pickle::new(input, total.saturating_mul(TIMES_FILE).saturating_add(AT_LEAST));
    let (top, stop) = match pickle.read() {
        Ok(top) => (Ok(top), None),
        Err(Stop::Input(source)) => return Err(unreadable(source)),
        Err(stop @ (Stop::Cut | Stop::Damaged(_))) => (pickle.close(), Some(stop)),
        Err(stop) => (Err(Stop::Cut), Some(stop)),
    };
    let place = pickle.input.offset();
    let refused = |stop: Option<Stop>| OpenError::NotATrace { path: path.into(), why: why(stop, place) };
    let Ok(top) = top else { return Err(refused(stop)) };
    let mut loader = Loader::new(&pickle.heap, pickle.records);
    if let Err(what) = loader.take(top) {
        return Err(match stop {
            Some(stop) => refused(Some(stop)),
            None => {
                let looks_like = format!("a Python pickle, but no memory snapshot of PyTorch ({what})");
                OpenError::Foreign { path: path.into(), looks_like }
            }
        });
    }
    let (records, mut notes, events) = loader.finish();
    if stop.is_some() && records.builder.timeline.memory.is_empty() {
        return Err(refused(stop));
    }
    if stop.is_some() {
        let kept = format!("{events} events before that were read, the rest is missing");
        notes.push(format!("The file {} at byte {place}: {kept}.", ends(stop.as_ref())));
        if events > 0 {
            notes.push("Peaks count blocks of the events that were read, not what was there before them.".into());
        }
    }
    let mut records = records;
    records.builder.timeline.memory.cut = stop.is_some();
    let mut timeline =
        crate::finish::finish(Rows { order: RowOrder::OuterFirst, notes, ..records.builder.into_rows() });
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let info = &mut timeline.info;
    info.recorded_by = RecordedBy::Snapshot;
    info.command = format!("PyTorch memory snapshot: {name}");
    info.state = if stop.is_some() { State::Cut { events: Some(events) } } else { State::Complete };
    info.created_unix_ns = if timeline.memory.ordered_only { 0 } else { timeline.start };
    Ok(timeline)
}

fn ends(stop: Option<&Stop>) -> String {
    match stop {
        Some(Stop::Damaged(what)) => format!("is damaged ({what})"),
        _ => "ends too early".into(),
    }
}

fn why(stop: Option<Stop>, place: u64) -> String {
    match stop {
        Some(Stop::Code(what)) => format!(
            "it is a Python pickle that would {what} (byte {place}). A memory snapshot is plain data, and nothing in a pickle is executed here"
        ),
        Some(Stop::TooMuch) => "it is a Python pickle with more values than a memory snapshot of its size has".into(),
        stop => {
            format!("it is a Python pickle that {} at byte {place}, before any segment or event", ends(stop.as_ref()))
        }
    }
}
