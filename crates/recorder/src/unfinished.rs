//! A trace whose recorder was killed: finds it, and decides where it may be completed. In its own folder only if this user
//! recorded it on this machine since this boot and nobody else can have touched it; everything else is completed in a private
//! copy. Everything goes through one descriptor of the folder, and no link in it is followed.

use crate::file_names::{RESCUED, SEGMENTS};
use crate::lock::{Lock, Refused};
use crate::manifest::{Manifest, State};
use crate::outcome::{Error, Recovered};
use crate::ownership::{self, Found};
use crate::proc;
use crate::recover;
use crate::trace_copy::{TraceCopy, file_name_of, tables};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trace::tables::{FORMAT_VERSION, LOCK};

pub struct Unfinished {
    shown: PathBuf,
    folder: File,
    manifest: Manifest,
    segments: Option<PathBuf>,
    /// Where it is completed instead, and why.
    copy: Option<(TraceCopy, String)>,
    /// Tables that are left out of the copy.
    damaged: Vec<PathBuf>,
}

/// What came of it.
pub struct Completed {
    pub recovered: Recovered,
    /// The completed trace, if it is not the trace itself. It goes when this is dropped.
    pub copy: Option<TraceCopy>,
}

impl Unfinished {
    /// None: there is nothing to complete, or its recorder still lives. Changes nothing in the trace. `sound` says of each
    /// table whether it can be read without harm.
    pub fn find(trace: &Path, sound: impl Fn(&Path) -> bool) -> Result<Option<Unfinished>, Error> {
        let not_a_trace = |error: io::Error| Error::NotATrace { path: trace.to_owned(), why: error.to_string() };
        let as_it_is = |why: String| Error::AsItIs { path: trace.to_owned(), why };
        let folder = File::options().read(true).custom_flags(libc::O_DIRECTORY).open(trace).map_err(not_a_trace)?;
        let here = through(&folder);
        let manifest = Manifest::read(&here).map_err(not_a_trace)?;
        if manifest.state != State::Recording || manifest.format_version > FORMAT_VERSION {
            return Ok(None);
        }
        match is_recorded(&here.join(LOCK)) {
            Ok(false) => {}
            Ok(true) => return Ok(None),
            Err(error) => {
                return Err(as_it_is(format!("it is unknown whether it is still being recorded ({LOCK}: {error})")));
            }
        }
        let own = ownership::of_trace(&folder, &here, &manifest);
        let (segments, own) = match ownership::segments(&folder, &here, &manifest) {
            Found::At(path, safe) => (Some(path), own.and(safe)),
            Found::Nowhere => (None, own),
            Found::Refused(why) => return Err(as_it_is(own.err().unwrap_or(why))),
        };
        let rescued = segments.as_ref().map(|segments| segments.join(RESCUED));
        let all = [Some(here.clone()), rescued].into_iter().flatten();
        let all = all.flat_map(|folder| tables(&folder).into_iter().map(move |name| folder.join(name)));
        let damaged: Vec<PathBuf> = all.filter(|table| !sound(table)).collect();
        let damage = damaged.first().map_or(Ok(()), |table| Err(format!("{} is damaged", file_name_of(table))));
        let foreign = own.and(damage).err();
        let copy = match foreign {
            None => None,
            // What is on disk is read without that.
            Some(why) if segments.is_none() => return Err(as_it_is(why)),
            Some(why) => {
                let made = TraceCopy::new();
                Some((made.map_err(|error| as_it_is(format!("{why}, and there is no room for a copy: {error}")))?, why))
            }
        };
        Ok(Some(Unfinished { shown: trace.to_owned(), folder, manifest, segments, copy, damaged }))
    }

    /// The folders that completing it reads.
    pub fn reads(&self) -> Vec<PathBuf> {
        self.segments.iter().cloned().collect()
    }

    /// The folders that completing it writes to.
    pub fn writes(&self) -> Vec<PathBuf> {
        match &self.copy {
            Some((copy, _)) => vec![copy.path().to_owned()],
            None => [through(&self.folder)].into_iter().chain(self.segments.clone()).collect(),
        }
    }

    /// The folders in which a folder goes when it is done.
    pub fn empties(&self) -> Vec<PathBuf> {
        let gone = match &self.copy {
            Some((copy, _)) => copy.path(),
            None => self.segments.as_deref().unwrap_or(Path::new("")),
        };
        gone.parent().map(Path::to_owned).into_iter().collect()
    }

    /// None: somebody else is doing it just now.
    pub fn complete(self) -> Result<Option<Completed>, Error> {
        let shown = self.shown.clone();
        self.complete_there().map_err(|error| error.about(&shown))
    }

    fn complete_there(self) -> Result<Option<Completed>, Error> {
        let here = through(&self.folder);
        let segments = self.segments.unwrap_or_else(|| here.join(SEGMENTS));
        let Some((copy, why)) = self.copy else {
            let lock = match Lock::take(&here.join(LOCK)) {
                Ok(lock) => lock,
                Err(Refused::Held(_)) => return Ok(None),
                Err(Refused::Io(error)) => return Err(recover::unwritable(&here, error)),
            };
            let recovered = recover::complete(&here, &segments, lock)?;
            return Ok(recovered.map(|recovered| Completed { recovered, copy: None }));
        };
        let failed = |error: io::Error| Error::AsItIs {
            path: here.clone(),
            why: format!("{why}, and it could not be copied: {error}"),
        };
        copy.fill(&here, &segments, self.manifest, &self.damaged, &why).map_err(failed)?;
        let lock = Lock::take(&copy.path().join(LOCK)).map_err(|refused| match refused {
            Refused::Io(error) => failed(error),
            Refused::Held(_) => failed(io::ErrorKind::WouldBlock.into()),
        })?;
        let recovered = recover::complete(copy.path(), &copy.path().join(SEGMENTS), lock)?;
        Ok(recovered.map(|recovered| Completed { recovered, copy: Some(copy) }))
    }
}

/// Longest wait for a recorder that was killed to be gone: the kernel takes milliseconds, on a loaded machine more.
const DYING: Duration = Duration::from_secs(5);

/// Whether somebody holds the lock and will go on recording. One that was killed holds it until its last thread is gone.
fn is_recorded(lock: &Path) -> io::Result<bool> {
    let end = Instant::now() + DYING;
    while Lock::is_held(lock)? {
        if Lock::holder(lock).is_some_and(proc::goes_on) || Instant::now() >= end {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(false)
}

/// A path that leads to this very folder, whoever renames what above it.
fn through(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}
