//! Libraries that are found at run time: which files are mapped into this process, and opening one without linking it.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An opened library. Never closed: CUPTI's and the driver's threads outlive whoever opened them.
pub struct Library(*mut c_void);

// SAFETY: a handle for dlsym, which any thread may call.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// One that is in this process already, by file name or path.
    pub fn mapped(name: &Path) -> Option<Library> {
        Library::with(name, libc::RTLD_NOW | libc::RTLD_NOLOAD).ok()
    }

    /// The error is the loader's own words: they name the file and what is wrong with it.
    pub fn open(name: &Path) -> Result<Library, String> {
        Library::with(name, libc::RTLD_NOW | libc::RTLD_LOCAL)
    }

    fn with(name: &Path, flags: c_int) -> Result<Library, String> {
        let path = CString::new(name.as_os_str().as_bytes()).map_err(|_| "its name has a zero in it".to_owned())?;
        // SAFETY: a path with a zero at its end.
        let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
        if !handle.is_null() {
            return Ok(Library(handle));
        }
        // SAFETY: the loader's message for this thread; it is copied before anybody else calls the loader.
        let why = unsafe { libc::dlerror() };
        if why.is_null() {
            return Err("it is not there".to_owned());
        }
        // SAFETY: as above.
        Err(unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned())
    }

    pub fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is of a library that stays open.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }
}

/// Files mapped into this process whose name starts with `prefix`.
pub fn mapped_files(prefix: &str) -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut found: Vec<PathBuf> = Vec::new();
    for line in maps.lines() {
        let Some(at) = line.find('/') else { continue };
        let path = Path::new(&line[at..]);
        let named = path.file_name().is_some_and(|name| name.as_bytes().starts_with(prefix.as_bytes()));
        if named && found.last().is_none_or(|last| last != path) {
            found.push(path.to_owned());
        }
    }
    found.sort();
    found.dedup();
    found
}

/// 12 of `libcudart.so.12.4.127`, 11 of `libcupti.so.11.8`, 2022 of `libcupti.so.2022.3.0`.
pub fn major(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let (_, version) = name.split_once(".so.")?;
    version.split('.').next()?.parse().ok()
}
