//! The functions that NVTX calls in place of its own, each behind a guard. What is not here (names of threads, devices and
//! streams, resources, the end of a domain) NVTX turns into nothing.

use super::attributes::{self, Attributes, Message};
use super::domains::{self, Domain};
use super::record::{self, Finished};
use super::stacks::NOT_FOLLOWED;
use super::{names, ranges, stacks};
use std::ffi::{c_char, c_int, c_void};
use trace::clock;
use trace::status::Collector::Nvtx;
use workload::guard::guarded;
use workload::session::Session;

/// NVTX's modules of functions.
pub const CORE: c_int = 1;
pub const CORE2: c_int = 5;

type Handle = *const c_void;
type Wide = *const u32;
type Function = *const c_void;

/// NVTX's numbers and our functions for them. The numbers never change.
pub fn core() -> [(usize, Function); 13] {
    [
        (1, mark_ex as Function),
        (2, mark_a as Function),
        (3, mark_w as Function),
        (4, range_start_ex as Function),
        (5, range_start_a as Function),
        (6, range_start_w as Function),
        (7, range_end as Function),
        (8, range_push_ex as Function),
        (9, range_push_a as Function),
        (10, range_push_w as Function),
        (11, range_pop as Function),
        (12, name_category_a as Function),
        (13, name_category_w as Function),
    ]
}

pub fn core2() -> [(usize, Function); 11] {
    [
        (1, domain_mark_ex as Function),
        (2, domain_range_start_ex as Function),
        (3, domain_range_end as Function),
        (4, domain_range_push_ex as Function),
        (5, domain_range_pop as Function),
        (8, domain_name_category_a as Function),
        (9, domain_name_category_w as Function),
        (10, domain_register_string_a as Function),
        (11, domain_register_string_w as Function),
        (12, domain_create_a as Function),
        (13, domain_create_w as Function),
    ]
}

const UNNAMED: Handle = std::ptr::null();

/// Runs `body` while somebody records, behind a guard.
#[inline(always)]
fn recorded<R: Copy>(otherwise: R, body: impl FnOnce(&'static Session) -> R) -> R {
    guarded(Nvtx, otherwise, || record::session().map_or(otherwise, body))
}

// SAFETY of what follows, all of it: handles, attributes and strings are what the program gave to NVTX for this very call, as
// NVTX documents them, and handles come from the functions below.

#[inline(always)]
unsafe fn domain(handle: Handle) -> &'static Domain {
    // SAFETY: see above.
    unsafe { domains::of(handle) }
}

#[inline(always)]
unsafe fn mark(handle: Handle, (message, category): (Message, u32)) {
    let time = clock::now();
    recorded((), |session| {
        // SAFETY: see above.
        let (name, args) = unsafe { (names::name(session, message), domain(handle).args(category, session)) };
        record::write(session, &Finished { time, duration: 0, name: &name, args, thread: None });
    });
}

#[inline(always)]
unsafe fn start(handle: Handle, (message, category): (Message, u32)) -> u64 {
    recorded(0, |session| {
        // SAFETY: see above.
        let (name, args) = unsafe { (names::name(session, message), domain(handle).args(category, session)) };
        ranges::start(session, name, args)
    })
}

#[inline(always)]
unsafe fn push(handle: Handle, (message, category): (Message, u32)) -> c_int {
    recorded(NOT_FOLLOWED, |session| {
        // SAFETY: see above.
        let (name, domain) = unsafe { (names::name(session, message), domain(handle)) };
        stacks::push(session, domain, name, domain.args(category, session))
    })
}

#[inline(always)]
unsafe fn pop(handle: Handle) -> c_int {
    // SAFETY: see above.
    recorded(NOT_FOLLOWED, |session| stacks::pop(session, unsafe { domain(handle) }))
}

/// Makes functions of NVTX's signatures: `name(arguments) -> result = body`.
macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? = $body:expr;)*) => {
        $(#[allow(unused_unsafe)] // The end of a range takes a number alone.
        unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
            // SAFETY: see above.
            unsafe { $body }
        })*
    };
}

functions! {
    mark_ex(it: *const Attributes) = mark(UNNAMED, attributes::read(it));
    mark_a(text: *const c_char) = mark(UNNAMED, (Message::Narrow(text), 0));
    mark_w(text: Wide) = mark(UNNAMED, (Message::Wide(text), 0));
    domain_mark_ex(domain: Handle, it: *const Attributes) = mark(domain, attributes::read(it));

    range_start_ex(it: *const Attributes) -> u64 = start(UNNAMED, attributes::read(it));
    range_start_a(text: *const c_char) -> u64 = start(UNNAMED, (Message::Narrow(text), 0));
    range_start_w(text: Wide) -> u64 = start(UNNAMED, (Message::Wide(text), 0));
    domain_range_start_ex(domain: Handle, it: *const Attributes) -> u64 = start(domain, attributes::read(it));
    range_end(id: u64) = recorded((), |session| ranges::end(session, id));
    domain_range_end(_domain: Handle, id: u64) = recorded((), |session| ranges::end(session, id));

    range_push_ex(it: *const Attributes) -> c_int = push(UNNAMED, attributes::read(it));
    range_push_a(text: *const c_char) -> c_int = push(UNNAMED, (Message::Narrow(text), 0));
    range_push_w(text: Wide) -> c_int = push(UNNAMED, (Message::Wide(text), 0));
    range_pop() -> c_int = pop(UNNAMED);
    domain_range_push_ex(domain: Handle, it: *const Attributes) -> c_int = push(domain, attributes::read(it));
    domain_range_pop(domain: Handle) -> c_int = pop(domain);

    name_category_a(id: u32, text: *const c_char) = domain_name_category_a(UNNAMED, id, text);
    name_category_w(id: u32, text: Wide) = domain_name_category_w(UNNAMED, id, text);
    domain_name_category_a(handle: Handle, id: u32, text: *const c_char) =
        recorded((), |session| attributes::narrow(text, |bytes| domain(handle).name_category(id, bytes, session)));
    domain_name_category_w(handle: Handle, id: u32, text: Wide) =
        recorded((), |session| attributes::wide(text, |bytes| domain(handle).name_category(id, bytes, session)));

    domain_register_string_a(_domain: Handle, text: *const c_char) -> Handle =
        recorded(UNNAMED, |session| attributes::narrow(text, |bytes| names::register(session, bytes)));
    domain_register_string_w(_domain: Handle, text: Wide) -> Handle =
        recorded(UNNAMED, |session| attributes::wide(text, |bytes| names::register(session, bytes)));
    domain_create_a(text: *const c_char) -> Handle =
        recorded(UNNAMED, |session| attributes::narrow(text, |bytes| domains::create(session, bytes)));
    domain_create_w(text: Wide) -> Handle =
        recorded(UNNAMED, |session| attributes::wide(text, |bytes| domains::create(session, bytes)));
}
