//! Finds and opens the trace that a command was given: the newest one if none was named, completed first if its recorder
//! was killed.

use crate::config::Settings;
use crate::failure::Failure;
use crate::terminal::Progress;
use std::panic::{catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::time::Instant;
use timeline::Timeline;
use trace::tables::{LOCK, MANIFEST};

pub fn open(settings: &Settings, given: Option<&Path>) -> Result<Timeline, Failure> {
    named(settings, given).map(|(_, timeline)| timeline)
}

/// The timeline, and where it came from.
pub fn named(settings: &Settings, given: Option<&Path>) -> Result<(PathBuf, Timeline), Failure> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => newest(Path::new(recorder::TRACES))?,
    };
    if given.is_none() {
        settings.say(format_args!("opening {}", path.display()));
    }
    crate::memory::keep_what_is_freed();
    recover(settings, &path);
    let timeline = read(settings, &path)?;
    Ok((path, timeline))
}

pub fn read(settings: &Settings, path: &Path) -> Result<Timeline, Failure> {
    let before = Instant::now();
    let mut progress = Progress::new("reading the trace");
    let timeline = timeline::open_with(path, &mut |done, total| {
        progress.at(|| format!("{} %", done.saturating_mul(100).checked_div(total).unwrap_or(100)));
    })?;
    drop(progress);
    settings.debug(|| {
        let (slices, samples) = (timeline.slices.len(), timeline.samples.len());
        format!("read {slices} slices and {samples} samples in {:?}", before.elapsed())
    });
    Ok(timeline)
}

/// Their names begin with date and time (`20261115-093012-`); within a second the lock tells, which is made at the start.
fn newest(folder: &Path) -> Result<PathBuf, Failure> {
    let age = |path: &PathBuf| {
        let second = path.file_name().and_then(|name| Some(name.to_str()?.get(..15)?.to_owned()));
        let lock = path.join(LOCK).metadata().and_then(|lock| lock.modified()).ok();
        (second, lock, path.clone())
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.join(MANIFEST).is_file()).max_by_key(age).ok_or_else(|| {
        let text =
            "there is no trace in ./inferscope-traces: name one, or record one with `inferscope run -- <command>`";
        Failure::bad_input(text)
    })
}

/// Saves what a killed recorder left in shared memory. If that fails the trace is still read as it is.
fn recover(settings: &Settings, path: &Path) {
    if !path.join(MANIFEST).is_file() {
        return;
    }
    // A damaged trace may make no sense to the recorder either; that must not keep us from reading what does.
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let recovered = catch_unwind(|| recorder::recover(path));
    set_hook(hook);
    match recovered {
        Ok(Ok(Some(recovered))) => {
            let records = report::count(recovered.records);
            settings
                .say(format_args!("the recorder of this trace was killed; {records} records saved from shared memory"));
        }
        Ok(Ok(None)) | Ok(Err(recorder::Error::NotATrace { .. })) => {}
        Ok(Err(error)) => settings.say(error),
        Err(_) => settings.say("this trace is damaged and could not be completed; reading what is there"),
    }
}
