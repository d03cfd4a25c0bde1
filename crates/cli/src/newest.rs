//! The newest trace, where none was named: of those in `./inferscope-traces`, or the one elsewhere that a run left the path of
//! there. Anybody may have written such a path: it is followed only where it is this user's own and leads to a trace of theirs.

use crate::config::Settings;
use crate::failure::Failure;
use recorder::{POINTER, TRACES};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use trace::plain_file;
use trace::tables::{LOCK, MANIFEST};

/// As long as a path can be.
const LONGEST: u64 = 4096;

pub fn find(settings: &Settings) -> Result<PathBuf, Failure> {
    let folder = Path::new(TRACES);
    let listed = listed(folder);
    let before = listed.as_ref().and_then(|trace| began(trace));
    match elsewhere(&folder.join(POINTER)) {
        Ok(Some((trace, written))) if before.is_none_or(|before| before <= written) => match is_trace(&trace) {
            true => return Ok(relative(trace)),
            false => settings.say(format_args!("the newest run was recorded to {}, which is gone", trace.display())),
        },
        Ok(_) => {}
        Err(why) => settings.say(format_args!("{TRACES}/{POINTER} is ignored: {why}")),
    }
    listed.ok_or_else(|| {
        let other = beside().map_or(String::new(), |trace| format!(" (the newest nearby is {})", trace.display()));
        Failure::bad_input(format_args!(
            "no trace in ./{TRACES}: pass the folder that was given to `run --output`{other}, or record one with `inferscope run -- <command>`"
        ))
    })
}

/// Their names begin with date and time (`20261115-093012-`); within a second the lock tells, which is made at the start.
fn listed(folder: &Path) -> Option<PathBuf> {
    let age = |path: &PathBuf| {
        let second = path.file_name().and_then(|name| Some(name.to_str()?.get(..15)?.to_owned()));
        (second, began(path), path.clone())
    };
    traces_in(folder).max_by_key(age)
}

fn traces_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_trace(path))
}

/// The bundle of a program that died of memory lies beside its trace, and has a manifest, too.
fn is_trace(path: &Path) -> bool {
    path.join(MANIFEST).is_file() && !telemetry::bundle::is_bundle(path)
}

fn began(trace: &Path) -> Option<SystemTime> {
    trace.join(LOCK).metadata().and_then(|lock| lock.modified()).ok()
}

/// The path that was left, and when. None: there is none.
fn elsewhere(pointer: &Path) -> Result<Option<(PathBuf, SystemTime)>, String> {
    if pointer.symlink_metadata().is_err() {
        return Ok(None);
    }
    let file = plain_file::open_inside(pointer).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    if metadata.uid() != user {
        return Err(format!("it belongs to another user (uid {})", metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err("others may write to it".into());
    }
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let trace = Path::new(OsStr::from_bytes(&bytes));
    if bytes.len() as u64 > LONGEST || bytes.contains(&0) || !trace.is_absolute() {
        return Err("it is not the path of a trace".into());
    }
    if let Ok(target) = trace.metadata()
        && target.uid() != user
    {
        return Err(format!("the trace {} belongs to another user (uid {})", trace.display(), target.uid()));
    }
    let written = metadata.modified().map_err(|error| error.to_string())?;
    Ok(Some((trace.to_owned(), written)))
}

/// As the user would write it.
fn relative(trace: PathBuf) -> PathBuf {
    let here = std::env::current_dir().ok();
    here.and_then(|here| trace.strip_prefix(here).ok().map(Path::to_owned)).unwrap_or(trace)
}

/// A trace in this folder: it may be the one that was meant, but nobody said so.
fn beside() -> Option<PathBuf> {
    traces_in(Path::new(".")).max_by_key(|trace| began(trace)).map(relative_to_here)
}

fn relative_to_here(trace: PathBuf) -> PathBuf {
    trace.strip_prefix(".").map(Path::to_owned).unwrap_or(trace)
}
