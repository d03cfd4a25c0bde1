//! Where results go: stdout, or a file that appears whole or not at all.

use crate::failure::Failure;
use crate::terminal::Progress;
use crate::unfinished::Unfinished;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const BUFFER: usize = 1 << 20;

/// The file that was named; None: stdout, which is also called `-`.
pub fn file(named: Option<&Path>) -> Option<&Path> {
    named.filter(|path| *path != Path::new("-"))
}

/// Calls `write` with stdout, or with a file that takes the place of `path` when all is written.
pub fn write_to(path: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let Some(path) = file(path) else {
        let mut out = Counted::new(io::stdout().lock(), "writing");
        let written = wanted(write(&mut out).and_then(|()| out.flush()));
        return written.map_err(|error| Failure::writing("the result", &error));
    };
    to_file(path, Rights::Usual, write).map_err(|error| Failure::writing(path.display(), &error))
}

/// Who may read a file that is written.
#[derive(Clone, Copy)]
pub enum Rights {
    /// As the umask says: somebody asked for the file by its name.
    Usual,
    /// This user alone: it is part of a trace.
    Private,
}

impl Rights {
    fn create(self, path: &Path) -> io::Result<File> {
        let mode = match self {
            Rights::Usual => 0o666,
            Rights::Private => 0o600,
        };
        // Its name can be guessed, and the folder may be everybody's: what is there already is not written to.
        File::options().write(true).create_new(true).mode(mode).open(path)
    }
}

pub fn to_file(path: &Path, rights: Rights, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // A device or a pipe is written to as it is; only a file can be replaced.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let mut out = Counted::new(File::options().write(true).open(path)?, "writing");
        return wanted(write(&mut out).and_then(|()| out.flush()));
    }
    // A link is followed: what it points to is replaced, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let unfinished = Unfinished::at(beside(&target)?);
    let mut out = Counted::new(rights.create(unfinished.path())?, "writing");
    write(&mut out)?;
    out.flush()?;
    std::fs::rename(unfinished.path(), &target)
}

/// Whether `to_file` could write there, as things stand. Leaves nothing behind.
pub fn check(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => Ok(()),
        _ => {
            let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let unfinished = Unfinished::at(beside(&target)?);
            Rights::Usual.create(unfinished.path()).map(drop)
        }
    }
}

/// A reader who has left is no error: nobody wants the rest. What was found still decides how the command ends.
fn wanted(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// A name in the same folder, so that the rename stays on one disk.
fn beside(path: &Path) -> io::Result<PathBuf> {
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not a file name"))?;
    let mut unfinished = std::ffi::OsString::from(".");
    unfinished.push(name);
    unfinished.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(unfinished))
}

/// Buffers, and shows how much has been written.
struct Counted<W: Write> {
    inner: BufWriter<W>,
    written: u64,
    progress: Progress,
}

impl<W: Write> Counted<W> {
    fn new(inner: W, what: &'static str) -> Counted<W> {
        Counted { inner: BufWriter::with_capacity(BUFFER, inner), written: 0, progress: Progress::new(what) }
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        let before = self.written / BUFFER as u64;
        self.written += count as u64;
        if self.written / BUFFER as u64 > before {
            self.progress.at(|| report::bytes(self.written));
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
