//! Finds and opens the traces that a command was given: the newest one if none was named, completed first if its recorder
//! was killed. Before anything of them is read, the command gives up what it does not need for that.

use crate::config::Settings;
use crate::confine::{Needs, Output};
use crate::failure::Failure;
use crate::memory;
use crate::newest;
use crate::terminal::Progress;
use analysis::phrase;
use recorder::{Completed, TraceCopy, Unfinished};
use std::panic::{catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::time::Instant;
use timeline::Timeline;
use trace::tables::MANIFEST;

/// A trace that is about to be read.
pub struct Source {
    pub path: PathBuf,
    unfinished: Option<Unfinished>,
    copy: Option<TraceCopy>,
}

/// The traces of a command that only reads: it can do nothing else from here on.
pub fn confined<const N: usize>(
    settings: &Settings,
    given: [Option<&Path>; N],
    output: Output<'_>,
) -> Result<[Source; N], Failure> {
    let mut sources = Vec::new();
    for given in given {
        sources.push(Source::find(settings, given)?);
    }
    let mut needs = Needs::default();
    needs.output(output);
    for source in &sources {
        // `TRACE/rank-3` is no file.
        let there = source.path.ancestors().find(|path| path.exists()).unwrap_or(&source.path);
        needs.read(there);
        source.unfinished.iter().for_each(|unfinished| needs.complete(unfinished));
    }
    memory::limit(settings.max_memory);
    let confined = needs.confine();
    settings.debug(|| format!("confined by Landlock: {confined}"));
    sources.try_into().map_err(|_| Failure::error("a trace was lost on the way"))
}

/// A trace for a command that does other things, too.
pub fn open(settings: &Settings, path: &Path) -> Result<Timeline, Failure> {
    Source::find(settings, Some(path))?.read(settings)
}

impl Source {
    fn find(settings: &Settings, given: Option<&Path>) -> Result<Source, Failure> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => newest::find(settings)?,
        };
        if given.is_none() {
            settings.say(format_args!("opening {}", path.display()));
        }
        let mut source = Source { path, unfinished: None, copy: None };
        if source.path.join(MANIFEST).is_file() {
            source.unfinished =
                settle(settings, || Unfinished::find(&source.path, |table| timeline::check_table(table).is_ok()));
        }
        Ok(source)
    }

    /// Completes it first, if there is anything to complete.
    pub fn read(&mut self, settings: &Settings) -> Result<Timeline, Failure> {
        memory::keep_what_is_freed();
        if let Some(unfinished) = self.unfinished.take() {
            self.complete(settings, unfinished);
        }
        read(settings, self.folder())
    }

    /// Where the tables are that were read.
    pub fn folder(&self) -> &Path {
        self.copy.as_ref().map_or(&self.path, TraceCopy::path)
    }

    /// Saves what a killed recorder left in shared memory. If that fails the trace is still read as it is.
    fn complete(&mut self, settings: &Settings, unfinished: Unfinished) {
        let Some(Completed { recovered, copy }) = settle(settings, || unfinished.complete()) else { return };
        let (records, place) =
            (report::count(recovered.records), if copy.is_some() { ", in a copy: the trace is unchanged" } else { "" });
        settings.say(format_args!(
            "the recorder of this trace was killed; {records} records recovered from shared memory{place}"
        ));
        self.copy = copy;
    }
}

/// A damaged trace may make no sense to the recorder; that must not keep us from reading what does.
fn settle<T>(settings: &Settings, step: impl FnOnce() -> Result<Option<T>, recorder::Error>) -> Option<T> {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let done = catch_unwind(std::panic::AssertUnwindSafe(step));
    set_hook(hook);
    match done {
        Ok(Ok(done)) => return done,
        Ok(Err(recorder::Error::NotATrace { .. })) => {}
        Ok(Err(error)) => settings.say(error),
        Err(_) => settings.say("this trace is damaged and cannot be completed; reading what is there"),
    }
    None
}

pub fn read(settings: &Settings, path: &Path) -> Result<Timeline, Failure> {
    let before = Instant::now();
    let mut progress = Progress::new("reading the trace");
    let timeline = timeline::open_with(path, settings.limits, &mut |done, total| {
        progress.at(|| format!("{} %", done.saturating_mul(100).checked_div(total).unwrap_or(100)));
    })?;
    drop(progress);
    settings.debug(|| {
        let (slices, samples) = (timeline.slices.len(), timeline.samples.len());
        format!(
            "read {slices} slices and {samples} samples in {}",
            phrase::duration(before.elapsed().as_nanos() as u64)
        )
    });
    Ok(timeline)
}
