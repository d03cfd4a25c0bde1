//! `scope`, `step` and `mark_event`: what the user's own code says about itself. Functions of the plain C shape, because
//! a disabled scope has to cost next to nothing and an argument tuple alone would be half of that.

pub(super) mod context;
pub(super) mod entry;
pub(super) mod record;
mod scope;
mod surface;

pub use context::interpreter_function;
pub use record::begin_ids;

use super::arguments::{Imported, arguments};
use super::gil::Gil;
use super::refs::{decref, incref, none, xdecref};
use super::text::{name_of, with_text};
use pyo3::ffi::*;
use std::ffi::CStr;
use std::ptr;
use trace::codes::FixMoment;
use trace::status::Collector;
use trace::{Kind, clock};
use workload::guard::guarded;
use workload::session::{self, Session};

static STEPS: Imported = Imported::new(c"inferscope._steps", c"steps");

/// A name as an exact `str`, a new reference. Null only with an interrupt of the user's set as the exception.
#[inline(always)]
unsafe fn exact_name(name: *mut PyObject) -> *mut PyObject {
    // SAFETY: the GIL is held and `name` is an argument.
    unsafe { if PyUnicode_CheckExact(name) != 0 { incref(name) } else { name_in_words(name) } }
}

/// Whatever was given as a name: a profiler does not fail for it.
#[cold]
unsafe fn name_in_words(name: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `exact_name`.
    unsafe {
        let mut words = if PyUnicode_Check(name) != 0 { incref(name) } else { PyObject_Str(name) };
        if !words.is_null() && PyUnicode_CheckExact(words) == 0 {
            let exact = PyUnicode_FromObject(words);
            decref(words);
            words = exact;
        }
        if words.is_null() && PyErr_ExceptionMatches(PyExc_Exception) != 0 {
            PyErr_Clear();
            words = PyUnicode_FromString(c"(a name that cannot be written)".as_ptr());
        }
        words
    }
}

#[inline(always)]
unsafe fn tags_of(tags: *mut PyObject) -> *mut PyObject {
    // SAFETY: the GIL is held; `tags` is null or an argument.
    unsafe { if tags.is_null() || tags == Py_None() { ptr::null_mut() } else { incref(tags) } }
}

#[inline(always)]
unsafe fn make(kind: Kind, name: *mut PyObject, tags: *mut PyObject) -> *mut PyObject {
    // SAFETY: the GIL is held; both are arguments.
    unsafe {
        let name = exact_name(name);
        if name.is_null() { name } else { surface::new(kind, name, tags_of(tags)) }
    }
}

unsafe extern "C" fn new_scope(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe {
        match arguments(c"scope", [c"name", c"tags"], 1, args, count, keywords) {
            Some([name, tags]) => make(Kind::ScopeBegin, name, tags),
            None => ptr::null_mut(),
        }
    }
}

unsafe extern "C" fn new_step(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe {
        let Some([first, name, tags]) = arguments(c"step", [c"over", c"name", c"tags"], 0, args, count, keywords)
        else {
            return ptr::null_mut();
        };
        let named = !name.is_null() && name != Py_None();
        if first.is_null() {
            if named {
                return make(Kind::StepBegin, name, tags);
            }
            PyErr_SetString(
                PyExc_TypeError,
                c"step() missing 1 required argument: a name, or what to iterate over".as_ptr(),
            );
            return ptr::null_mut();
        }
        let over = named
            || (PyUnicode_Check(first) == 0
                && [c"__iter__", c"__aiter__", c"__getitem__"]
                    .iter()
                    .any(|method| PyObject_HasAttrString(first, method.as_ptr()) != 0));
        if !over {
            return make(Kind::StepBegin, first, tags);
        }
        let steps = STEPS.get();
        if steps.is_null() {
            return steps;
        }
        let name = if named { name } else { Py_None() };
        let tags = if tags.is_null() { Py_None() } else { tags };
        PyObject_CallFunctionObjArgs(steps, first, name, tags, ptr::null_mut::<PyObject>())
    }
}

unsafe extern "C" fn mark_event(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe {
        let Some([name, metadata]) = arguments(c"mark_event", [c"name", c"metadata"], 1, args, count, keywords) else {
            return ptr::null_mut();
        };
        if let Some(session) = session::current() {
            let now = clock::now();
            if guarded(Collector::Scopes, Ok(()), || mark(session, name, metadata, now)).is_err() {
                return ptr::null_mut();
            }
        }
        none()
    }
}

/// The error is an interrupt of the user's, set as the exception.
unsafe fn mark(session: &'static Session, name: *mut PyObject, metadata: *mut PyObject, now: u64) -> Result<(), ()> {
    // SAFETY: called by `mark_event`.
    unsafe {
        let metadata = if metadata == Py_None() { ptr::null_mut() } else { metadata };
        let args = scope::args(session, metadata)?;
        let name = exact_name(name);
        if name.is_null() {
            return Err(());
        }
        let name_id = name_of(session, name);
        record::mark(session, (name, name_id), innermost(session), args.as_deref(), now);
        decref(name);
        Ok(())
    }
}

/// What the package says of a fix that is tried, by the name of its moment. A moment that is in no list is counted by the recorder.
unsafe extern "C" fn fix_moment(_: *mut PyObject, args: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    // SAFETY: called by CPython, with what the package gives it: two `str`.
    unsafe {
        if let (2, Some(session)) = (count, session::current()) {
            guarded(Collector::Scopes, (), || {
                let moment =
                    with_text(*args, |moment, _| FixMoment::from_name(moment).map_or(0, |moment| moment as u32));
                let said = *args.add(1);
                record::fix(session, (said, name_of(session, said)), moment);
            });
        }
        none()
    }
}

/// The id of the scope that this context is in, 0 for none.
///
/// # Safety
/// The GIL is held and no exception is set.
pub(super) unsafe fn innermost(session: &Session) -> u32 {
    // SAFETY: by the caller's promise; the reference is given back.
    unsafe {
        let around = entry::nearest_open(context::get(), session.generation);
        let id = if around.is_null() { 0 } else { (*around).id };
        xdecref(around.cast());
        id
    }
}

const fn function(name: &'static CStr, pointer: PyCFunctionFastWithKeywords, doc: &'static CStr) -> PyMethodDef {
    PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunctionFastWithKeywords: pointer },
        ml_flags: METH_FASTCALL | METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }
}

static FUNCTIONS: Gil<[PyMethodDef; 5]> = Gil::new([
    function(c"scope", new_scope, super::docs::SCOPE),
    function(c"step", new_step, super::docs::STEP),
    function(c"mark_event", mark_event, super::docs::MARK_EVENT),
    PyMethodDef {
        ml_name: c"fix_moment".as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunctionFast: fix_moment },
        ml_flags: METH_FASTCALL,
        ml_doc: ptr::null(),
    },
    PyMethodDef::zeroed(),
]);

/// Adds the functions and the type of what they give to the module. False with an exception set if that fails.
///
/// # Safety
/// The GIL is held.
pub unsafe fn add_to(module: *mut PyObject) -> bool {
    // SAFETY: by the caller's promise; the definitions live for ever.
    unsafe {
        if !entry::prepare() {
            return false;
        }
        context::prepare();
        let kind = surface::prepare();
        if kind.is_null() {
            return false;
        }
        let added = PyModule_AddObjectRef(module, c"Scope".as_ptr(), kind);
        decref(kind);
        added == 0 && PyModule_AddFunctions(module, FUNCTIONS.get().as_mut_ptr()) == 0
    }
}
