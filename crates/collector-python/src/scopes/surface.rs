//! What Python sees of a scope: a context manager and a decorator.
//!
//! `with` looks `__enter__` and `__exit__` up and binds them, and a bound method is an object made and thrown away. So both
//! bind to the scope itself, which is called: without arguments to enter, with the three of an exit to leave, with one
//! function to decorate it. Scopes themselves are taken from a short list of used ones.

use super::super::arguments::Imported;
use super::super::callable::{
    HAVE_VECTORCALL, METHOD_DESCRIPTOR, Vectorcall, called_with, make_type, method, vectorcall_at,
};
use super::super::docs;
use super::super::gil::Gil;
use super::super::refs::{Used, decref, incref, none, xdecref};
use super::super::wrong_arguments;
use super::scope::{self, Scope};
use pyo3::ffi::*;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use trace::status::Collector;
use trace::{Kind, clock};
use workload::guard::guarded;
use workload::session;

static TYPE: Gil<*mut PyTypeObject> = Gil::new(ptr::null_mut());
static DECORATE: Imported = Imported::new(c"inferscope._decorate", c"decorate");

static USED: Gil<Used<Scope>> = Gil::new(Used::new());

/// A new scope object; takes over both references.
///
/// # Safety
/// The GIL is held; `name` is an exact `str`; `tags` may be null.
#[inline(always)]
pub unsafe fn new(kind: Kind, name: *mut PyObject, tags: *mut PyObject) -> *mut PyObject {
    // SAFETY: the type is made with the module; every field is written before anybody sees the object.
    unsafe {
        let scope = USED.get().take().unwrap_or_else(|| PyObject_GC_New(*TYPE.get()));
        if scope.is_null() {
            decref(name);
            xdecref(tags);
            return ptr::null_mut();
        }
        (*scope).vectorcall = vectorcall;
        scope::fill(scope, kind, name, tags);
        if !tags.is_null() {
            PyObject_GC_Track(scope.cast());
        }
        scope.cast()
    }
}

unsafe extern "C" fn vectorcall(
    this: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls with a live object of the type and the GIL.
    unsafe {
        match called_with(count) {
            0 if keywords.is_null() => enter(this),
            3 if keywords.is_null() => exit(this),
            1 if keywords.is_null() => {
                let decorate = DECORATE.get();
                if decorate.is_null() {
                    return decorate;
                }
                PyObject_CallFunctionObjArgs(decorate, this, *args, ptr::null_mut::<PyObject>())
            }
            given => wrong_arguments::of_decorator(this, given, keywords),
        }
    }
}

#[inline(always)]
unsafe fn enter(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `vectorcall`.
    unsafe {
        if let Some(session) = session::current() {
            match guarded(Collector::Scopes, Ok(ptr::null_mut()), || scope::enter(this.cast(), session)) {
                Ok(entry) => xdecref(entry.cast()),
                Err(()) => return ptr::null_mut(),
            }
        }
        incref(this)
    }
}

#[inline(always)]
unsafe fn exit(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `vectorcall`.
    unsafe {
        let scope: *mut Scope = this.cast();
        if (*scope).open > 0 {
            let now = clock::now();
            guarded(Collector::Scopes, (), || scope::exit(scope, now));
        }
        none()
    }
}

/// `_begin()`: for generators, which leave and come back. The entry, or None when nobody records.
unsafe extern "C" fn begin(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `vectorcall`.
    unsafe {
        let Some(session) = session::current() else { return none() };
        let scope: *mut Scope = this.cast();
        match guarded(Collector::Scopes, Ok(ptr::null_mut()), || scope::enter(scope, session)) {
            Ok(entry) if entry.is_null() => none(),
            Ok(entry) => {
                // The entry is closed by its own `end()`: the scope object itself is not open.
                (*scope).open -= 1;
                if (*scope).first == entry {
                    decref(std::mem::replace(&mut (*scope).first, ptr::null_mut()).cast());
                }
                entry.cast()
            }
            Err(()) => ptr::null_mut(),
        }
    }
}

/// `__reduce__()`: decorated functions travel to other processes, and their scope with them.
unsafe extern "C" fn reduce(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `vectorcall`.
    unsafe {
        let scope: *mut Scope = this.cast();
        let module = PyImport_ImportModule(c"inferscope".as_ptr());
        if module.is_null() {
            return module;
        }
        let tags = if (*scope).tags.is_null() { Py_None() } else { (*scope).tags };
        let reduced = if (*scope).kind == Kind::StepBegin {
            let step = PyObject_GetAttrString(module, c"step".as_ptr());
            Py_BuildValue(c"N(OOO)".as_ptr(), step, (*scope).name, Py_None(), tags)
        } else {
            let scope_function = PyObject_GetAttrString(module, c"scope".as_ptr());
            Py_BuildValue(c"N(OO)".as_ptr(), scope_function, (*scope).name, tags)
        };
        decref(module);
        reduced
    }
}

unsafe extern "C" fn repr(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `vectorcall`.
    unsafe {
        let scope: *mut Scope = this.cast();
        let word = if (*scope).kind == Kind::StepBegin { c"step(%R)" } else { c"scope(%R)" };
        PyUnicode_FromFormat(word.as_ptr(), (*scope).name)
    }
}

unsafe extern "C" fn traverse(this: *mut PyObject, visit: visitproc, arg: *mut c_void) -> c_int {
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

unsafe extern "C" fn clear(this: *mut PyObject) -> c_int {
    // SAFETY: as for `traverse`.
    unsafe { Py_CLEAR(&raw mut (*this.cast::<Scope>()).tags) };
    0
}

unsafe extern "C" fn dealloc(this: *mut PyObject) {
    // SAFETY: the last reference is gone; the fields are ours to let go.
    unsafe {
        let scope: *mut Scope = this.cast();
        if (*scope).tracked {
            PyObject_GC_UnTrack(this.cast());
        }
        if !(*scope).first.is_null() {
            scope::abandon(scope);
        }
        xdecref((*scope).tags);
        decref((*scope).name);
        if USED.get().put(scope) {
            return;
        }
        let kind = Py_TYPE(this);
        PyObject_GC_Del(this.cast());
        decref(kind.cast());
    }
}

#[repr(C)]
struct Method {
    head: PyObject,
    vectorcall: Vectorcall,
}

/// `__enter__` and `__exit__`: bound to a scope they are the scope; from the class they take the scope first.
unsafe extern "C" fn bind(this: *mut PyObject, object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython; null means that the class itself was asked.
    unsafe { incref(if object.is_null() { this } else { object }) }
}

/// From the class, and from 3.14 on in every `with`: the scope comes first.
unsafe extern "C" fn vectorcall_unbound(
    _: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with that many arguments.
    unsafe {
        let count = called_with(count);
        if count == 0 || Py_TYPE(*args) != *TYPE.get() {
            PyErr_SetString(PyExc_TypeError, c"a scope is needed".as_ptr());
            return ptr::null_mut();
        }
        vectorcall(*args, args.add(1), count - 1, keywords)
    }
}

/// As [`call`], for a method from the class.
unsafe extern "C" fn call_unbound(_: *mut PyObject, args: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython with a tuple; only the first argument is read, except for one that is decorated.
    unsafe {
        let count = PyTuple_Size(args) as usize;
        let item = |at: usize| if at < count { PyTuple_GetItem(args, at as Py_ssize_t) } else { ptr::null_mut() };
        let first = [item(0), item(1)];
        vectorcall_unbound(ptr::null_mut(), first.as_ptr(), count, ptr::null_mut())
    }
}

/// As for any other object that is called without the short cut.
unsafe extern "C" fn call(this: *mut PyObject, args: *mut PyObject, keywords: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython with a tuple; only one argument is ever read.
    unsafe {
        let count = PyTuple_Size(args) as usize;
        let first = if count > 0 { PyTuple_GetItem(args, 0) } else { ptr::null_mut() };
        let keywords = if !keywords.is_null() && PyDict_Size(keywords) > 0 { keywords } else { ptr::null_mut() };
        vectorcall(this, &raw const first, count, keywords)
    }
}

/// Makes the type, as a new reference; null with an exception set if that fails.
///
/// # Safety
/// The GIL is held.
pub unsafe fn prepare() -> *mut PyObject {
    static METHODS: Gil<[PyMethodDef; 3]> =
        Gil::new([method(c"_begin", begin), method(c"__reduce__", reduce), PyMethodDef::zeroed()]);
    // SAFETY: the spec is read during the call; methods live for ever.
    unsafe {
        if !(*TYPE.get()).is_null() {
            // The module is imported once more, by somebody who emptied sys.modules: scopes of before live on.
            return incref((*TYPE.get()).cast());
        }
        let mut members = vectorcall_at(offset_of!(Scope, vectorcall));
        let made = make_type(
            c"inferscope._native.Scope",
            size_of::<Scope>(),
            Py_TPFLAGS_HAVE_GC | HAVE_VECTORCALL,
            &mut [
                PyType_Slot { slot: Py_tp_dealloc, pfunc: dealloc as *mut _ },
                PyType_Slot { slot: Py_tp_traverse, pfunc: traverse as *mut _ },
                PyType_Slot { slot: Py_tp_clear, pfunc: clear as *mut _ },
                PyType_Slot { slot: Py_tp_call, pfunc: call as *mut _ },
                PyType_Slot { slot: Py_tp_repr, pfunc: repr as *mut _ },
                PyType_Slot { slot: Py_tp_doc, pfunc: docs::SCOPE_TYPE.as_ptr().cast_mut().cast() },
                PyType_Slot { slot: Py_tp_methods, pfunc: METHODS.get().as_mut_ptr().cast() },
                PyType_Slot { slot: Py_tp_members, pfunc: members.as_mut_ptr().cast() },
                PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
            ],
        );
        let mut members = vectorcall_at(offset_of!(Method, vectorcall));
        let binder = make_type(
            c"inferscope._native.Method",
            size_of::<Method>(),
            HAVE_VECTORCALL | METHOD_DESCRIPTOR,
            &mut [
                PyType_Slot { slot: Py_tp_descr_get, pfunc: bind as *mut _ },
                PyType_Slot { slot: Py_tp_call, pfunc: call_unbound as *mut _ },
                PyType_Slot { slot: Py_tp_members, pfunc: members.as_mut_ptr().cast() },
                PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
            ],
        );
        if made.is_null() || binder.is_null() {
            return ptr::null_mut();
        }
        let method: *mut Method = PyObject_New(binder.cast());
        if method.is_null() {
            return ptr::null_mut();
        }
        (*method).vectorcall = vectorcall_unbound;
        let set = |name: &std::ffi::CStr| PyObject_SetAttrString(made, name.as_ptr(), method.cast()) == 0;
        if !set(c"__enter__") || !set(c"__exit__") {
            return ptr::null_mut();
        }
        decref(method.cast());
        *TYPE.get() = made.cast();
        incref(made)
    }
}
