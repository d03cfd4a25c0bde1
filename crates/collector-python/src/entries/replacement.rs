//! What stands in a class or module in the place of a marked function, for an interpreter that runs Python functions without
//! asking how they are called (3.11): calls the function as C does, which goes through its pointer. As a method it is called
//! with the object first; asked for anything it answers as the function does, and from the class it is the function.

use crate::callable::{HAVE_VECTORCALL, METHOD_DESCRIPTOR, Vectorcall, make_type, vectorcall_at};
use crate::gil::Gil;
use crate::refs::{decref, incref};
use crate::scopes::interpreter_function;
use pyo3::ffi::*;
use std::mem::{offset_of, transmute};
use std::ptr;

#[repr(C)]
struct Replacement {
    head: PyObject,
    vectorcall: Vectorcall,
    /// Owned. Never taken from it, and functions that are marked are not made at run time: the garbage collector need not know.
    function: *mut PyObject,
}

static TYPE: Gil<*mut PyTypeObject> = Gil::new(ptr::null_mut());

/// How C calls any object. Set before there is any object of the type.
static CALL: Gil<Option<Vectorcall>> = Gil::new(None);

type Bind = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;

/// A new one; takes the reference over. Null with an exception set without memory.
///
/// # Safety
/// The GIL is held.
pub unsafe fn new(function: *mut PyObject) -> *mut PyObject {
    // SAFETY: the type is made with the module; every field is written before anybody sees the object. The name has had the
    // signature since 3.9.
    unsafe {
        let Some(call) = interpreter_function(c"PyObject_Vectorcall") else {
            decref(function);
            return PyErr_NoMemory();
        };
        *CALL.get() = Some(transmute::<*mut libc::c_void, Vectorcall>(call));
        let made: *mut Replacement = PyObject_New(*TYPE.get());
        if made.is_null() {
            decref(function);
            return PyErr_NoMemory();
        }
        (*made).vectorcall = vectorcall;
        (*made).function = function;
        made.cast()
    }
}

unsafe extern "C" fn vectorcall(
    this: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls with a live object of the type and the GIL.
    unsafe { (*CALL.get()).unwrap_unchecked()((*this.cast::<Replacement>()).function, args, count, keywords) }
}

unsafe extern "C" fn call(this: *mut PyObject, args: *mut PyObject, keywords: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { PyObject_Call((*this.cast::<Replacement>()).function, args, keywords) }
}

/// From the class it is the function, from an object a method.
unsafe extern "C" fn bind(this: *mut PyObject, object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython; null means that the class itself was asked.
    unsafe {
        if object.is_null() || object == Py_None() {
            return incref((*this.cast::<Replacement>()).function);
        }
        match interpreter_function(c"PyMethod_New") {
            Some(method) => transmute::<*mut libc::c_void, Bind>(method)(this, object),
            None => incref(this),
        }
    }
}

unsafe extern "C" fn attribute(this: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { PyObject_GetAttr((*this.cast::<Replacement>()).function, name) }
}

unsafe extern "C" fn set_attribute(this: *mut PyObject, name: *mut PyObject, value: *mut PyObject) -> std::ffi::c_int {
    // SAFETY: called by CPython; null means that it is deleted.
    unsafe { PyObject_SetAttr((*this.cast::<Replacement>()).function, name, value) }
}

unsafe extern "C" fn repr(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { PyObject_Repr((*this.cast::<Replacement>()).function) }
}

unsafe extern "C" fn dealloc(this: *mut PyObject) {
    // SAFETY: the last reference is gone; the fields are ours to let go.
    unsafe {
        decref((*this.cast::<Replacement>()).function);
        let kind = Py_TYPE(this);
        PyObject_Free(this.cast());
        decref(kind.cast());
    }
}

/// Makes the type. False with an exception set if that fails.
///
/// # Safety
/// The GIL is held.
pub unsafe fn prepare() -> bool {
    // SAFETY: the spec is read during the call.
    unsafe {
        if !(*TYPE.get()).is_null() {
            return true;
        }
        let mut members = vectorcall_at(offset_of!(Replacement, vectorcall));
        *TYPE.get() = make_type(
            c"inferscope._native.EntryFunction",
            size_of::<Replacement>(),
            HAVE_VECTORCALL | METHOD_DESCRIPTOR,
            &mut [
                PyType_Slot { slot: Py_tp_dealloc, pfunc: dealloc as *mut _ },
                PyType_Slot { slot: Py_tp_call, pfunc: call as *mut _ },
                PyType_Slot { slot: Py_tp_descr_get, pfunc: bind as *mut _ },
                PyType_Slot { slot: Py_tp_getattro, pfunc: attribute as *mut _ },
                PyType_Slot { slot: Py_tp_setattro, pfunc: set_attribute as *mut _ },
                PyType_Slot { slot: Py_tp_repr, pfunc: repr as *mut _ },
                PyType_Slot { slot: Py_tp_members, pfunc: members.as_mut_ptr().cast() },
                PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
            ],
        )
        .cast();
        !(*TYPE.get()).is_null()
    }
}
