//! Calls on 3.10 and 3.11: the interpreter's profile hook, a C function for each thread. New threads get it through
//! `threading.setprofile`, others are found in the interpreter's list of threads. A hook that belongs to somebody
//! else is left alone.

use super::super::gil::Gil;
use super::hook_object;
use super::{c_functions, functions, open};
use crate::guard::guarded;
use crate::python::scopes::interpreter_function;
use crate::session::{self, Session};
use crate::thread;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::*;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use trace::status::Collector;
use trace::{Kind, NameId, clock};

pub type Hook = unsafe extern "C" fn(*mut PyObject, *mut PyFrameObject, c_int, *mut PyObject) -> c_int;
type SetProfile = unsafe extern "C" fn(Option<Hook>, *mut PyObject);
type SetProfileOf = unsafe extern "C" fn(*mut PyThreadState, Option<Hook>, *mut PyObject) -> c_int;
type FirstThread = unsafe extern "C" fn(*mut PyInterpreterState) -> *mut PyThreadState;
type NextThread = unsafe extern "C" fn(*mut PyThreadState) -> *mut PyThreadState;

// What the hook is told, from CPython's `pystate.h`.
const CALL: c_int = 0;
const RETURN: c_int = 3;
const C_CALL: c_int = 4;
const C_EXCEPTION: c_int = 5;
const C_RETURN: c_int = 6;

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
static WITH_C: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// How many events pass between two looks for threads that somebody started without `threading`.
const LOOK_EVERY: u32 = 256;

pub fn running() -> bool {
    RUNNING.load(Ordering::Relaxed)
}

unsafe extern "C" fn hook(_: *mut PyObject, frame: *mut PyFrameObject, what: c_int, arg: *mut PyObject) -> c_int {
    // SAFETY: called by CPython with a live frame, the GIL and no exception set.
    unsafe {
        match what {
            CALL => {
                let code = code_of(frame);
                let name = functions::recent(code);
                if name == Some(NameId::NONE) {
                    // Outside the filter.
                } else if let Some(name) = name
                    && session::current().is_some()
                    && let Some(writing) = thread::last()
                {
                    open::begin(writing, code, name);
                } else {
                    guarded(Collector::Calls, (), || begin(code, frame));
                }
                look_around();
            }
            RETURN => {
                let now = clock::now();
                let code = code_of(frame);
                let ended = thread::last().is_some_and(|writing| open::end(writing, code, Kind::Call, now));
                if !ended && functions::recent(code) != Some(NameId::NONE) {
                    guarded(Collector::Calls, (), || end(code, Kind::Call, now));
                }
            }
            C_CALL if WITH_C.load(Ordering::Relaxed) => guarded(Collector::Calls, (), || c_begin(frame, arg)),
            C_RETURN | C_EXCEPTION if WITH_C.load(Ordering::Relaxed) => guarded(Collector::Calls, (), || {
                let now = clock::now();
                if let Some(identity) = c_functions::identity(arg) {
                    end(identity, Kind::CCall, now);
                }
            }),
            _ => {}
        }
    }
    0
}

/// The address of a frame's code object, which the frame keeps alive.
#[inline(always)]
unsafe fn code_of(frame: *mut PyFrameObject) -> usize {
    // SAFETY: the caller's frame is alive, and with it its code; `learn_frames` tried what is read here.
    unsafe {
        match FRAMES.load(Ordering::Relaxed) {
            CODE_IN_FRAME => *frame.cast::<usize>().add(3),
            CODE_BEHIND_FRAME => *(*frame.cast::<*const usize>().add(3)).add(4),
            _ => ask_for_code(frame),
        }
    }
}

#[cold]
unsafe fn ask_for_code(frame: *mut PyFrameObject) -> usize {
    // SAFETY: as for `code_of`.
    unsafe {
        let code = PyFrame_GetCode(frame);
        Py_DECREF(code.cast());
        code as usize
    }
}

static FRAMES: AtomicU8 = AtomicU8::new(0);
/// 3.10: the frame's fourth word.
const CODE_IN_FRAME: u8 = 1;
/// 3.11: the fourth word leads to the inner frame, whose fifth word it is.
const CODE_BEHIND_FRAME: u8 = 2;

/// Finds out whether a frame of this interpreter is laid out as its version says. If not, we ask for the code each time.
fn learn_frames(py: Python<'_>) {
    // SAFETY: attached; the frame is borrowed from the interpreter, which runs it now.
    unsafe {
        let frame = PyEval_GetFrame();
        let layout = if py.version_info() >= (3, 11) { CODE_BEHIND_FRAME } else { CODE_IN_FRAME };
        if !frame.is_null() {
            FRAMES.store(layout, Ordering::Relaxed);
            if code_of(frame) != ask_for_code(frame) {
                FRAMES.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn begin(code: usize, frame: *mut PyFrameObject) {
    // SAFETY: called by `hook`.
    unsafe {
        let Some(session) = session::current() else { return };
        let name = admit(session, code, frame);
        if name != NameId::NONE
            && let Some(writing) = thread::writing(session, Collector::Calls)
        {
            open::begin(writing, code, name);
        }
    }
}

unsafe fn admit(session: &Session, code: usize, frame: *mut PyFrameObject) -> NameId {
    // SAFETY: called by `hook`.
    unsafe {
        let module = |py: Python<'_>| {
            let frame = Bound::from_borrowed_ptr(py, frame.cast());
            super::module_name(&frame.getattr("f_globals").ok()?)
        };
        functions::admit(session, code, module, true)
    }
}

#[cold]
#[inline(never)]
unsafe fn end(function: usize, kind: Kind, now: u64) {
    // SAFETY: called by `hook`.
    unsafe {
        let Some(session) = session::current() else { return };
        let known = functions::recent(function).or_else(|| functions::known(function));
        // Unknown: it was running before we came. None: it is outside the filter.
        if known.is_some_and(|name| name != NameId::NONE)
            && let Some(writing) = thread::writing(session, Collector::Calls)
            && !open::end(writing, function, kind, now)
        {
            open::end_somewhere(session, writing, function, kind, now);
        }
    }
}

unsafe fn c_begin(frame: *mut PyFrameObject, callable: *mut PyObject) {
    // SAFETY: called by `hook`.
    unsafe {
        let Some(session) = session::current() else { return };
        let code = code_of(frame);
        let caller = functions::recent(code).unwrap_or_else(|| admit(session, code, frame));
        if caller == NameId::NONE {
            return;
        }
        if let Some(identity) = c_functions::identity(callable) {
            let name = c_functions::name_of(session, identity, callable);
            if name != NameId::NONE
                && let Some(writing) = thread::writing(session, Collector::Calls)
            {
                open::begin(writing, identity, name);
            }
        }
    }
}

/// Now and then: has somebody started a thread without `threading`?
#[inline(always)]
unsafe fn look_around() {
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

/// Hooks the running thread; `frame` has just begun in it. For threads that `threading` starts.
pub unsafe fn adopt(frame: *mut PyFrameObject) {
    // SAFETY: called with the GIL and a live frame.
    unsafe {
        hook_this_thread();
        hook(ptr::null_mut(), frame, CALL, ptr::null_mut());
    }
}

unsafe fn hook_this_thread() {
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
    WITH_C.store(with_c, Ordering::Relaxed);
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
