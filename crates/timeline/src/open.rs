//! `open`: a path in, a [`Timeline`] out, or one clear reason why not. What the path is decides who reads it: our own trace,
//! InferScope JSON, or a file of another tool, each in `import`.

use crate::import::{inferscope_json, kineto, known, native, nsys, snapshot};
use crate::open_error::{Limits, OpenError};
use crate::timeline::Timeline;
use std::path::Path;

/// Opens a trace. What is broken in it is left out and named in [`Timeline::notes`]; the rest opens.
pub fn open(path: &Path) -> Result<Timeline, OpenError> {
    open_with(path, Limits::default(), &mut |_, _| {})
}

/// As [`open`]; `progress` is called now and then with the bytes read so far and the bytes to read.
pub fn open_with(path: &Path, limits: Limits, progress: &mut dyn FnMut(u64, u64)) -> Result<Timeline, OpenError> {
    if let Some((trace, rank)) = one_rank(path) {
        return native::read(trace, Some(rank), progress);
    }
    let metadata = std::fs::metadata(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => OpenError::Missing { path: path.into() },
        _ => OpenError::Unreadable { path: path.into(), source },
    })?;
    if metadata.is_dir() {
        return folder(path, limits, progress);
    }
    // A pipe or a device has no size and may never end.
    let why = match path.file_name().and_then(|name| name.to_str()) {
        Some(trace::tables::MANIFEST) => "give the folder that holds it",
        _ if metadata.is_file() => return file(path, limits, progress),
        _ => "it is neither a folder nor a plain file",
    };
    Err(OpenError::NotATrace { path: path.into(), why: why.into() })
}

/// `TRACE/rank-3`: one rank of a recording. There is no such file.
fn one_rank(path: &Path) -> Option<(&Path, u32)> {
    let rank = path.file_name()?.to_str()?.strip_prefix("rank-")?.parse().ok()?;
    let trace = path.parent().filter(|folder| folder.join(trace::tables::MANIFEST).is_file())?;
    (!path.exists()).then_some((trace, rank))
}

/// A trace of ours; a folder that is none, but has JSON in it, is of ranks.
fn folder(path: &Path, limits: Limits, progress: &mut dyn FnMut(u64, u64)) -> Result<Timeline, OpenError> {
    let read = native::read(path, None, progress);
    if matches!(read, Err(OpenError::NotATrace { .. })) && !path.join(trace::tables::MANIFEST).exists() {
        let files = kineto::files(path);
        if !files.is_empty() {
            return kineto::read_folder(path, &files, limits, progress);
        }
    }
    read
}

fn file(path: &Path, limits: Limits, progress: &mut dyn FnMut(u64, u64)) -> Result<Timeline, OpenError> {
    if nsys::is(path) {
        return nsys::read(path, progress);
    }
    if snapshot::is(path) {
        return snapshot::read(path, progress);
    }
    if let Some(looks_like) = known::looks_like(path) {
        return Err(OpenError::Foreign { path: path.into(), looks_like: looks_like.into() });
    }
    match inferscope_json::read(path, limits, progress)? {
        Some(timeline) => Ok(timeline),
        None => kineto::read(path, limits, progress),
    }
}
