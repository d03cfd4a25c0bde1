//! Names that CUPTI gives as pointers: each is written into the segment once. A pointer is believed only as long as the same
//! bytes are behind it, for a module may be unloaded and its memory used again.

use super::decode::Target;
use std::collections::HashMap;
use trace::NameId;

/// Names remembered at a time; beyond it the table starts anew.
const MOST: usize = 20_000;

#[derive(Default)]
pub struct Names {
    known: HashMap<usize, (Box<[u8]>, NameId)>,
    /// There was no more room for one of them.
    pub is_full: bool,
}

impl Names {
    /// # Safety
    /// As for [`Target::text`].
    pub unsafe fn get(&mut self, target: &impl Target, address: usize) -> NameId {
        // SAFETY: by the caller's promise.
        let Some(text) = (unsafe { target.text(address) }) else { return NameId::NONE };
        if let Some((bytes, id)) = self.known.get(&address)
            && **bytes == *text.to_bytes()
        {
            return *id;
        }
        let id = match target.intern_message(&text.to_string_lossy()) {
            // Work has no room for a name of its own.
            NameId::INLINE => {
                self.is_full = true;
                NameId::NONE
            }
            id => id,
        };
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(address, (text.to_bytes().into(), id));
        id
    }
}
