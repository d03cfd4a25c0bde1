//! What a program hands to NVTX: event attributes and the text in them. Colours and payloads are left alone. Layout and
//! numbers are those of NVTX 2 and 3, which agree.

use std::ffi::{c_char, c_void};
use trace::event::MAX_TEXT;

#[repr(C)]
pub struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    colour: [u32; 2],
    payload: [u32; 2],
    payload_value: u64,
    message_type: i32,
    message: *const c_void,
}

const _: () = assert!(size_of::<Attributes>() == 48 && std::mem::offset_of!(Attributes, message) == 40);

const ASCII: i32 = 1;
const UNICODE: i32 = 2;
const REGISTERED: i32 = 3;

/// A text as the program gave it.
#[derive(Clone, Copy)]
pub enum Message {
    None,
    Narrow(*const c_char),
    /// Characters of `wchar_t`, which has 32 bits here.
    Wide(*const u32),
    /// What `DomainRegisterString` gave.
    Registered(*const c_void),
}

/// The message and the category. A program that set `size` to less has not got the fields beyond.
///
/// # Safety
/// Null, or attributes of an NVTX call in progress.
pub unsafe fn read(attributes: *const Attributes) -> (Message, u32) {
    // SAFETY: by the caller's promise; the first four bytes are there in every version.
    let size = if attributes.is_null() { 0 } else { unsafe { (*attributes).size } };
    if usize::from(size) < size_of::<Attributes>() {
        return (Message::None, 0);
    }
    // SAFETY: it is as large as we think.
    let attributes = unsafe { &*attributes };
    let text = attributes.message;
    let message = match attributes.message_type {
        ASCII => Message::Narrow(text.cast()),
        UNICODE => Message::Wide(text.cast()),
        REGISTERED => Message::Registered(text),
        _ => Message::None,
    };
    (message, attributes.category)
}

/// One character more than is kept tells that there was more.
const ROOM: usize = MAX_TEXT + 4;

/// Calls `then` with the bytes of a text, whatever its encoding; more than `MAX_TEXT` of them: it has to be cut.
///
/// # Safety
/// Null, or a string with a zero at its end.
pub unsafe fn narrow<R>(text: *const c_char, then: impl FnOnce(&[u8]) -> R) -> R {
    if text.is_null() {
        return then(b"");
    }
    // SAFETY: by the caller's promise; not read beyond its zero, nor without end.
    then(unsafe { std::slice::from_raw_parts(text.cast(), libc::strnlen(text, ROOM)) })
}

/// As [`narrow`], for wide characters, in UTF-8. What is no character becomes the sign for that.
///
/// # Safety
/// As for [`narrow`].
pub unsafe fn wide<R>(text: *const u32, then: impl FnOnce(&[u8]) -> R) -> R {
    let mut bytes = [0; ROOM];
    let (mut length, mut at) = (0, text);
    while length <= MAX_TEXT && !at.is_null() {
        // SAFETY: we have not passed the zero yet.
        let number = unsafe { at.read_unaligned() };
        if number == 0 {
            break;
        }
        let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        // At most MAX_TEXT are taken, and a character takes at most 4.
        length += character.encode_utf8(&mut bytes[length..]).len();
        at = at.wrapping_add(1);
    }
    then(&bytes[..length])
}
