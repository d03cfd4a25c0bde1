//! Reads what `nsys export --type sqlite` makes of a report of Nsight Systems: API calls, device work, NVTX ranges and calls of
//! the operating system. Tables may be missing: what was not recorded has none.

mod database;
mod load;
mod nvtx;
mod places;
mod work;

use crate::{Builder, OpenError, RecordedBy, State, Timeline};
use database::Database;
use load::Loader;
use std::io::Read;
use std::path::Path;
use trace::plain_file;

const MAGIC: &[u8] = b"SQLite format 3\0";

/// Is it an SQLite file?
pub fn is(path: &Path) -> bool {
    let mut first = [0; MAGIC.len()];
    plain_file::open_named(path).and_then(|mut file| file.read_exact(&mut first)).is_ok_and(|()| first == MAGIC)
}

pub fn read(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Timeline, OpenError> {
    let damaged = |error: rusqlite::Error| OpenError::NotATrace {
        path: path.into(),
        why: format!(
            "it is an SQLite file that cannot be read ({error}); export it again with `nsys export --type sqlite`"
        ),
    };
    let database = Database::open(path).map_err(damaged)?;
    let ours =
        |name: &&String| name.starts_with("CUPTI_ACTIVITY_KIND_") || *name == "NVTX_EVENTS" || *name == "OSRT_API";
    if database.tables.keys().find(ours).is_none() {
        let some: Vec<&str> = database.tables.keys().map(String::as_str).take(5).collect();
        let looks_like = match some.len() {
            0 => "an SQLite file without tables".to_owned(),
            _ => format!("an SQLite file, but not of Nsight Systems (it has {})", some.join(", ")),
        };
        return Err(OpenError::Foreign { path: path.into(), looks_like });
    }
    let mut loader = Loader::new(&database, Builder::default());
    loader.read(progress);
    let mut timeline = loader.finish();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let info = &mut timeline.info;
    info.recorded_by = RecordedBy::Nsight;
    info.command = format!("{}: {name}", info.recorded_by);
    info.state = State::Complete;
    Ok(timeline)
}
