//! Stacks by number: a frame that was seen before, with the same frames outside of it, has its number already, and a stack is found by one look for
//! its innermost frame. A new frame is written among the names of the segment, once. Bounded, and made before the first block comes.

use std::alloc::{Layout, alloc_zeroed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trace::NameId;
use trace::codes::StackMissing;
use trace::event::MAX_TEXT;
use trace::stack_frame::StackFrame;
use workload::python_stack::{MOST_FRAMES, RawFrame, mix};

/// Frames of all stacks of a recording. With their names they take less than a megabyte of the segment, and of the program's memory some more.
const MOST: u32 = 65_536;
/// Twice as many, so that a look ends soon. Zeroed pages that nobody writes are no memory: most programs have a few thousand frames.
const PLACES: usize = 2 * MOST as usize;

#[repr(C)]
struct Place {
    /// The frame and all outside of it; 0: free. Written after the name, so that whoever finds it finds its name.
    key: AtomicU64,
    name: AtomicU32,
}

pub struct StackNames {
    /// The session whose names these are.
    pub generation: u32,
    used: AtomicU32,
    /// Held by the thread that is writing a new frame. Nobody waits for it.
    writing: AtomicBool,
    places: Box<[Place]>,
}

/// Lets go of `writing`, whatever happens.
struct Held<'a>(&'a AtomicBool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl StackNames {
    /// None: there is no memory for it.
    pub fn new(generation: u32) -> Option<StackNames> {
        let layout = Layout::array::<Place>(PLACES).ok()?;
        // SAFETY: so many places, all of them 0, which is a place that is free; the box frees them by the same layout.
        let places = unsafe {
            let places = alloc_zeroed(layout).cast::<Place>();
            if places.is_null() {
                return None;
            }
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(places, PLACES))
        };
        Some(StackNames { generation, used: AtomicU32::new(0), writing: AtomicBool::new(false), places })
    }

    /// The number of a stack, innermost frame first. `describe` writes the name of a frame's function and gives its line, if it has both;
    /// `intern` gives the name of a function its number, and `intern_frame` a frame, `INLINE` where there is no more room.
    #[inline]
    pub fn of(
        &self,
        frames: &[RawFrame],
        (intern, intern_frame): (impl Fn(&str) -> NameId, impl Fn(&StackFrame) -> NameId),
        describe: impl Fn(&RawFrame, &mut [u8; MAX_TEXT]) -> Option<(usize, u32)>,
    ) -> Result<NameId, StackMissing> {
        let mut keys = [0u64; MOST_FRAMES];
        let keys = keys.get_mut(..frames.len()).ok_or(StackMissing::Unreadable)?;
        let mut key = 0;
        for (frame, place) in frames.iter().zip(keys.iter_mut()).rev() {
            key = mix(key, mix(frame.identity, frame.instruction as u32 as u64)).max(1);
            *place = key;
        }
        match keys.first().and_then(|key| self.find(*key)) {
            Some(name) => Ok(name),
            None => self.add(frames, keys, (intern, intern_frame), describe),
        }
    }

    fn places_of(&self, key: u64) -> impl Iterator<Item = &Place> {
        let first = key as usize % PLACES;
        self.places[first..].iter().chain(&self.places[..first])
    }

    #[inline]
    fn find(&self, key: u64) -> Option<NameId> {
        for place in self.places_of(key) {
            match place.key.load(Ordering::Acquire) {
                0 => return None,
                other if other == key => return Some(NameId(place.name.load(Ordering::Relaxed))),
                _ => {}
            }
        }
        None
    }

    /// Writes the frames that are new, from the outermost on.
    #[cold]
    #[inline(never)]
    fn add(
        &self,
        frames: &[RawFrame],
        keys: &[u64],
        (intern, intern_frame): (impl Fn(&str) -> NameId, impl Fn(&StackFrame) -> NameId),
        describe: impl Fn(&RawFrame, &mut [u8; MAX_TEXT]) -> Option<(usize, u32)>,
    ) -> Result<NameId, StackMissing> {
        if self.used.load(Ordering::Relaxed) >= MOST {
            return Err(StackMissing::TooMany);
        }
        if self.writing.swap(true, Ordering::Acquire) {
            return Err(StackMissing::Busy);
        }
        let _held = Held(&self.writing);
        let known = keys.iter().enumerate().find_map(|(at, key)| Some((at, self.find(*key)?)));
        let (new, mut parent) = known.unwrap_or((frames.len(), NameId::NONE));
        let mut bytes = [0u8; MAX_TEXT];
        for (frame, key) in frames.iter().zip(keys).take(new).rev() {
            let (length, line) = describe(frame, &mut bytes).ok_or(StackMissing::Unreadable)?;
            let function = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
            let function = intern(function.ok_or(StackMissing::Unreadable)?);
            if function == NameId::INLINE {
                return Err(StackMissing::TooMany);
            }
            let name = intern_frame(&StackFrame { parent, function, line });
            if name == NameId::INLINE || !self.put(*key, name) {
                return Err(StackMissing::TooMany);
            }
            parent = name;
        }
        Ok(parent)
    }

    /// Only with `writing` held. False: there is no more room.
    fn put(&self, key: u64, name: NameId) -> bool {
        if self.used.load(Ordering::Relaxed) >= MOST {
            return false;
        }
        let Some(place) = self.places_of(key).find(|place| place.key.load(Ordering::Relaxed) == 0) else {
            return false;
        };
        place.name.store(name.0, Ordering::Relaxed);
        place.key.store(key, Ordering::Release);
        self.used.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests;
