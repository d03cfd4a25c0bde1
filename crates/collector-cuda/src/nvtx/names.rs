//! Texts → numbers of names. A text that was used before is found by its bytes, without a lock, for a program may put another
//! text at the same address. Nothing here is ever freed, so a fork in the middle leaves everything as it was.

use super::attributes::{self, Message};
use super::record;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use trace::NameId;
use trace::event::{MAX_TEXT, cut};
use trace::names::SEPARATOR;
use trace::status::Collector;
use workload::session::Session;

/// A name's number, and its text if there was no more room for names.
pub struct Named {
    pub id: NameId,
    pub text: Option<Box<str>>,
}

/// A text that is known, or was registered by the program: its address is the handle.
pub struct Known {
    hash: u64,
    bytes: Box<[u8]>,
    /// The session's generation above, the name below.
    number: AtomicU64,
    next: *const Known,
}

const BUCKETS: usize = 4096;
static TABLE: [AtomicPtr<Known>; BUCKETS] = [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Texts remembered for speed alone. A program that makes up a new name each time pays a lock and a hash for each.
const MOST_USED: usize = 2 * BUCKETS;
/// Texts registered by the program, which does that to use them again and again.
const MOST_REGISTERED: usize = 16 * BUCKETS;

/// The name of a message.
///
/// # Safety
/// The message comes from an NVTX call in progress.
#[inline]
pub unsafe fn name(session: &'static Session, message: Message) -> Named {
    // SAFETY: by the caller's promise.
    unsafe {
        match message {
            Message::Narrow(text) if !text.is_null() => attributes::narrow(text, |bytes| of_bytes(session, bytes)),
            Message::Wide(text) if !text.is_null() => attributes::wide(text, |bytes| of_bytes(session, bytes)),
            Message::Registered(handle) if !handle.is_null() => (*handle.cast::<Known>()).named(session),
            _ => of_bytes(session, b"(no message)"),
        }
    }
}

#[inline]
fn of_bytes(session: &'static Session, bytes: &[u8]) -> Named {
    match find(bytes, hash(bytes)) {
        Some(known) => known.named(session),
        None => first_use(session, bytes),
    }
}

/// A handle for a text. Null, and so no name, when there are too many.
pub fn register(session: &'static Session, bytes: &[u8]) -> *const c_void {
    let hash = hash(bytes);
    let known = find(bytes, hash).or_else(|| insert(bytes, hash, 0, MOST_REGISTERED));
    if known.is_none() {
        session.status(Collector::Nvtx).overflow.fetch_add(1, Ordering::Relaxed);
    }
    known.map_or(ptr::null(), |known| ptr::from_ref(known).cast())
}

impl Known {
    #[inline]
    fn named(&self, session: &'static Session) -> Named {
        let number = self.number.load(Ordering::Relaxed);
        if (number >> 32) as u32 == session.generation {
            return Named { id: NameId(number as u32), text: None };
        }
        let named = intern(session, &self.bytes);
        if named.text.is_none() {
            self.number.store(packed(session, named.id), Ordering::Relaxed);
        }
        named
    }
}

fn packed(session: &Session, id: NameId) -> u64 {
    u64::from(session.generation) << 32 | u64::from(id.0)
}

#[cold]
#[inline(never)]
fn first_use(session: &'static Session, bytes: &[u8]) -> Named {
    let named = intern(session, bytes);
    if named.text.is_none() {
        insert(bytes, hash(bytes), packed(session, named.id), MOST_USED);
    }
    named
}

#[cold]
fn intern(session: &'static Session, bytes: &[u8]) -> Named {
    record::is_on(session);
    let text = text(bytes, MAX_TEXT, session);
    match session.intern_message(&text) {
        NameId::INLINE => Named { id: NameId::INLINE, text: Some(cut(&text, MAX_TEXT).into()) },
        id => Named { id, text: None },
    }
}

/// Bytes as text of at most `most` bytes. The separator belongs to functions: in a name it becomes a picture of itself.
pub fn text(bytes: &[u8], most: usize, session: &Session) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(most + 4)]).replace(SEPARATOR, "\u{241f}");
    let kept = cut(&text, most);
    if kept.len() < text.len() {
        session.status(Collector::Nvtx).cut.fetch_add(1, Ordering::Relaxed);
    }
    kept.to_owned()
}

#[inline]
fn find(bytes: &[u8], hash: u64) -> Option<&'static Known> {
    let mut at = TABLE[hash as usize % BUCKETS].load(Ordering::Acquire).cast_const();
    // SAFETY: null, or leaked by `insert`.
    while let Some(known) = unsafe { at.as_ref() } {
        if known.hash == hash && *known.bytes == *bytes {
            return Some(known);
        }
        at = known.next;
    }
    None
}

/// Two threads may insert the same text at once; then it stands there twice, which harms nobody.
fn insert(bytes: &[u8], hash: u64, number: u64, most: usize) -> Option<&'static Known> {
    if COUNT.load(Ordering::Relaxed) >= most {
        return None;
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    let bucket = &TABLE[hash as usize % BUCKETS];
    let mut head = bucket.load(Ordering::Acquire);
    let known = Box::leak(Box::new(Known { hash, bytes: bytes.into(), number: AtomicU64::new(number), next: head }));
    loop {
        match bucket.compare_exchange(head, known, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(known),
            Err(other) => head = other,
        }
        known.next = head;
    }
}

/// Of the length and at most 64 bytes at either end: what differs in between is found by comparing.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    const MOST: usize = 64;
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let part = |sum: u64, part: &[u8]| {
        let mut words = part.chunks_exact(8);
        let sum =
            words.by_ref().fold(sum, |sum, word| mix(sum, u64::from_le_bytes(word.try_into().unwrap_or_default())));
        words.remainder().iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
    };
    let sum = part(bytes.len() as u64, &bytes[..bytes.len().min(MOST)]);
    let sum = if bytes.len() > MOST { part(sum, &bytes[bytes.len() - MOST..]) } else { sum };
    // The best bits of a product are the upper ones.
    sum.rotate_left(32)
}
