//! Reads InferScope trace JSON 1.1 and 1.0, plain or gzip: `{"format_version":"1.1","events":[…]}`, `{"timeline":[…]}` or a bare list
//! of events. One event is in memory at a time; a broken one costs itself, and a file that ends early opens up to there.

mod about;
mod device;
mod document;
mod event;
mod foreign;
mod lists;
mod load;
mod scopes;
mod warnings;

use super::json::scan::Stop;
use super::json::{self, source, what};
use crate::{Limits, OpenError, Timeline};
use document::Document;
use foreign::Refused;
use std::path::Path;
use trace::plain_file;

/// The major number of the format that we read.
const FORMAT: u32 = 1;
/// The minor number of the first that has codes where the ones before have sentences and marks.
const FIRST_WITH_CODES: u64 = 1;

/// None: it is a trace in Chrome's format.
pub fn read(path: &Path, limits: Limits, progress: &mut dyn FnMut(u64, u64)) -> Result<Option<Timeline>, OpenError> {
    let unreadable = |source| OpenError::Unreadable { path: path.into(), source };
    let not_a_trace = |why: String| OpenError::NotATrace { path: path.into(), why };
    let file = plain_file::open_named(path).map_err(unreadable)?;
    let source = source::open(file, limits.unpacked, progress).map_err(unreadable)?;
    if source.empty {
        return Err(not_a_trace("the file is empty".into()));
    }
    let packed = source.packed;
    let mut document = Document::new(source.input);
    let end = document.walk();
    let offset = document.scan.offset;
    let place = json::place(packed, offset);
    let stop = match end {
        Ok(()) => None,
        Err(Refused::NotJson) => {
            let why = if packed { "it is gzip, but not of JSON" } else { "it is neither a folder nor JSON" };
            return Err(not_a_trace(why.into()));
        }
        Err(Refused::Chrome) => return Ok(None),
        Err(Refused::Other(looks_like)) => return Err(OpenError::Foreign { path: path.into(), looks_like }),
        Err(Refused::Newer(found)) => {
            return Err(OpenError::NewerVersion { path: path.into(), found, known: FORMAT });
        }
        Err(Refused::Stopped(stop)) if stop.is_too_large() => {
            return Err(OpenError::TooLarge { path: path.into(), most: limits.unpacked });
        }
        Err(Refused::Stopped(stop)) => Some(stop),
    };
    if !document.has_events {
        return Err(match stop {
            None => OpenError::Foreign { path: path.into(), looks_like: document.unlike() },
            Some(Stop::Input(source)) if !packed => unreadable(source),
            Some(stop) => not_a_trace(format!("it {} at {place}, before any event", what(&stop))),
        });
    }
    if let Some(looks_like) = document.nothing_known() {
        return Err(OpenError::Foreign { path: path.into(), looks_like });
    }
    let events = document.loader.all;
    Ok(Some(document.loader.finish(stop.map(|stop| json::cut_note(&stop, &place, events)))))
}
