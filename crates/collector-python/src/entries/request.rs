//! Request handlers: functions of servers that handle one request, and coroutine functions. The outermost of a context is an
//! entry, named by the request's method and by nothing else of it; a model that is called inside is an entry of its own, with
//! this one as its parent.

use super::pointer::{self, FUNCTION};
use super::{coroutine, names, recording};
use crate::callable::called_with;
use crate::gil::Gil;
use crate::refs::{decref, incref, xdecref};
use crate::scopes::entry::{self, Begin, Entry};
use crate::scopes::{context, record};
use crate::text::name_of;
use pyo3::ffi::*;
use std::ptr;
use trace::status::Collector;
use trace::{Kind, clock};
use workload::guard::guarded;
use workload::session::Session;

/// A handler, and where its request's method is. Objects are owned, for ever: there are few.
#[derive(Clone, Copy)]
struct Handler {
    function: *mut PyObject,
    argument: usize,
    /// A `str`, or null.
    attribute: *mut PyObject,
    key: *mut PyObject,
    /// Calling it gives a coroutine, and the request is handled while that runs.
    is_coroutine: bool,
}

static HANDLERS: Gil<Vec<Handler>> = Gil::new(Vec::new());

/// `CO_COROUTINE` of a function's code.
const COROUTINE: std::ffi::c_long = 0x80;

/// # Safety
/// The GIL is held, no exception is set; takes the references to both strings over.
pub unsafe fn mark(function: *mut PyObject, argument: usize, attribute: *mut PyObject, key: *mut PyObject) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let put = pointer::is_function(function) && pointer::put(function, handled, &FUNCTION);
        if put {
            let is_coroutine = flags(function) & COROUTINE != 0;
            HANDLERS.get().push(Handler { function: incref(function), argument, attribute, key, is_coroutine });
        } else {
            xdecref(attribute);
            xdecref(key);
        }
        put
    }
}

unsafe fn flags(function: *mut PyObject) -> std::ffi::c_long {
    // SAFETY: as for `mark`.
    unsafe {
        let code = PyObject_GetAttrString(function, c"__code__".as_ptr());
        let flags = if code.is_null() { code } else { PyObject_GetAttrString(code, c"co_flags".as_ptr()) };
        let number = if flags.is_null() { 0 } else { PyLong_AsLong(flags) };
        xdecref(flags);
        xdecref(code);
        PyErr_Clear();
        number
    }
}

unsafe extern "C" fn handled(
    callable: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython, with the GIL and no exception, through the pointer of a function.
    unsafe {
        let call = || FUNCTION.call(callable, args, count, keywords);
        let Some(session) = recording() else { return call() };
        let handler = HANDLERS.get().iter().find(|handler| handler.function == callable).copied();
        let Some(handler) = handler.filter(|handler| handler.argument < called_with(count)) else { return call() };
        let name = guarded(Collector::Scopes, ptr::null_mut(), || {
            let method = method(handler, *args.add(handler.argument));
            let name = names::of_request(method);
            xdecref(method);
            name
        });
        if name.is_null() {
            return call();
        }
        if handler.is_coroutine {
            return coroutine::wrap(call(), name);
        }
        let entry = guarded(Collector::Scopes, ptr::null_mut(), || open(session, name));
        let result = call();
        close(entry);
        decref(name);
        result
    }
}

/// The method of a request, as a new reference or null.
unsafe fn method(handler: Handler, argument: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `handled`.
    unsafe {
        let holder =
            if handler.attribute.is_null() { incref(argument) } else { PyObject_GetAttr(argument, handler.attribute) };
        let mut found = holder;
        if !holder.is_null() && !handler.key.is_null() {
            let is = PyDict_Check(holder) != 0;
            found = if is { PyDict_GetItemWithError(holder, handler.key) } else { ptr::null_mut() };
            if !found.is_null() {
                incref(found);
            }
            decref(holder);
        }
        PyErr_Clear();
        found
    }
}

/// Opens the entry of a request in this context, as a new reference. Null where it is inside another, and without memory.
///
/// # Safety
/// The GIL is held, no exception is set, and the name is a `str`.
pub unsafe fn open(session: &'static Session, name: *mut PyObject) -> *mut Entry {
    // SAFETY: by the caller's promise.
    unsafe {
        let outer = entry::nearest_open(context::get(), session.generation);
        if entry::is_in_request(outer, session.generation) {
            xdecref(outer.cast());
            return ptr::null_mut();
        }
        let parent = if outer.is_null() { 0 } else { (*outer).id };
        let (name_id, id, generation) = (name_of(session, name), record::next_id(), session.generation);
        // No scope object has this number.
        let begin = Begin { kind: Kind::EntryBegin, name, name_id, scope: 0, id, generation };
        let entry = Entry::new(begin, outer);
        if !entry.is_null() {
            context::set(entry);
            let began = record::begin(session, Kind::EntryBegin, (name, name_id), id, parent, None);
            (*entry).set_begin(began);
        }
        entry
    }
}

/// Ends an entry, and gives its reference back. An exception that is on its way survives.
///
/// # Safety
/// The GIL is held, and the entry is null or the caller's.
pub unsafe fn close(entry: *mut Entry) {
    if entry.is_null() {
        return;
    }
    let now = clock::now();
    // SAFETY: by the caller's promise.
    unsafe {
        let (mut kind, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        guarded(Collector::Scopes, (), || {
            if (*entry).open() {
                let innermost = context::get();
                entry::close(entry, innermost, now);
                xdecref(innermost.cast());
            }
        });
        decref(entry.cast());
        PyErr_Restore(kind, value, traceback);
    }
}
