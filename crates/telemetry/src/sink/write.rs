//! Writes a sink: file after file, and removes the oldest beyond what may be kept.

use super::encode::Encoder;
use super::file::Mapped;
use super::{EXTENSION, files};
use crate::event::Event;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Size of a file, in bytes.
    pub file_bytes: u64,
    /// Most files of the folder, and their bytes together; the oldest go first.
    pub files: usize,
    pub total_bytes: u64,
}

impl Default for Limits {
    /// Two million events or so; at ten a second, two days.
    fn default() -> Limits {
        Limits { file_bytes: 4 << 20, files: 16, total_bytes: 64 << 20 }
    }
}

/// Smaller files would be mostly definitions, larger ones make retention coarse.
const FILE_BYTES: std::ops::RangeInclusive<u64> = (256 << 10)..=(1 << 30);

/// To look takes a microsecond, which the first event of a round can wait for and not each of a burst.
const LOOK_EVERY: Duration = Duration::from_millis(1);

pub struct Sink {
    folder: PathBuf,
    session: String,
    limits: Limits,
    number: u32,
    file: Option<Mapped>,
    encoder: Encoder,
    buffer: Vec<u8>,
    /// Events that could not be written, and why the last of them could not.
    pub lost: u64,
    pub why_lost: Option<String>,
    /// Events that are in files.
    pub written: u64,
    /// Those of the file that is being written.
    in_file: u64,
    /// When it was last looked whether the file is still whole.
    pub(super) looked: Option<Instant>,
    /// Contexts and metadata that were too long to be kept, of the files that are closed.
    pub dropped_texts: u64,
}

impl Sink {
    /// The folder is made where it is missing. `session` becomes a part of the files' names.
    pub fn create(folder: &Path, session: &str, limits: Limits) -> io::Result<Sink> {
        std::fs::create_dir_all(folder)?;
        let file_bytes = limits.file_bytes.clamp(*FILE_BYTES.start(), *FILE_BYTES.end());
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
        let mut sink = Sink {
            folder: folder.to_owned(),
            session: session.chars().map(plain).take(100).collect(),
            limits: Limits { file_bytes, files: limits.files.max(1), ..limits },
            number: 0,
            file: None,
            encoder: Encoder::default(),
            buffer: Vec::with_capacity(512),
            lost: 0,
            why_lost: None,
            written: 0,
            in_file: 0,
            looked: None,
            dropped_texts: 0,
        };
        sink.next_file()?;
        Ok(sink)
    }

    /// Never fails: an event that finds no room on the disk is counted, and the next one tries again.
    pub fn append(&mut self, event: &Event) {
        match self.try_append(event) {
            Ok(()) => {
                self.written += 1;
                self.in_file += 1;
            }
            Err(error) => {
                self.lost += 1;
                self.why_lost = Some(error.to_string());
            }
        }
    }

    fn try_append(&mut self, event: &Event) -> io::Result<()> {
        self.leave_if_taken();
        for _ in 0..2 {
            self.buffer.clear();
            if self.file.is_some() {
                self.encoder.event(event, &mut self.buffer);
            }
            if let Some(file) = self.file.as_mut().filter(|file| file.has_room(self.buffer.len())) {
                file.append(&self.buffer);
                return Ok(());
            }
            self.next_file()?;
        }
        Err(io::Error::other("the event is larger than a file"))
    }

    /// A file that somebody else cut or removed has none of its events any more, or not all.
    fn leave_if_taken(&mut self) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now - looked < LOOK_EVERY) {
            return;
        }
        self.looked = Some(now);
        let Some((file, what)) = self.file.as_ref().and_then(|file| Some((file, file.taken()?))) else { return };
        self.why_lost = Some(format!("{} {what}", file.path().display()));
        self.lost += self.in_file;
        self.written -= self.in_file;
        (self.file, self.in_file) = (None, 0);
    }

    /// Events that are in no file keep the encoder from going on in one: each file begins anew.
    fn next_file(&mut self) -> io::Result<()> {
        (self.file, self.in_file) = (None, 0);
        self.dropped_texts += std::mem::take(&mut self.encoder).dropped_texts;
        self.retain();
        loop {
            self.number += 1;
            let path = self.folder.join(format!("{}-{:06}.{EXTENSION}", self.session, self.number));
            match Mapped::create(path, self.limits.file_bytes as usize) {
                Ok(file) => {
                    self.file = Some(file);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes room for one more file.
    fn retain(&self) {
        let Ok(found) = files(&self.folder) else { return };
        let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let mut total: u64 = found.iter().map(size).sum();
        let room = self.limits.total_bytes.saturating_sub(self.limits.file_bytes);
        for (older, path) in found.iter().enumerate() {
            let left = found.len() - older;
            if left < self.limits.files && total <= room {
                return;
            }
            total -= size(path);
            let _ = std::fs::remove_file(path);
        }
    }

    /// The file that is being written.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(Mapped::path)
    }

    /// Bytes in it so far.
    pub fn used(&self) -> usize {
        self.file.as_ref().map_or(0, Mapped::used)
    }
}
