//! What happens when a scope is entered and left. It may be entered again while it is open, by the same or by other
//! tasks and threads: each time has an entry of its own. What Python sees of it is in `surface`.

use super::super::callable::Vectorcall;
use super::super::json;
use super::super::ops;
use super::super::refs::{decref, incref, xdecref};
use super::super::text::name_of;
use super::entry::{self, Begin, Entry};
use super::{context, record};
use pyo3::ffi::*;
use pyo3::prelude::*;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use trace::status::Collector;
use trace::{Kind, clock};
use workload::guard::guarded;
use workload::session::{self, Session};

#[repr(C)]
pub struct Scope {
    head: PyObject,
    pub vectorcall: Vectorcall,
    /// An exact `str`, owned.
    pub name: *mut PyObject,
    /// The user's, owned, or null. The object is known to the garbage collector only if there are any.
    pub tags: *mut PyObject,
    /// The entry made first of those that are open, owned, or null: for an exit in another context than its begin.
    pub first: *mut Entry,
    number: u64,
    /// How many times it is open.
    pub open: u32,
    pub kind: Kind,
    /// Whether the garbage collector knows it.
    pub tracked: bool,
}

/// Gives a new object its contents; takes over both references.
///
/// # Safety
/// The GIL is held; `scope` is fresh memory of the type; `name` is an exact `str`; `tags` may be null.
#[inline(always)]
pub unsafe fn fill(scope: *mut Scope, kind: Kind, name: *mut PyObject, tags: *mut PyObject) {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    // Under the GIL two plain operations do.
    let number = NUMBERS.load(Ordering::Relaxed) + 1;
    NUMBERS.store(number, Ordering::Relaxed);
    // SAFETY: by the caller's promise.
    unsafe {
        (*scope).name = name;
        (*scope).tags = tags;
        (*scope).first = ptr::null_mut();
        (*scope).number = number;
        (*scope).open = 0;
        (*scope).kind = kind;
        (*scope).tracked = !tags.is_null();
    }
}

/// Tags or metadata as JSON text. The error is an interrupt that belongs to the user, set as the exception.
pub unsafe fn args(session: &Session, tags: *mut PyObject) -> Result<Option<String>, ()> {
    if tags.is_null() {
        return Ok(None);
    }
    // Attached for real, so that exceptions that are dropped in there are let go at once.
    let written = Python::try_attach(|py| {
        // SAFETY: the caller has a reference to it.
        let tags = unsafe { Bound::from_borrowed_ptr(py, tags) };
        match json::object(&tags) {
            Ok((text, was_cut)) => {
                if was_cut {
                    session.status(Collector::Scopes).cut.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Some(text))
            }
            Err(interrupt) => {
                interrupt.restore(py);
                Err(())
            }
        }
    });
    // An interpreter that is being taken down writes no tags any more.
    written.unwrap_or(Ok(None))
}

/// Opens once more. The new entry is a new reference, or null when there was no memory for it.
///
/// Pointers and not references here and below: writing the tags may run the user's code, which may use this scope.
#[inline(always)]
pub unsafe fn enter(scope: *mut Scope, session: &'static Session) -> Result<*mut Entry, ()> {
    // SAFETY: called by CPython with the GIL, no exception set, and a scope that it keeps alive.
    unsafe {
        let (kind, name) = ((*scope).kind, (*scope).name);
        if kind == Kind::StepBegin {
            ops::step_begins(name)?;
        }
        let args = if (*scope).tags.is_null() { None } else { args(session, (*scope).tags)? };
        let name_id = name_of(session, name);
        let id = record::next_id();
        let outer = entry::nearest_open(context::get(), session.generation);
        let parent = if outer.is_null() { 0 } else { (*outer).id };
        let begin = Begin { kind, name, name_id, scope: (*scope).number, id, generation: session.generation };
        let entry = Entry::new(begin, outer);
        if entry.is_null() {
            return Ok(entry);
        }
        context::set(entry);
        (*scope).open += 1;
        if (*scope).first.is_null() {
            incref(entry.cast());
            (*scope).first = entry;
        }
        let began = record::begin(session, kind, (name, name_id), id, parent, args.as_deref());
        (*entry).set_begin(began);
        Ok(entry)
    }
}

/// Closes the entry that belongs here: the innermost of ours in this context, else the first that is open.
#[inline(always)]
pub unsafe fn exit(scope: *mut Scope, now: u64) {
    // SAFETY: as for `enter`.
    unsafe {
        let innermost = context::get();
        let mut found = innermost;
        while !found.is_null() && ((*found).scope != (*scope).number || !(*found).open()) {
            found = (*found).outer;
        }
        if found.is_null() {
            found = (*scope).first;
        }
        (*scope).open -= 1;
        if !found.is_null() && (*found).open() {
            incref(found.cast());
            if found == (*scope).first {
                decref(std::mem::replace(&mut (*scope).first, ptr::null_mut()).cast());
            }
            entry::close(found, innermost, now);
            decref(found.cast());
        } else if let Some(session) = session::current() {
            session.status(Collector::Scopes).unpaired.fetch_add(1, Ordering::Relaxed);
        }
        xdecref(innermost.cast());
    }
}

/// Entered, never exited, and now nobody can: it ends here.
#[cold]
pub unsafe fn abandon(scope: *mut Scope) {
    let now = clock::now();
    // SAFETY: called by `dealloc`; an exception may be on its way and must survive.
    unsafe {
        let (mut kind, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        guarded(Collector::Scopes, (), || exit(scope, now));
        xdecref((*scope).first.cast());
        PyErr_Restore(kind, value, traceback);
    }
}
