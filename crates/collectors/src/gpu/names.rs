//! Names that CUPTI gives as pointers: each is written into the segment once. A pointer is believed only as long as the same
//! bytes are behind it, for a module may be unloaded and its memory used again.

use crate::session::Session;
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use trace::NameId;

/// Names remembered at a time; beyond it the table starts anew.
const MOST: usize = 20_000;

#[derive(Default)]
pub struct Names {
    known: HashMap<usize, (Box<[u8]>, NameId)>,
}

impl Names {
    /// # Safety
    /// 0, or the address of a string with a zero at its end.
    pub unsafe fn get(&mut self, session: &Session, address: usize) -> NameId {
        if address == 0 {
            return NameId::NONE;
        }
        // SAFETY: by the caller's promise.
        let text = unsafe { CStr::from_ptr(address as *const c_char) };
        if let Some((bytes, id)) = self.known.get(&address)
            && **bytes == *text.to_bytes()
        {
            return *id;
        }
        let id = match session.intern(&text.to_string_lossy()) {
            // The table is full, and work has no room for a name of its own.
            NameId::INLINE => NameId::NONE,
            id => id,
        };
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(address, (text.to_bytes().into(), id));
        id
    }
}
