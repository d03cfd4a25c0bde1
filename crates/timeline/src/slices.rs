//! Slices in columns: 25 bytes each, and 12 more for those that carry an id or arguments. They are sorted by track, start,
//! and longer first, so that a parent comes before its children; [`crate::Track::slices`] says where a track's are.

use crate::{NameIndex, SliceKind, sort};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Slices {
    pub start: Vec<u64>,
    pub dur: Vec<u64>,
    pub name: Vec<u32>,
    pub(crate) kind: Vec<u8>,
    /// 0: none; else the place in `details` plus one.
    pub(crate) detail: Vec<u32>,
    pub(crate) details: Vec<Detail>,
    pub(crate) args: Vec<Arc<str>>,
}

/// What scopes, steps and marks have beside a time and a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Detail {
    /// Unique among the scopes and steps of a process; 0: none.
    pub id: u32,
    /// Id of the scope around it; 0: none.
    pub parent: u32,
    pub(crate) args: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    pub start: u64,
    pub dur: u64,
    pub name: NameIndex,
    pub kind: SliceKind,
    /// Not closed when the recording ended: the end is the process's end, not the slice's.
    pub open: bool,
}

impl Slice {
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.dur)
    }
}

/// Set in the kind column when the slice never ended.
pub(crate) const OPEN: u8 = 0x80;

impl Slices {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Slice {
        Slice {
            start: self.start[index],
            dur: self.dur[index],
            name: NameIndex(self.name[index]),
            kind: self.kind(index),
            open: self.kind[index] & OPEN != 0,
        }
    }

    #[inline]
    pub fn kind(&self, index: usize) -> SliceKind {
        // Only known kinds are taken in.
        SliceKind::from_i32(i32::from(self.kind[index] & !OPEN)).unwrap_or(SliceKind::Scope)
    }

    /// Takes the slices at these places, in this order.
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        sort::gather(&mut self.start, order);
        sort::gather(&mut self.dur, order);
        sort::gather(&mut self.name, order);
        sort::gather(&mut self.kind, order);
        sort::gather(&mut self.detail, order);
    }

    /// Makes room for this many more.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.start.reserve(more);
        self.dur.reserve(more);
        self.name.reserve(more);
        self.kind.reserve(more);
        self.detail.reserve(more);
    }

    pub(crate) fn shrink(&mut self) {
        self.start.shrink_to_fit();
        self.dur.shrink_to_fit();
        self.name.shrink_to_fit();
        self.kind.shrink_to_fit();
        self.detail.shrink_to_fit();
        self.details.shrink_to_fit();
    }

    pub fn detail(&self, index: usize) -> Detail {
        match self.detail[index] {
            0 => Detail::default(),
            place => self.details[place as usize - 1],
        }
    }

    /// The JSON object recorded with the slice, as text.
    pub fn args(&self, index: usize) -> Option<&str> {
        match self.detail(index).args {
            0 => None,
            place => self.args.get(place as usize - 1).map(|text| &**text),
        }
    }
}
