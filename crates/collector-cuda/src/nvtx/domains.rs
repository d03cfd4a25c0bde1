//! Domains and their categories, and the JSON that stands beside a range for them: made once for each pair, kept for ever.
//! A domain's address is its handle. No locks, so that a fork finds everything in order.

use super::names;
use std::ffi::c_void;
use std::fmt::Write;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use trace::event::{EVENT_WORDS, TextRole, text_records};
use trace::status::Collector;
use workload::session::Session;

/// Records that go in front of a range.
pub type Args = Box<[[u64; EVENT_WORDS]]>;

pub struct Domain {
    /// Counts from 0, the one without a name.
    pub number: usize,
    name: String,
    categories: [AtomicPtr<Category>; BUCKETS],
    count: AtomicUsize,
    next: *const Domain,
}

// SAFETY: `next` is written before the domain is shared.
unsafe impl Sync for Domain {}

/// A category with its number or name, whichever is known. One that is named later stands before its older self.
struct Category {
    id: u32,
    args: Args,
    next: *const Category,
}

const BUCKETS: usize = 16;
/// Every thread that pushes has a place for each domain.
const MOST_DOMAINS: usize = 256;
const MOST_CATEGORIES: usize = 1024;
/// Even if every byte has to be escaped, domain and category together fit into one record's text.
const LONGEST: usize = 256;

static UNNAMED: Domain = Domain::new(0, String::new(), ptr::null());
/// The latest; each leads to the one before it.
static DOMAINS: AtomicPtr<Domain> = AtomicPtr::new((&raw const UNNAMED).cast_mut());

/// The domain of a handle.
///
/// # Safety
/// Null, or from [`create`].
#[inline]
pub unsafe fn of(handle: *const c_void) -> &'static Domain {
    // SAFETY: by the caller's promise; domains are never freed.
    unsafe { handle.cast::<Domain>().as_ref() }.unwrap_or(&UNNAMED)
}

/// The domain of this name, made if need be. Beyond the limit they are all one, named so.
pub fn create(session: &'static Session, bytes: &[u8]) -> *const c_void {
    let name = names::text(bytes, LONGEST, session);
    let mut made: Option<Box<Domain>> = None;
    loop {
        let head = DOMAINS.load(Ordering::Acquire);
        // SAFETY: never null, never freed.
        let number = unsafe { &*head }.number + 1;
        if let Some(known) = with_name(head, &name) {
            return ptr::from_ref(known).cast();
        }
        let more = number >= MOST_DOMAINS;
        if more {
            session.status(Collector::Nvtx).overflow.fetch_add(1, Ordering::Relaxed);
        }
        if number > MOST_DOMAINS {
            return head.cast_const().cast();
        }
        let name = if more { "(further domains)".to_owned() } else { name.clone() };
        let domain = made.insert(Box::new(Domain::new(number, name, head)));
        let domain: *mut Domain = &mut **domain;
        if DOMAINS.compare_exchange(head, domain, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            std::mem::forget(made);
            return domain.cast_const().cast();
        }
    }
}

fn with_name(mut at: *const Domain, name: &str) -> Option<&'static Domain> {
    // SAFETY: null, or a domain, which is never freed.
    while let Some(domain) = unsafe { at.as_ref() } {
        // The one without a name is nobody's by name.
        if domain.number > 0 && domain.name == name {
            return Some(domain);
        }
        at = domain.next;
    }
    None
}

impl Domain {
    const fn new(number: usize, name: String, next: *const Domain) -> Domain {
        let categories = [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS];
        Domain { number, name, categories, count: AtomicUsize::new(0), next }
    }

    /// What goes in front of a range of this category, if anything does.
    #[inline]
    pub fn args(&'static self, category: u32, session: &'static Session) -> Option<&'static Args> {
        if category == 0 && self.number == 0 {
            return None;
        }
        match self.known(category) {
            Some(args) => Some(args),
            None => self.first_use(category, session),
        }
    }

    #[inline]
    fn known(&self, category: u32) -> Option<&'static Args> {
        let mut at = self.categories[category as usize % BUCKETS].load(Ordering::Acquire).cast_const();
        // SAFETY: null, or leaked by `insert`.
        while let Some(known) = unsafe { at.as_ref() } {
            if known.id == category {
                return Some(&known.args);
            }
            at = known.next;
        }
        None
    }

    /// Beyond the limit a category is left out; the domain never is.
    #[cold]
    fn first_use(&'static self, category: u32, session: &'static Session) -> Option<&'static Args> {
        let made = self.insert(category, self.json(category, None), session);
        if made.is_none() && category != 0 { self.args(0, session) } else { made }
    }

    /// The program gives a category a name.
    pub fn name_category(&'static self, category: u32, bytes: &[u8], session: &'static Session) {
        // 0 is what ranges have that are in none.
        if category == 0 {
            return;
        }
        let json = self.json(category, Some(&names::text(bytes, LONGEST, session)));
        // A program may say the same again and again.
        let is_new = |known: &&Args| !known.iter().copied().eq(text_records(TextRole::Args, &json));
        if self.known(category).is_none_or(|known| is_new(&known)) {
            self.insert(category, json, session);
        }
    }

    fn insert(&self, id: u32, json: String, session: &'static Session) -> Option<&'static Args> {
        if id != 0 && self.count.fetch_add(1, Ordering::Relaxed) >= MOST_CATEGORIES {
            self.count.fetch_sub(1, Ordering::Relaxed);
            session.status(Collector::Nvtx).overflow.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let args = text_records(TextRole::Args, &json).collect();
        let bucket = &self.categories[id as usize % BUCKETS];
        let mut head = bucket.load(Ordering::Acquire);
        let category = Box::leak(Box::new(Category { id, args, next: head }));
        loop {
            match bucket.compare_exchange(head, category, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(&category.args),
                Err(other) => head = other,
            }
            category.next = head;
        }
    }

    fn json(&self, category: u32, name: Option<&str>) -> String {
        let mut json = String::from("{");
        if self.number > 0 {
            json.push_str("\"domain\":");
            quote(&mut json, &self.name);
        }
        if category != 0 {
            json.push_str(if self.number > 0 { ",\"category\":" } else { "\"category\":" });
            match name {
                Some(name) => quote(&mut json, name),
                None => {
                    let _ = write!(json, "{category}");
                }
            }
        }
        json.push('}');
        json
    }
}

fn quote(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            '\u{0}'..='\u{1f}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(character));
            }
            _ => json.push(character),
        }
    }
    json.push('"');
}
