//! Where a recording goes: the trace's folder, and the folder of segments in shared memory.

use crate::file_names::PROTOCOL_FILES;
use crate::file_names::RESCUED;
use crate::inject;
use crate::journal::JOURNAL;
use crate::lock::{Lock, Refused};
use crate::manifest::RESERVE;
use crate::outcome::Error;
use crate::private;
use crate::settings::{Calls, GpuDetail, Settings};
use std::ffi::CString;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trace::codes::{Note, NoteCode};
use trace::quantity::bytes;
use trace::segment::SUFFIX;
use trace::settings::cuda_size_mb;
use trace::tables::{LOCK, MANIFEST, parse_file_name};

/// Traces without a name of their own are gathered here.
pub const TRACES: &str = "inferscope-traces";
/// In a segments folder: the trace that it belongs to.
pub(crate) const TRACE_FILE: &str = "trace";
/// In a segments folder: the id of that trace. A file of its own, for an older InferScope takes the other one for a path.
pub(crate) const TRACE_ID_FILE: &str = "trace-id";

pub(crate) struct Output {
    /// As the user gave it.
    pub shown: PathBuf,
    pub trace: PathBuf,
    pub segments: PathBuf,
    /// Of the trace: nobody else completes it while a process has this open.
    pub lock: Lock,
    /// Of the segments folder: held as long as a supervisor or a recorder lives, wherever the trace has gone.
    pub living: File,
    /// Why the segments are not where they should be.
    pub note: Option<Note>,
}

impl Output {
    /// Makes both folders.
    pub fn create(settings: &Settings, program: &str) -> Result<Output, Error> {
        let shown = settings.output.clone().unwrap_or_else(|| Path::new(TRACES).join(new_name(program)));
        let fail = |why: String| Error::Output { path: shown.clone(), why };
        let trace = std::path::absolute(&shown).map_err(|error| fail(error.to_string()))?;
        check_empty(&trace).map_err(fail)?;
        private::folder(&trace).map_err(|error| fail(error.to_string()))?;
        let lock = Lock::take(&trace.join(LOCK)).map_err(|refused| match refused {
            Refused::Held(holder) => fail(format!("process {holder} is recording there")),
            Refused::Io(error) => fail(error.to_string()),
        })?;
        let made = make_segments(settings, &trace);
        let (segments, note) =
            made.map_err(|error| fail(format!("cannot create the folder for the buffers: {error}")))?;
        let living = name_trace(&segments, &trace).map_err(|error| fail(error.to_string()))?;
        Ok(Output { shown, trace, segments, lock, living, note })
    }
}

/// Says in a segments folder which trace it belongs to, gives that an id, and locks the former.
fn name_trace(segments: &Path, trace: &Path) -> io::Result<File> {
    let path = segments.join(TRACE_FILE);
    let mut file = private::create(&path)?;
    file.write_all(trace.as_os_str().as_bytes())?;
    private::write(&segments.join(TRACE_ID_FILE), private::random_id()?.as_bytes())?;
    // SAFETY: a plain system call on an open descriptor. Where it is refused, the recorder's pid has to do.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    Ok(file)
}

/// The id of the trace that a segments folder was made for.
pub(crate) fn trace_id(segments: &Path) -> Option<String> {
    fs::read_to_string(segments.join(TRACE_ID_FILE)).ok()
}

/// Removes what `Output::create` and the start of a recording made, and no folder that holds anything else.
pub(crate) fn discard(trace: &Path, segments: &Path) {
    remove_segments(segments);
    for file in [LOCK, MANIFEST, RESERVE] {
        let _ = fs::remove_file(trace.join(file));
    }
    let _ = fs::remove_dir(trace);
    if let Some(parent) = trace.parent().filter(|parent| parent.ends_with(TRACES)) {
        let _ = fs::remove_dir(parent);
    }
}

/// Removes a segments folder: only what is known to be ours, for its path comes from a manifest.
pub(crate) fn remove_segments(folder: &Path) {
    let rescued = folder.join(RESCUED);
    for place in [&rescued, folder] {
        if !fs::symlink_metadata(place).is_ok_and(|metadata| metadata.is_dir()) {
            continue;
        }
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let segment = name.ends_with(SUFFIX) || name.starts_with('.') && name.ends_with(".new");
            let table = place == rescued && (parse_file_name(&name).is_some() || name == MANIFEST);
            if segment
                || table
                || [TRACE_FILE, TRACE_ID_FILE, JOURNAL].contains(&name.as_str())
                || PROTOCOL_FILES.contains(&name.as_str())
            {
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir(place);
    }
}

/// A trace never mixes with what is there already.
fn check_empty(folder: &Path) -> Result<(), String> {
    match fs::read_dir(folder) {
        Ok(_) if folder.join(MANIFEST).exists() => Err("it already holds a trace".into()),
        Ok(mut entries) => entries.next().map_or(Ok(()), |_| Err("the folder is not empty".into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// `20260131-235959-serve-1234`: sorts by time, says what it is.
pub(crate) fn new_name(program: &str) -> String {
    let program: String =
        program.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
    let program = trace::event::cut(&program, 64);
    format!("{}-{program}-{}", local_time(trace::clock::realtime(), "%Y%m%d-%H%M%S"), std::process::id())
}

/// Nanoseconds since 1970 as local time.
pub(crate) fn local_time(unix_ns: u64, format: &str) -> String {
    let seconds = (unix_ns / 1_000_000_000) as libc::time_t;
    let mut buffer = [0u8; 64];
    let Ok(format) = CString::new(format) else { return String::new() };
    // SAFETY: `broken` is plain data that localtime_r fills; strftime writes at most the buffer's length.
    let length = unsafe {
        let mut broken: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut broken);
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), &broken)
    };
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

/// Bytes free where a folder is.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: `stat` is plain data that the call fills.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut stat) == 0).then_some(stat)?
    };
    Some(stat.f_bavail * stat.f_frsize)
}

/// What one process may take of shared memory, in bytes.
pub(crate) fn wanted(settings: &Settings) -> u64 {
    u64::from(wanted_mb(settings, inject::may_use_cuda())) << 20
}

/// The same in MB, on a machine with CUDA or without. The Python part needs a few megabytes as long as calls are not
/// recorded, and uses what it is given otherwise; what CUDA does is always many records.
fn wanted_mb(settings: &Settings, cuda: bool) -> u32 {
    let most = if settings.calls == Calls::Off { 16 } else { u32::MAX };
    let gpu = if cuda && settings.gpu_detail != GpuDetail::Off { cuda_size_mb(settings.trace_size_mb) } else { 0 };
    settings.trace_size_mb.min(most) + gpu
}

/// The segments folder: in shared memory, or beside the trace where that is too small. Only this user may look in.
fn make_segments(settings: &Settings, trace: &Path) -> io::Result<(PathBuf, Option<Note>)> {
    let wanted = wanted(settings);
    let make = |folder: PathBuf| private::new_folder(&folder).map(|()| folder);
    let free = free_bytes(Path::new("/dev/shm"));
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    let random = RandomState::new().hash_one(trace) as u32;
    if free.is_some_and(|free| free >= wanted) {
        let name = format!("inferscope-{user}-{}-{random:08x}", std::process::id());
        if let Ok(folder) = make(Path::new("/dev/shm").join(name)) {
            return Ok((folder, None));
        }
    }
    let why = free.map_or("is not usable".into(), |free| {
        format!("has only {} free, and one process may need {}", bytes(free), bytes(wanted))
    });
    let note = Note::new(NoteCode::SegmentsOnDisk).with(why);
    Ok((make(trace.join("segments"))?, Some(note)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_may_take_counts_both_of_its_segments() {
        let settings = Settings::default();
        let with = |calls, gpu_detail, trace_size_mb| Settings { calls, gpu_detail, trace_size_mb, ..settings.clone() };
        assert_eq!((wanted_mb(&settings, false), wanted_mb(&settings, true)), (16, 80));
        assert_eq!(wanted_mb(&with(Calls::Python, GpuDetail::Launch, 100), true), 164);
        assert_eq!(wanted_mb(&with(Calls::Python, GpuDetail::Off, 100), true), 100);
        assert_eq!(wanted_mb(&with(Calls::Off, GpuDetail::Kernel, 8), true), 16);
    }
}
