//! Function → name, by the address of its code object. Nothing is kept alive: when the object goes, its name is forgotten,
//! so the address may become another's. What was seen recently is found by one multiplication and one comparison.

use super::super::gil::Gil;
use super::super::text::plain;
use pyo3::ffi;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::Ordering;
use trace::NameId;
use trace::event::{MAX_TEXT, cut};
use trace::names::SEPARATOR;
use trace::status::Collector;
use workload::call_filter::Filter;
use workload::guard::guarded;
use workload::session::Session;

/// Functions that one process may have recorded; beyond, they are left out and counted.
const MOST: usize = 65_536;
const QUICK: usize = 8192;

#[derive(Clone, Copy)]
struct Quick {
    function: usize,
    /// `NONE`: not recorded.
    name: NameId,
}

/// Addresses are spread well enough by one multiplication.
#[derive(Default)]
struct ByAddress(u64);

impl Hasher for ByAddress {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte) ^ self.0 as usize));
    }
    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Names = HashMap<usize, Known, BuildHasherDefault<ByAddress>>;

struct Known {
    name: NameId,
    /// Tells us when the object goes. None where the address is no object's.
    _watch: Option<Py<PyAny>>,
}

static RECENT: Gil<[Quick; QUICK]> = Gil::new([Quick { function: 0, name: NameId::NONE }; QUICK]);
static NAMES: Gil<Option<Names>> = Gil::new(None);
static FILTER: Gil<Option<Filter>> = Gil::new(None);

#[inline(always)]
fn place(function: usize) -> usize {
    ((function as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - QUICK.ilog2())) as usize
}

/// The name of a function that was seen recently; `NONE` if it is not recorded. None: ask [`known`] or [`admit`].
///
/// # Safety
/// The GIL is held.
#[inline(always)]
pub unsafe fn recent(function: usize) -> Option<NameId> {
    // SAFETY: by the caller's promise; the borrow ends here.
    let quick = unsafe { RECENT.get()[place(function)] };
    (quick.function == function).then_some(quick.name)
}

/// The name of a function that was seen before.
///
/// # Safety
/// The GIL is held.
pub unsafe fn known(function: usize) -> Option<NameId> {
    // SAFETY: by the caller's promise; nothing here calls Python.
    unsafe {
        let name = NAMES.get().as_ref()?.get(&function)?.name;
        RECENT.get()[place(function)] = Quick { function, name };
        Some(name)
    }
}

/// Starts with nothing known and this filter.
///
/// # Safety
/// The GIL is held.
pub unsafe fn prepare(filter: Filter) {
    // SAFETY: by the caller's promise. What was kept is let go after the tables are in order, for that may run code.
    unsafe {
        *RECENT.get() = [Quick { function: 0, name: NameId::NONE }; QUICK];
        *FILTER.get() = Some(filter);
        let old = NAMES.get().replace(Names::default());
        drop(old);
    }
}

/// Takes a function up: decides whether it is recorded and gives it a name. `NONE`: it is not.
///
/// `keep_unwanted` remembers the decision against it too; without, the caller sees to it not to be asked again.
///
/// # Safety
/// The GIL is held, no exception is set, `code` is a code object, `module` gives the name of its module.
#[cold]
#[inline(never)]
pub unsafe fn admit(
    session: &Session,
    code: usize,
    module: impl FnOnce(Python<'_>) -> Option<String>,
    keep_unwanted: bool,
) -> NameId {
    // SAFETY: by the caller's promise.
    if let Some(name) = unsafe { known(code) } {
        return name;
    }
    // SAFETY: as above.
    if unsafe { NAMES.get() }.as_ref().is_none_or(|names| names.len() >= MOST) {
        session.status(Collector::Calls).overflow.fetch_add(1, Ordering::Relaxed);
        return NameId::NONE;
    }
    let admitted = Python::try_attach(|py| {
        // SAFETY: the caller's reference outlives this call.
        let object = unsafe { Bound::from_borrowed_ptr(py, code as *mut ffi::PyObject) };
        let text = |attribute: &str| object.getattr(attribute).ok().and_then(|value| value.str().ok());
        let file = text("co_filename").map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        // SAFETY: by the caller's promise; the borrow ends before Python is called.
        let filter = unsafe { FILTER.get() }.clone().unwrap_or_default();
        let module = if filter.asks_for_module() { module(py).unwrap_or_default() } else { String::new() };
        let name = if filter.wants(&module, &file) {
            let qualified = text("co_qualname").or_else(|| text("co_name"));
            let function = qualified.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let line = text("co_firstlineno").map(|line| line.to_string()).unwrap_or_default();
            // The file and the line are worth more than the end of a very long name.
            let function = plain(cut(&function, MAX_TEXT / 4));
            intern(session, &format!("{function}{SEPARATOR}{}{SEPARATOR}{line}", plain(cut(&file, MAX_TEXT / 2))))
        } else {
            NameId::NONE
        };
        if name != NameId::NONE || keep_unwanted {
            // SAFETY: by the caller's promise.
            unsafe { remember(code, name, Some(&object)) };
        }
        name
    });
    // An interpreter that is being taken down answers no more questions.
    admitted.unwrap_or(NameId::NONE)
}

/// Calls have no room for a name beside the record: when the table is full, the function is left out and counted.
pub fn intern(session: &Session, text: &str) -> NameId {
    match session.intern(text) {
        NameId::INLINE => {
            session.status(Collector::Calls).overflow.fetch_add(1, Ordering::Relaxed);
            NameId::NONE
        }
        name => name,
    }
}

/// Remembers a name for as long as `object` lives; without an object, for good.
///
/// # Safety
/// The GIL is held and no exception is set.
pub unsafe fn remember(function: usize, name: NameId, object: Option<&Bound<'_, PyAny>>) {
    // What cannot be watched is kept instead.
    let watch = object.map(|object| watch(object, function).unwrap_or_else(|| object.clone().unbind()));
    // SAFETY: by the caller's promise; nothing here calls Python.
    unsafe {
        if let Some(names) = NAMES.get()
            && names.len() < MOST
        {
            names.insert(function, Known { name, _watch: watch });
            RECENT.get()[place(function)] = Quick { function, name };
        }
    }
}

/// A weak reference whose callback forgets the name.
fn watch(object: &Bound<'_, PyAny>, function: usize) -> Option<Py<PyAny>> {
    static METHOD: Gil<ffi::PyMethodDef> = Gil::new(ffi::PyMethodDef {
        ml_name: c"gone".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: gone },
        ml_flags: ffi::METH_O,
        ml_doc: std::ptr::null(),
    });
    let py = object.py();
    // SAFETY: attached; the definition lives for ever, and every new reference is taken by a `Bound`.
    unsafe {
        let address = Bound::from_owned_ptr_or_opt(py, ffi::PyLong_FromSize_t(function))?;
        let method = ffi::PyCFunction_NewEx(METHOD.get(), address.as_ptr(), std::ptr::null_mut());
        let callback = Bound::from_owned_ptr_or_err(py, method).ok()?;
        let reference = ffi::PyWeakref_NewRef(object.as_ptr(), callback.as_ptr());
        Some(Bound::from_owned_ptr_or_err(py, reference).ok()?.unbind())
    }
}

/// Called with the address in place of `self`, while the object is on its way out.
unsafe extern "C" fn gone(address: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guarded(Collector::Calls, (), || {
        // SAFETY: called by CPython with the GIL. The borrow ends before the reference is let go.
        let _ = Python::try_attach(|_| unsafe {
            let function = ffi::PyLong_AsSize_t(address);
            RECENT.get()[place(function)] = Quick { function: 0, name: NameId::NONE };
            drop(NAMES.get().as_mut().and_then(|names| names.remove(&function)));
        });
    });
    // SAFETY: as above.
    unsafe { ffi::Py_NewRef(ffi::Py_None()) }
}
