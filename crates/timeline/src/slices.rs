//! Slices in columns: 21 bytes each, 4 more where any carries an id, and 4 more where any has a parent or arguments, which take 12.
//! They are sorted by track, start, and longer first, so that a parent comes before its children; [`crate::Track::slices`] says
//! where a track's are.

use crate::{FixMoment, NameIndex, OverheadKind, RecordingWindow, SliceKind, parallel, sort};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Slices {
    pub start: Vec<u64>,
    pub dur: Vec<u64>,
    pub name: Vec<u32>,
    pub(crate) kind: Vec<u8>,
    /// 0: none. Empty where no slice has one.
    pub(crate) id: Vec<u32>,
    /// 0: no parent and no arguments; else the place in `details` plus one. Empty where no slice has any.
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

    /// Adds one; `kind` is that of the column.
    pub(crate) fn push(&mut self, kind: u8, name: u32, start: u64, dur: u64, detail: Detail) {
        let place = self.len();
        self.start.push(start);
        self.dur.push(dur);
        self.name.push(name);
        self.kind.push(kind);
        let more = if detail.parent == 0 && detail.args == 0 {
            0
        } else {
            self.details.push(detail);
            self.details.len() as u32
        };
        for (column, value) in [(&mut self.id, detail.id), (&mut self.detail, more)] {
            if value != 0 || !column.is_empty() {
                column.resize(place, 0);
                column.push(value);
            }
        }
    }

    /// Takes the slices at these places, in this order.
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        let mut columns = vec![
            sort::gathering(&mut self.start, order),
            sort::gathering(&mut self.dur, order),
            sort::gathering(&mut self.name, order),
            sort::gathering(&mut self.kind, order),
        ];
        let more = [&mut self.id, &mut self.detail].into_iter().filter(|column| !column.is_empty());
        columns.extend(more.map(|column| sort::gathering(column, order)));
        parallel::run(order.len(), columns, || {});
    }

    pub(crate) fn shrink(&mut self) {
        self.start.shrink_to_fit();
        self.dur.shrink_to_fit();
        self.name.shrink_to_fit();
        self.kind.shrink_to_fit();
        self.id.shrink_to_fit();
        self.detail.shrink_to_fit();
        self.details.shrink_to_fit();
    }

    /// Unique among the scopes and steps of a process, the correlation of a CUDA call, the code of an overhead, of a turn of
    /// recording in windows or of a fix; 0: none.
    #[inline]
    pub fn id(&self, index: usize) -> u32 {
        self.id.get(index).copied().unwrap_or(0)
    }

    /// What CUPTI says it took the time of an overhead for.
    pub fn overhead(&self, index: usize) -> OverheadKind {
        OverheadKind::from_i32(self.id(index) as i32).unwrap_or(OverheadKind::Other)
    }

    /// Which turn of recording in windows a slice is; None for every other slice.
    pub fn recording_window(&self, index: usize) -> Option<RecordingWindow> {
        let is_turn = self.kind(index) == SliceKind::RecordingWindow;
        RecordingWindow::from_i32(self.id(index) as i32).filter(|_| is_turn)
    }

    /// What became of a fix that was tried; None for every other slice.
    pub fn fix(&self, index: usize) -> Option<FixMoment> {
        let is_fix = self.kind(index) == SliceKind::Fix;
        FixMoment::from_i32(self.id(index) as i32).filter(|_| is_fix)
    }

    /// Makes another kind of slice of it, with this id.
    pub(crate) fn set_kind(&mut self, index: usize, kind: SliceKind, id: u32) {
        self.kind[index] = kind as u8 | self.kind[index] & OPEN;
        self.id.resize(self.start.len(), 0);
        self.id[index] = id;
    }

    pub(crate) fn any_id(&self) -> bool {
        !self.id.is_empty()
    }

    pub fn detail(&self, index: usize) -> Detail {
        match self.detail.get(index) {
            None | Some(0) => Detail { id: self.id(index), ..Detail::default() },
            Some(place) => self.details[*place as usize - 1],
        }
    }

    /// Sets the parent and the arguments of one that is there.
    pub(crate) fn set_detail(&mut self, index: usize, detail: Detail) {
        if detail.parent == 0 && detail.args == 0 {
            return;
        }
        self.detail.resize(self.start.len(), 0);
        match self.detail[index] {
            0 => {
                self.details.push(detail);
                self.detail[index] = self.details.len() as u32;
            }
            place => self.details[place as usize - 1] = detail,
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
