//! The object that `scope()` and `step()` give: a context manager and a decorator. It may be entered again while it is
//! open, by the same or by other tasks and threads: each time has an entry of its own.

use super::super::arguments::Imported;
use super::super::gil::Gil;
use super::super::json;
use super::super::text::name_of;
use super::entry::{self, Begin, DISALLOW_INSTANTIATION, Entry, method};
use super::{context, record};
use crate::guard::guarded;
use crate::session::{self, Session};
use pyo3::ffi::*;
use pyo3::prelude::*;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use trace::status::Collector;
use trace::{Kind, clock};

#[repr(C)]
pub struct Scope {
    head: PyObject,
    /// An exact `str`, owned.
    name: *mut PyObject,
    /// The user's, owned, or null. The object is known to the garbage collector only if there are any.
    tags: *mut PyObject,
    /// The entry made first of those that are open, owned, or null: for an exit in another context than its begin.
    first: *mut Entry,
    number: u64,
    /// How many times it is open.
    open: u32,
    kind: Kind,
}

static TYPE: Gil<*mut PyTypeObject> = Gil::new(ptr::null_mut());
static DECORATE: Imported = Imported::new(c"inferscope._decorate", c"decorate");

/// A new scope object; takes over both references.
///
/// # Safety
/// The GIL is held; `name` is an exact `str`; `tags` may be null.
#[inline(always)]
pub unsafe fn new(kind: Kind, name: *mut PyObject, tags: *mut PyObject) -> *mut PyObject {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    // SAFETY: the type is made with the module; every field is written before anybody sees the object.
    unsafe {
        let scope: *mut Scope = PyObject_GC_New(*TYPE.get());
        if scope.is_null() {
            Py_DECREF(name);
            Py_XDECREF(tags);
            return ptr::null_mut();
        }
        // Under the GIL two plain operations do.
        let number = NUMBERS.load(Ordering::Relaxed) + 1;
        NUMBERS.store(number, Ordering::Relaxed);
        (*scope).name = name;
        (*scope).tags = tags;
        (*scope).first = ptr::null_mut();
        (*scope).number = number;
        (*scope).open = 0;
        (*scope).kind = kind;
        if !tags.is_null() {
            PyObject_GC_Track(scope.cast());
        }
        scope.cast()
    }
}

/// Tags or metadata as JSON text. The error is an interrupt that belongs to the user, set as the exception.
pub unsafe fn args(session: &Session, tags: *mut PyObject) -> Result<Option<String>, ()> {
    if tags.is_null() {
        return Ok(None);
    }
    // Attached for real, so that exceptions that are dropped in there are let go at once.
    Python::attach(|py| {
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
    })
}

/// Opens once more. The new entry is a new reference, or null when there was no memory for it.
///
/// Pointers and not references here and below: writing the tags may run the user's code, which may use this scope.
#[inline(always)]
unsafe fn enter(scope: *mut Scope, session: &'static Session) -> Result<*mut Entry, ()> {
    // SAFETY: called by CPython with the GIL, no exception set, and a scope that it keeps alive.
    unsafe {
        let (kind, name) = ((*scope).kind, (*scope).name);
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
            Py_INCREF(entry.cast());
            (*scope).first = entry;
        }
        let began = record::begin(session, kind, (name, name_id), id, parent, args.as_deref());
        (*entry).set_begin(began);
        Ok(entry)
    }
}

/// Closes the entry that belongs here: the innermost of ours in this context, else the first that is open.
#[inline(always)]
unsafe fn exit(scope: *mut Scope, now: u64) {
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
            Py_INCREF(found.cast());
            if found == (*scope).first {
                Py_DECREF(std::mem::replace(&mut (*scope).first, ptr::null_mut()).cast());
            }
            entry::close(found, innermost, now);
            Py_DECREF(found.cast());
        } else if let Some(session) = session::current() {
            session.status(Collector::Scopes).unpaired.fetch_add(1, Ordering::Relaxed);
        }
        Py_XDECREF(innermost.cast());
    }
}

unsafe extern "C" fn method_enter(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: CPython calls methods with a live object of the type and the GIL.
    unsafe {
        if let Some(session) = session::current() {
            let entered = guarded(Collector::Scopes, Ok(ptr::null_mut()), || enter(this.cast(), session));
            match entered {
                Ok(entry) => Py_XDECREF(entry.cast()),
                Err(()) => return ptr::null_mut(),
            }
        }
        Py_NewRef(this)
    }
}

unsafe extern "C" fn method_exit(this: *mut PyObject, _: *mut *mut PyObject, _: Py_ssize_t) -> *mut PyObject {
    // SAFETY: as for `method_enter`.
    unsafe {
        let scope: *mut Scope = this.cast();
        if (*scope).open > 0 {
            let now = clock::now();
            guarded(Collector::Scopes, (), || exit(scope, now));
        }
        Py_NewRef(Py_None())
    }
}

/// `_begin()`: for generators, which leave and come back. The entry, or None when nobody records.
unsafe extern "C" fn method_begin(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `method_enter`.
    unsafe {
        let Some(session) = session::current() else { return Py_NewRef(Py_None()) };
        let scope: *mut Scope = this.cast();
        match guarded(Collector::Scopes, Ok(ptr::null_mut()), || enter(scope, session)) {
            Ok(entry) if entry.is_null() => Py_NewRef(Py_None()),
            Ok(entry) => {
                // The entry is closed by its own `end()`: the scope object itself is not open.
                (*scope).open -= 1;
                if (*scope).first == entry {
                    Py_DECREF(std::mem::replace(&mut (*scope).first, ptr::null_mut()).cast());
                }
                entry.cast()
            }
            Err(()) => ptr::null_mut(),
        }
    }
}

/// `scope("name")(function)`: the decorator.
unsafe extern "C" fn call(this: *mut PyObject, args: *mut PyObject, keywords: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `method_enter`; `args` is a tuple.
    unsafe {
        if PyTuple_Size(args) != 1 || (!keywords.is_null() && PyDict_Size(keywords) != 0) {
            PyErr_SetString(PyExc_TypeError, c"a scope as a decorator takes one function".as_ptr());
            return ptr::null_mut();
        }
        let decorate = DECORATE.get();
        if decorate.is_null() {
            return decorate;
        }
        PyObject_CallFunctionObjArgs(decorate, this, PyTuple_GetItem(args, 0), ptr::null_mut::<PyObject>())
    }
}

unsafe extern "C" fn repr(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `method_enter`.
    unsafe {
        let scope: *mut Scope = this.cast();
        let word = if (*scope).kind == Kind::StepBegin { c"step(%R)" } else { c"scope(%R)" };
        PyUnicode_FromFormat(word.as_ptr(), (*scope).name)
    }
}

unsafe extern "C" fn traverse(this: *mut PyObject, visit: visitproc, arg: *mut std::ffi::c_void) -> std::ffi::c_int {
    // SAFETY: called by the garbage collector on a live object.
    unsafe {
        for object in [Py_TYPE(this).cast(), (*this.cast::<Scope>()).tags] {
            if !object.is_null() {
                let result = visit(object, arg);
                if result != 0 {
                    return result;
                }
            }
        }
    }
    0
}

unsafe extern "C" fn clear(this: *mut PyObject) -> std::ffi::c_int {
    // SAFETY: as for `traverse`.
    unsafe { Py_CLEAR(&raw mut (*this.cast::<Scope>()).tags) };
    0
}

unsafe extern "C" fn dealloc(this: *mut PyObject) {
    // SAFETY: the last reference is gone; the fields are ours to let go.
    unsafe {
        let scope: *mut Scope = this.cast();
        let kind = Py_TYPE(this);
        if !(*scope).tags.is_null() {
            PyObject_GC_UnTrack(this.cast());
            Py_DECREF((*scope).tags);
        }
        if !(*scope).first.is_null() {
            abandon(scope);
        }
        Py_DECREF((*scope).name);
        PyObject_GC_Del(this.cast());
        Py_DECREF(kind.cast());
    }
}

/// Entered, never exited, and now nobody can: it ends here.
#[cold]
unsafe fn abandon(scope: *mut Scope) {
    let now = clock::now();
    // SAFETY: called by `dealloc`; an exception may be on its way and must survive.
    unsafe {
        let (mut kind, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        guarded(Collector::Scopes, (), || exit(scope, now));
        Py_XDECREF((*scope).first.cast());
        PyErr_Restore(kind, value, traceback);
    }
}

/// Makes the type, as a new reference; null with an exception set if that fails.
///
/// # Safety
/// The GIL is held.
pub unsafe fn prepare() -> *mut PyObject {
    static METHODS: Gil<[PyMethodDef; 4]> = Gil::new([
        method(c"__enter__", method_enter),
        PyMethodDef {
            ml_name: c"__exit__".as_ptr(),
            ml_meth: PyMethodDefPointer { PyCFunctionFast: method_exit },
            ml_flags: METH_FASTCALL,
            ml_doc: ptr::null(),
        },
        method(c"_begin", method_begin),
        PyMethodDef::zeroed(),
    ]);
    // SAFETY: the spec is read during the call; methods live for ever.
    unsafe {
        let mut slots = [
            PyType_Slot { slot: Py_tp_dealloc, pfunc: dealloc as *mut _ },
            PyType_Slot { slot: Py_tp_traverse, pfunc: traverse as *mut _ },
            PyType_Slot { slot: Py_tp_clear, pfunc: clear as *mut _ },
            PyType_Slot { slot: Py_tp_call, pfunc: call as *mut _ },
            PyType_Slot { slot: Py_tp_repr, pfunc: repr as *mut _ },
            PyType_Slot { slot: Py_tp_methods, pfunc: METHODS.get().as_mut_ptr().cast() },
            PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
        ];
        let mut spec = PyType_Spec {
            name: c"inferscope._native.Scope".as_ptr(),
            basicsize: size_of::<Scope>() as i32,
            itemsize: 0,
            flags: (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | DISALLOW_INSTANTIATION) as u32,
            slots: slots.as_mut_ptr(),
        };
        let made = PyType_FromSpec(&mut spec);
        *TYPE.get() = made.cast();
        Py_XINCREF(made);
        made
    }
}
