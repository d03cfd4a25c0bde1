//! The files of code that were opened, for all processes of a recording: sixty workers that run the same library share its table of
//! functions. Bounded in number and in memory.

use super::mapping::{FileIdentity, Mapping};
use super::memory_map::CodeMapping;
use super::object_file::ObjectFile;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Held by every stack sampler of a recording.
#[derive(Clone, Default)]
pub(crate) struct ObjectFiles(Arc<Inner>);

#[derive(Default)]
struct Inner {
    files: Mutex<HashMap<FileIdentity, Option<Arc<ObjectFile>>>>,
    symbol_bytes: AtomicUsize,
}

/// A process that runs PyTorch maps two hundred.
const MOST_FILES: usize = 1024;
/// Tables of functions, of all files together. That of `libtorch_cpu.so` takes 6 MB.
const MOST_SYMBOL_BYTES: usize = 96 << 20;
/// What is compared of a file with what the process has in memory: the header, and mostly the build's own number.
const COMPARED: usize = 512;

impl ObjectFiles {
    /// The file behind a mapping, as the process sees it. None: it cannot be had, or is not what the process runs.
    pub(super) fn find(&self, pid: u32, mapping: &CodeMapping) -> Option<Arc<ObjectFile>> {
        if !mapping.path.starts_with('/') {
            return None;
        }
        let mapped = Mapping::of(open(pid, mapping).ok()?).ok()?;
        let mut files = self.0.files.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, known, room) = (mapped.identity, files.get(&mapped.identity).cloned(), files.len() < MOST_FILES);
        let file = match known {
            Some(file) => file,
            None if room => {
                let file = ObjectFile::of(Arc::new(mapped)).map(Arc::new);
                files.insert(identity, file.clone());
                file
            }
            None => None,
        };
        drop(files);
        file.filter(|file| is_loaded(pid, mapping, file))
    }

    /// The name of a function of the file as it is written there.
    pub(super) fn function(&self, file: &ObjectFile, address: u64) -> Option<String> {
        let may_read = |bytes: usize| {
            let before = self.0.symbol_bytes.fetch_add(bytes, Ordering::Relaxed);
            let fits = before.saturating_add(bytes) <= MOST_SYMBOL_BYTES;
            if !fits {
                self.0.symbol_bytes.fetch_sub(bytes, Ordering::Relaxed);
            }
            fits
        };
        file.function(address, may_read).map(str::to_owned)
    }
}

/// By the process's own view of the file system, which may be a container's. One without a name is found by its mapping.
fn open(pid: u32, mapping: &CodeMapping) -> io::Result<File> {
    // A pipe in its place must not hold us up.
    let open = |path: String| OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let by_mapping = || {
        let range = &mapping.range;
        open(format!("/proc/{pid}/map_files/{:x}-{:x}", range.start, range.end))
    };
    if mapping.is_deleted {
        return by_mapping();
    }
    open(format!("/proc/{pid}/root{}", mapping.path)).or_else(|_| by_mapping())
}

/// Whether the beginning of the file is what the process has in memory: a library that was replaced on disk since would give wrong
/// names. Where the beginning is not mapped there is nothing to compare.
fn is_loaded(pid: u32, mapping: &CodeMapping, file: &ObjectFile) -> bool {
    let Some(start) = mapping.image else { return true };
    let mut there = [0; COMPARED];
    let memory = File::open(format!("/proc/{pid}/mem"));
    let Ok(count) = memory.and_then(|memory| memory.read_at(&mut there, start)) else { return true };
    let here = file.mapping.bytes();
    let count = count.min(here.len());
    file.mapping.is_whole() && here[..count] == there[..count]
}

#[cfg(test)]
mod tests {
    use super::super::memory_map;
    use super::*;
    use std::fs;

    fn own() -> CodeMapping {
        let exe = fs::read_link("/proc/self/exe").unwrap();
        let mappings = memory_map::read(std::process::id()).unwrap();
        mappings.into_iter().find(|one| one.path == exe.to_str().unwrap()).unwrap()
    }

    #[test]
    fn a_file_that_is_not_what_runs_is_not_taken() {
        let (files, pid, own) = (ObjectFiles::default(), std::process::id(), own());
        assert!(files.find(pid, &own).is_some());
        let of = |path: &str| CodeMapping { path: path.into(), ..own.clone() };
        // A list that lies, a file that was replaced, that is none, and what never had one.
        for path in ["/bin/sh", "/", "/etc/passwd", "/dev/zero", "[vdso]", ""] {
            assert!(files.find(pid, &of(path)).is_none(), "{path}");
        }
        assert!(files.find(u32::MAX >> 1, &own).is_none(), "the process has ended");
    }

    #[test]
    fn a_file_without_a_name_is_found_by_its_mapping() {
        let gone = CodeMapping { path: "/nowhere/at/all.so".into(), is_deleted: true, ..own() };
        let found = ObjectFiles::default().find(std::process::id(), &gone);
        // It takes a right that root has.
        let is_root = fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
        assert_eq!(found.is_some(), is_root);
    }

    #[test]
    fn a_file_that_is_cut_off_later_is_noticed_before_it_is_read() {
        let folder = std::env::temp_dir().join(format!("inferscope-cut-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("library.so");
        fs::copy("/proc/self/exe", &path).unwrap();
        let mapping = Mapping::of(File::open(&path).unwrap()).unwrap();
        assert!(mapping.is_whole());
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
        assert!(!mapping.is_whole());
        fs::remove_dir_all(&folder).unwrap();
    }
}
