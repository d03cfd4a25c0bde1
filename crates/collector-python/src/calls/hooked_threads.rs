//! Which threads have the profile hook (3.10, 3.11): all there are and will be. New ones get it through
//! `threading.setprofile`, others are found in the interpreter's list of threads. A hook that belongs to somebody else is
//! left alone.

use super::super::gil::Gil;
use super::frames::learn_frames;
use super::hook_object;
use super::profile_hook::{hook, set_with_c};
use crate::scopes::interpreter_function;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::*;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use trace::status::Collector;
use workload::guard::guarded;

type Hook = unsafe extern "C" fn(*mut PyObject, *mut PyFrameObject, c_int, *mut PyObject) -> c_int;
type SetProfile = unsafe extern "C" fn(Option<Hook>, *mut PyObject);
type SetProfileOf = unsafe extern "C" fn(*mut PyThreadState, Option<Hook>, *mut PyObject) -> c_int;
type FirstThread = unsafe extern "C" fn(*mut PyInterpreterState) -> *mut PyThreadState;
type NextThread = unsafe extern "C" fn(*mut PyThreadState) -> *mut PyThreadState;

/// The functions for other threads than the running one; private to CPython but exported in both versions.
#[derive(Clone, Copy)]
struct Threads {
    set_profile_of: SetProfileOf,
    first: FirstThread,
    next: NextThread,
    /// Where a thread's state holds its hook, in words.
    place: usize,
}

struct Interpreter {
    set_profile: SetProfile,
    threads: Option<Threads>,
    /// The youngest thread when we looked last. Ids are not reused.
    youngest: i64,
    events: u32,
}

static INTERPRETER: Gil<Option<Interpreter>> = Gil::new(None);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// How many events pass between two looks for threads that somebody started without `threading`.
const LOOK_EVERY: u32 = 256;

pub fn running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

/// Now and then: has somebody started a thread without `threading`?
#[inline(always)]
pub unsafe fn look_around() {
    // SAFETY: the GIL is held; the borrow ends before anything else is called.
    unsafe {
        if let Some(interpreter) = INTERPRETER.get() {
            interpreter.events = interpreter.events.wrapping_add(1);
            if interpreter.events % LOOK_EVERY == 0 {
                guarded(Collector::Calls, 0, || hook_threads());
            }
        }
    }
}

/// Hooks every thread that has no hook. Returns how many have somebody else's.
#[cold]
unsafe fn hook_threads() -> usize {
    // SAFETY: the GIL is held: no thread can appear or vanish while the list is walked.
    unsafe {
        let Some(interpreter) = INTERPRETER.get() else { return 0 };
        let Some(threads) = interpreter.threads else { return 0 };
        let mut at = (threads.first)(PyInterpreterState_Get());
        let youngest = if at.is_null() { 0 } else { PyThreadState_GetID(at) };
        if youngest == interpreter.youngest {
            return 0;
        }
        interpreter.youngest = youngest;
        let mut foreign = 0;
        while !at.is_null() {
            match *at.cast::<usize>().add(threads.place) {
                0 => set(at, threads, true),
                present if present == hook as *const () as usize => {}
                _ => foreign += 1,
            }
            at = (threads.next)(at);
        }
        foreign
    }
}

unsafe fn set(thread: *mut PyThreadState, threads: Threads, on: bool) {
    // SAFETY: the GIL is held and the thread is in the interpreter's list.
    unsafe {
        let object = if on { hook_object::new() } else { ptr::null_mut() };
        if on && object.is_null() || (threads.set_profile_of)(thread, on.then_some(hook as Hook), object) < 0 {
            PyErr_Clear();
        }
        Py_XDECREF(object);
    }
}

/// Hooks the running thread, or unhooks it when nobody records any more.
pub unsafe fn hook_this_thread() {
    // SAFETY: the GIL is held; the function is copied before it is called.
    unsafe {
        let Some(set_profile) = INTERPRETER.get().as_ref().map(|interpreter| interpreter.set_profile) else { return };
        if running() {
            let object = hook_object::new();
            if object.is_null() {
                PyErr_Clear();
                return;
            }
            set_profile(Some(hook), object);
            Py_DECREF(object);
        } else {
            set_profile(None, ptr::null_mut());
        }
    }
}

/// Hooks every thread there is and will be. The error says what is in the way; the text, what will be missing.
pub fn start(py: Python<'_>, with_c: bool) -> PyResult<&'static str> {
    let sys = py.import("sys")?;
    let present = sys.call_method0("getprofile")?;
    if !present.is_none() {
        let holder = present.get_type().name()?;
        return Err(PyRuntimeError::new_err(format!("sys.setprofile is taken by a {holder}: another profiler runs")));
    }
    let set_profile = interpreter_function(c"PyEval_SetProfile")
        .ok_or_else(|| PyRuntimeError::new_err("this Python has no PyEval_SetProfile"))?;
    learn_frames(py);
    set_with_c(with_c);
    RUNNING.store(true, Ordering::Relaxed);
    // SAFETY: attached; the signatures are those of CPython 3.10 and 3.11, which alone come here.
    unsafe {
        hook_object::prepare(py)?;
        let set_profile = transmute::<*mut libc::c_void, SetProfile>(set_profile);
        *INTERPRETER.get() = Some(Interpreter { set_profile, threads: None, youngest: 0, events: 0 });
        hook_this_thread();
        if let Some(interpreter) = INTERPRETER.get() {
            interpreter.threads = threads();
        }
    }
    let threading = py.import("threading")?;
    let free = threading.call_method0("getprofile")?.is_none();
    if free {
        // SAFETY: attached.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, hook_object::new()) }?;
        threading.call_method1("setprofile", (object,))?;
    }
    // SAFETY: attached.
    let (foreign, all) = unsafe { (hook_threads(), INTERPRETER.get().as_ref().is_some_and(|i| i.threads.is_some())) };
    Ok(match (free, foreign, all) {
        (true, 0, true) => "",
        (_, _, false) => "this Python hides its threads: calls of threads that ran before are missing",
        _ => "another profiler holds the hook of some threads: their calls are missing",
    })
}

/// The functions for other threads, and where their hook lies: where ours now lies in the running thread's state.
unsafe fn threads() -> Option<Threads> {
    // SAFETY: signatures as above; a thread's state is larger than what is searched.
    unsafe {
        let set_profile_of = transmute::<*mut libc::c_void, SetProfileOf>(interpreter_function(c"_PyEval_SetProfile")?);
        let first =
            transmute::<*mut libc::c_void, FirstThread>(interpreter_function(c"PyInterpreterState_ThreadHead")?);
        let next = transmute::<*mut libc::c_void, NextThread>(interpreter_function(c"PyThreadState_Next")?);
        let words = std::slice::from_raw_parts(PyThreadState_Get().cast::<usize>(), 32);
        let place = words.iter().position(|word| *word == hook as *const () as usize)?;
        Some(Threads { set_profile_of, first, next, place })
    }
}

/// Takes our hook, and no other, from every thread.
pub fn stop(py: Python<'_>) -> PyResult<()> {
    RUNNING.store(false, Ordering::Relaxed);
    // SAFETY: attached.
    unsafe {
        let Some(interpreter) = INTERPRETER.get().take() else { return Ok(()) };
        if let Some(threads) = interpreter.threads {
            let mut at = (threads.first)(PyInterpreterState_Get());
            while !at.is_null() {
                if *at.cast::<usize>().add(threads.place) == hook as *const () as usize {
                    set(at, threads, false);
                }
                at = (threads.next)(at);
            }
        } else if hook_object::is_one(py.import("sys")?.call_method0("getprofile")?.as_ptr()) {
            (interpreter.set_profile)(None, ptr::null_mut());
        }
    }
    let threading = py.import("threading")?;
    // SAFETY: attached.
    if unsafe { hook_object::is_one(threading.call_method0("getprofile")?.as_ptr()) } {
        threading.call_method1("setprofile", (py.None(),))?;
    }
    Ok(())
}
