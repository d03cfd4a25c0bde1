//! One time that a scope was entered. The context variable holds the innermost entry; each knows the one around it, so
//! exits in any order, in another task or in another thread find their begin.

use super::super::callable::{make_type, method};
use super::super::gil::Gil;
use super::super::refs::{Used, decref, incref, none, xdecref};
use super::{context, record};
use crate::steps;
use pyo3::ffi::*;
use std::ptr;
use trace::status::Collector;
use trace::{Kind, NameId};
use workload::guard::guarded;
use workload::session;

/// Refers to no object of the user's but the name, so it can be part of no cycle.
#[repr(C)]
pub struct Entry {
    head: PyObject,
    /// The entry around this one, owned, or null.
    pub outer: *mut Entry,
    /// Only while a generator is suspended: the innermost entry inside it, owned, or null for this one itself.
    inner: *mut Entry,
    /// A `str`, owned.
    name: *mut PyObject,
    begin: u64,
    /// The scope object that was entered, by its number: the object itself may be gone.
    pub scope: u64,
    pub id: u32,
    name_id: NameId,
    /// Which session knows the id. 0 once it is closed.
    pub generation: u32,
    end_kind: Kind,
}

static TYPE: Gil<*mut PyTypeObject> = Gil::new(ptr::null_mut());
static USED: Gil<Used<Entry>> = Gil::new(Used::new());

#[inline(always)]
pub unsafe fn is_entry(object: *mut PyObject) -> bool {
    // SAFETY: any object has a type; the GIL is held.
    unsafe { Py_TYPE(object) == *TYPE.get() }
}

/// What a new entry needs to be told.
pub struct Begin {
    pub kind: Kind,
    pub name: *mut PyObject,
    pub name_id: NameId,
    pub scope: u64,
    pub id: u32,
    pub generation: u32,
}

impl Entry {
    /// A new entry inside `outer` (whose reference it takes over), or null without memory.
    ///
    /// # Safety
    /// The GIL is held.
    #[inline(always)]
    pub unsafe fn new(begin: Begin, outer: *mut Entry) -> *mut Entry {
        // SAFETY: the type is made before any scope is; all fields are written before anybody sees the object.
        unsafe {
            let entry = USED.get().take().unwrap_or_else(|| PyObject_New(*TYPE.get()));
            if entry.is_null() {
                PyErr_Clear();
                xdecref(outer.cast());
                return entry;
            }
            (*entry).outer = outer;
            (*entry).inner = ptr::null_mut();
            (*entry).name = incref(begin.name);
            (*entry).begin = 0;
            (*entry).scope = begin.scope;
            (*entry).id = begin.id;
            (*entry).name_id = begin.name_id;
            (*entry).generation = begin.generation;
            (*entry).end_kind = match begin.kind {
                Kind::StepBegin => Kind::StepEnd,
                Kind::EntryBegin => Kind::EntryEnd,
                _ => Kind::ScopeEnd,
            };
            entry
        }
    }

    pub fn set_begin(&mut self, ticks: u64) {
        self.begin = ticks;
    }

    pub fn open(&self) -> bool {
        self.generation != 0
    }
}

/// The nearest entry at or around `entry` that is open in this generation, as a new reference; takes `entry`'s over.
///
/// # Safety
/// The GIL is held.
#[inline(always)]
pub unsafe fn nearest_open(mut entry: *mut Entry, generation: u32) -> *mut Entry {
    // SAFETY: `entry` is null or a live entry that we own a reference to.
    unsafe {
        while !entry.is_null() && (*entry).generation != generation {
            let outer = (*entry).outer;
            if !outer.is_null() {
                incref(outer.cast());
            }
            decref(entry.cast());
            entry = outer;
        }
        entry
    }
}

/// Ends an entry at `now`: writes its record and, if it is the innermost of this context, uncovers the one around it.
/// `innermost` is what the context says, borrowed.
///
/// # Safety
/// The GIL is held, no exception is set, `entry` is alive and open.
pub unsafe fn close(entry: *mut Entry, innermost: *mut Entry, now: u64) {
    // SAFETY: by the caller's promise.
    unsafe {
        let generation = std::mem::replace(&mut (*entry).generation, 0);
        if let Some(session) = session::current()
            && session.generation == generation
        {
            let entry = &*entry;
            if entry.end_kind == Kind::StepEnd {
                steps::ended(now.saturating_sub(entry.begin));
            }
            record::end(session, entry.end_kind, (entry.name, entry.name_id), entry.id, entry.begin, now);
        }
        if innermost == entry {
            let mut outer = (*entry).outer;
            if !outer.is_null() {
                incref(outer.cast());
                outer = nearest_open(outer, generation);
            }
            context::set(outer);
            xdecref(outer.cast());
        }
    }
}

/// The generator yields: its caller is not inside this scope.
unsafe fn pause(entry: *mut Entry) {
    // SAFETY: the GIL is held and `entry` alive, as for every method.
    unsafe {
        let innermost = context::get();
        if innermost != entry && (*entry).inner.is_null() && leads_to(innermost, entry) {
            // Scopes that the generator's own code has open wait with it.
            (*entry).inner = innermost;
        } else {
            xdecref(innermost.cast());
        }
        context::set((*entry).outer);
    }
}

/// The generator runs on, inside whatever its present caller has open.
unsafe fn resume(entry: *mut Entry) {
    // SAFETY: as for `pause`.
    unsafe {
        let caller = nearest_open(context::get(), (*entry).generation);
        // A task that was started inside the generator and now drives it is no new surrounding.
        let (outer, spare) = if leads_to(caller, entry) { ((*entry).outer, caller) } else { (caller, (*entry).outer) };
        (*entry).outer = outer;
        let inner = std::mem::replace(&mut (*entry).inner, ptr::null_mut());
        context::set(if inner.is_null() { entry } else { inner });
        xdecref(spare.cast());
        xdecref(inner.cast());
    }
}

/// The generator is over.
unsafe fn end(entry: *mut Entry) {
    let now = trace::clock::now();
    // SAFETY: as for `pause`.
    unsafe {
        let innermost = context::get();
        close(entry, innermost, now);
        xdecref(innermost.cast());
    }
}

/// Whether `target` is `entry` or lies around it.
unsafe fn leads_to(mut entry: *mut Entry, target: *mut Entry) -> bool {
    // SAFETY: each entry keeps the next one alive, and the first is the caller's.
    unsafe {
        while !entry.is_null() && entry != target {
            entry = (*entry).outer;
        }
    }
    !entry.is_null()
}

/// Whether a request that is still handled, and known to this generation, is at or around `entry`.
///
/// # Safety
/// The GIL is held, and `entry` is null or alive.
pub unsafe fn is_in_request(mut entry: *mut Entry, generation: u32) -> bool {
    // SAFETY: each entry keeps the next one alive, and the first is the caller's.
    unsafe {
        while !entry.is_null() {
            if (*entry).generation == generation && (*entry).end_kind == Kind::EntryEnd {
                return true;
            }
            entry = (*entry).outer;
        }
    }
    false
}

/// A method without arguments that does something to an open entry.
unsafe fn act(this: *mut PyObject, what: unsafe fn(*mut Entry)) -> *mut PyObject {
    // SAFETY: CPython calls methods with a live object of the type and the GIL.
    unsafe {
        let entry: *mut Entry = this.cast();
        if (*entry).open() {
            guarded(Collector::Scopes, (), || what(entry));
        }
        none()
    }
}

unsafe extern "C" fn method_pause(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { act(this, pause) }
}

unsafe extern "C" fn method_resume(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { act(this, resume) }
}

unsafe extern "C" fn method_end(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { act(this, end) }
}

unsafe extern "C" fn dealloc(this: *mut PyObject) {
    // SAFETY: the last reference is gone; the fields are ours to let go.
    unsafe {
        let entry: *mut Entry = this.cast();
        xdecref((*entry).inner.cast());
        // A long chain is let go in a loop: a thousand nested deallocations could overflow the stack.
        let mut outer = (*entry).outer;
        while !outer.is_null() && Py_REFCNT(outer.cast()) == 1 {
            let next = std::mem::replace(&mut (*outer).outer, ptr::null_mut());
            decref(outer.cast());
            outer = next;
        }
        xdecref(outer.cast());
        decref((*entry).name);
        if !USED.get().put(entry) {
            let kind = Py_TYPE(this);
            PyObject_Free(this.cast());
            decref(kind.cast());
        }
    }
}

/// Makes the type. False with an exception set if that fails.
///
/// # Safety
/// The GIL is held.
pub unsafe fn prepare() -> bool {
    static METHODS: Gil<[PyMethodDef; 4]> = Gil::new([
        method(c"pause", method_pause),
        method(c"resume", method_resume),
        method(c"end", method_end),
        PyMethodDef::zeroed(),
    ]);
    // SAFETY: the spec is read during the call; methods live for ever.
    unsafe {
        let mut slots = [
            PyType_Slot { slot: Py_tp_dealloc, pfunc: dealloc as *mut _ },
            PyType_Slot { slot: Py_tp_methods, pfunc: METHODS.get().as_mut_ptr().cast() },
            PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
        ];
        if !(*TYPE.get()).is_null() {
            return true;
        }
        *TYPE.get() = make_type(c"inferscope._native.Entry", size_of::<Entry>(), 0, &mut slots).cast();
        !(*TYPE.get()).is_null()
    }
}
