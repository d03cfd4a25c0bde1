//! The Python stack of the calling thread as a number, for a block. Who reads the frames is the Python library, if it is in this process at all;
//! what a stack's number stands for is in `stack_names`.

use super::stack_names::StackNames;
use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use trace::block::BlockStack;
use trace::codes::{StackMissing, StackReason};
use trace::event::MAX_TEXT;
use trace::stack_frame::StackFrame;
use workload::python_stack::{MOST_FRAMES, RawFrame, SYMBOL, StackReader, VERSION};
use workload::session::Session;

/// The Python library's, which is never unloaded.
static READER: AtomicPtr<StackReader> = AtomicPtr::new(ptr::null_mut());
/// Of the last session. Never freed, as sessions are: a thread may be using them, and there are few.
static NAMES: AtomicPtr<StackNames> = AtomicPtr::new(ptr::null_mut());

/// Before the first block of a session comes, and again when the Python library may have come in. Not from two threads at once.
pub fn begin(session: &'static Session) {
    if session.settings.recording.memory_stacks_kb == 0 {
        return;
    }
    if READER.load(Ordering::Relaxed).is_null()
        && let Some(reader) = find_reader()
    {
        READER.store(ptr::from_ref(reader).cast_mut(), Ordering::Release);
    }
    // SAFETY: null, or leaked below.
    let names = unsafe { NAMES.load(Ordering::Acquire).as_ref() };
    if names.is_none_or(|names| names.generation != session.generation) {
        let names = StackNames::new(session.generation).map(|names| Box::into_raw(Box::new(names)));
        NAMES.store(names.unwrap_or(ptr::null_mut()), Ordering::Release);
    }
}

/// The stack of this thread.
#[inline]
pub fn of(session: &'static Session, reason: StackReason) -> BlockStack {
    match read(session) {
        Ok(name) => BlockStack::Read(reason, name),
        Err(why) => BlockStack::Missing(reason, why),
    }
}

fn read(session: &'static Session) -> Result<trace::NameId, StackMissing> {
    // SAFETY: null, or never freed.
    let reader = unsafe { READER.load(Ordering::Acquire).as_ref() }.ok_or(StackMissing::NoPython)?;
    // SAFETY: as above.
    let names = unsafe { NAMES.load(Ordering::Acquire).as_ref() }.ok_or(StackMissing::TooMany)?;
    if names.generation != session.generation {
        return Err(StackMissing::Busy); // A recording begins at this moment.
    }
    let mut frames = [RawFrame::default(); MOST_FRAMES];
    // SAFETY: there is room for so many.
    let count = unsafe { (reader.read)(frames.as_mut_ptr(), frames.len()) };
    if count <= 0 {
        return Err(StackMissing::from_i32(count.wrapping_neg()).unwrap_or(StackMissing::Unreadable));
    }
    let _reading = Reading(reader);
    let frames = frames.get(..count as usize).ok_or(StackMissing::Unreadable)?;
    let describe = |frame: &RawFrame, text: &mut [u8; MAX_TEXT]| {
        let mut line = 0;
        // SAFETY: a frame of the reading that has begun, and room for so many bytes.
        let length = unsafe { (reader.describe)(frame, text.as_mut_ptr(), MAX_TEXT, &raw mut line) };
        (length > 0).then_some((length, line))
    };
    // A program makes them up as it goes: names of kernels keep their share of the table. The lock of the names is taken for what is new only,
    // and nobody who holds it waits for the allocator or for the GIL.
    let interns = (|text: &str| session.intern_message(text), |frame: &StackFrame| session.intern_frame(frame));
    names.of(frames, interns, describe)
}

/// Ends it, whatever happens.
struct Reading(&'static StackReader);

impl Drop for Reading {
    fn drop(&mut self) {
        (self.0.end)();
    }
}

/// The reader of the Python library that lies beside this one, if it is loaded.
fn find_reader() -> Option<&'static StackReader> {
    let own = own_path()?;
    let files = std::fs::read_dir(own.parent()?).ok()?.flatten().map(|file| file.path());
    let mut libraries = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("_native") && name.ends_with(".so")
    });
    libraries.find_map(|path| {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: strings with a zero at their end. A library that is found stays loaded, for it is not given back.
        let function = unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() { ptr::null_mut() } else { libc::dlsym(library, SYMBOL.as_ptr()) }
        };
        if function.is_null() {
            return None;
        }
        // SAFETY: the function has this signature in `stack` of collector-python, and what it gives lives as long as the library.
        let reader = unsafe {
            let function: extern "C" fn() -> *const StackReader = std::mem::transmute(function);
            function().as_ref()
        };
        reader.filter(|reader| reader.version == VERSION)
    })
}

fn own_path() -> Option<PathBuf> {
    // SAFETY: room for what is told; the path is the loader's own string.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let own = own_path as *const () as *const _;
        if libc::dladdr(own, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let path: *const c_char = info.dli_fname;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(CStr::from_ptr(path).to_bytes())))
    }
}
