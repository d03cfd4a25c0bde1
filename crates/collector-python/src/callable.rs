//! Types whose objects are called: what the limited API of 3.10 hides of that and every version has all the same.

use pyo3::ffi::*;
use std::ffi::{CStr, c_ulong};
use std::ptr;

/// How CPython calls an object of a type with [`HAVE_VECTORCALL`]: no tuple, no dictionary.
pub type Vectorcall = unsafe extern "C" fn(*mut PyObject, *const *mut PyObject, usize, *mut PyObject) -> *mut PyObject;

pub const HAVE_VECTORCALL: c_ulong = 1 << 11;
/// Called with the object first, it does the same as bound to it.
pub const METHOD_DESCRIPTOR: c_ulong = 1 << 17;
/// Objects come from our functions alone.
pub const DISALLOW_INSTANTIATION: c_ulong = 1 << 7;

/// The number of arguments: the highest bit says something else.
#[inline(always)]
pub fn called_with(count: usize) -> usize {
    count & !(1 << (usize::BITS - 1))
}

/// The member that says where in the object its [`Vectorcall`] stands.
pub fn vectorcall_at(offset: usize) -> [PyMemberDef; 2] {
    offset_member(c"__vectorcalloffset__", offset)
}

/// The member that says where in the object the list of its weak references stands.
pub fn weak_references_at(offset: usize) -> [PyMemberDef; 2] {
    offset_member(c"__weaklistoffset__", offset)
}

fn offset_member(name: &'static CStr, offset: usize) -> [PyMemberDef; 2] {
    let member = PyMemberDef {
        name: name.as_ptr(),
        type_code: Py_T_PYSSIZET,
        offset: offset as Py_ssize_t,
        flags: Py_READONLY,
        doc: ptr::null(),
    };
    [member, PyMemberDef::default()]
}

/// Makes a type; null with an exception set if that fails. `slots` ends with a zero one.
///
/// # Safety
/// The GIL is held, and the slots are right for objects of that size.
pub unsafe fn make_type(name: &'static CStr, size: usize, flags: c_ulong, slots: &mut [PyType_Slot]) -> *mut PyObject {
    let mut spec = PyType_Spec {
        name: name.as_ptr(),
        basicsize: size as i32,
        itemsize: 0,
        flags: (Py_TPFLAGS_DEFAULT | DISALLOW_INSTANTIATION | flags) as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: by the caller's promise; the type copies what it needs of the spec.
    unsafe { PyType_FromSpec(&mut spec) }
}

/// A method without arguments.
pub const fn method(name: &'static CStr, function: PyCFunction) -> PyMethodDef {
    PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunction: function },
        ml_flags: METH_NOARGS,
        ml_doc: ptr::null(),
    }
}
