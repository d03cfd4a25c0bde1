//! Slices and samples while loading: columns in the order of the files, with a track each, then sorted. A complete slice
//! replaces the checkpoints written while it was open; what never completed ends with its process, and is marked.

use super::load::{Loader, Thread};
use super::rows::text;
use super::table::Rows;
use crate::slices::{Detail, OPEN, Slices};
use crate::sort;
use crate::{Process, Samples, Track};
use std::collections::HashMap;
use trace::tables::SliceKind;

/// The tracks in their final order, and where each thread of the loader went.
pub struct Tracks {
    pub all: Vec<Track>,
    place: Vec<u32>,
}

impl Loader {
    pub fn tracks(&mut self) -> Tracks {
        let main = |thread: &Thread| {
            self.manifest.processes.get(thread.process.0 as usize).is_some_and(|p| p.pid == i64::from(thread.tid))
        };
        let mut order: Vec<u32> = (0..self.threads.len() as u32).collect();
        order.sort_by_key(|index| {
            let thread = &self.threads[*index as usize];
            (thread.process, !main(thread), thread.tid)
        });
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| place[*old as usize] = new as u32);
        let track = |index: &u32| {
            let thread = &self.threads[*index as usize];
            Track { process: thread.process, tid: thread.tid, name: thread.name.clone(), slices: 0..0, samples: 0..0 }
        };
        Tracks { all: order.iter().map(track).collect(), place }
    }
}

/// Indexes are 32 bits wide.
const MOST_ROWS: usize = u32::MAX as usize - 1;

#[derive(Default)]
pub struct SliceRows {
    slices: Slices,
    thread: Vec<u32>,
    /// Open scopes and steps by process, kind and id: the newest checkpoint of each.
    open: HashMap<(u32, u8, u32), OpenSlice>,
    open_calls: Vec<OpenSlice>,
    /// The thread of the last row: most rows have the same.
    last: Option<((i32, i32), u32)>,
}

#[derive(Clone, Copy)]
struct OpenSlice {
    start: u64,
    thread: u32,
    name: u32,
    kind: u8,
    detail: Detail,
}

impl SliceRows {
    pub fn take(&mut self, loader: &mut Loader, rows: &Rows) {
        let (starts, durs, dur_levels) = (rows.longs("start_ns"), rows.longs("dur_ns"), rows.levels("dur_ns"));
        let (processes, tids, kinds, names) =
            (rows.ints("process"), rows.ints("thread"), rows.ints("kind"), rows.ints("name"));
        let (ids, parents, args) = (rows.ints("id"), rows.ints("parent"), rows.texts("args"));
        let any_args = args.any();
        self.slices.reserve(rows.expected);
        self.thread.reserve(rows.expected);
        for row in 0..rows.count {
            let Some(kind) = SliceKind::from_i32(kinds[row]).filter(|_| self.slices.len() < MOST_ROWS) else {
                loader.odd.kinds += 1;
                continue;
            };
            let thread = self.thread(loader, processes[row], tids[row]);
            let start = loader.time(starts[row]);
            let name = loader.name(names[row]).0;
            // Null reads as 0, and ids start at 1.
            let mut detail = Detail { id: ids[row] as u32, parent: parents[row] as u32, args: 0 };
            if any_args && let Some(bytes) = args.get(row) {
                detail.args = loader.texts.index(&text(Some(bytes))) + 1;
            }
            if !dur_levels.is_empty() && dur_levels[row] == 0 && kind != SliceKind::Mark {
                self.take_open(loader, OpenSlice { start, thread, name, kind: kind as u8, detail });
                continue;
            }
            let dur = u64::try_from(durs[row]).unwrap_or_else(|_| {
                loader.odd.times += 1;
                0
            });
            loader.time(i64::try_from(start.saturating_add(dur)).unwrap_or(-1));
            self.push(OpenSlice { start, thread, name, kind: kind as u8, detail }, dur);
        }
    }

    fn take_open(&mut self, loader: &Loader, slice: OpenSlice) {
        if slice.detail.id == 0 {
            self.open_calls.push(slice);
        } else {
            let process = loader.threads[slice.thread as usize].process.0;
            self.open.insert((process, slice.kind, slice.detail.id), slice);
        }
    }

    #[inline]
    fn thread(&mut self, loader: &mut Loader, process: i32, tid: i32) -> u32 {
        match self.last {
            Some((key, thread)) if key == (process, tid) => thread,
            _ => {
                let thread = loader.thread(process, tid);
                self.last = Some(((process, tid), thread));
                thread
            }
        }
    }

    #[inline]
    fn push(&mut self, slice: OpenSlice, dur: u64) {
        let slices = &mut self.slices;
        slices.start.push(slice.start);
        slices.dur.push(dur);
        slices.name.push(slice.name);
        slices.kind.push(slice.kind);
        self.thread.push(slice.thread);
        if slice.detail == Detail::default() {
            slices.detail.push(0);
        } else {
            slices.details.push(slice.detail);
            slices.detail.push(slices.details.len() as u32);
        }
    }

    pub fn finish(mut self, loader: &mut Loader, tracks: &mut Tracks, end: u64) -> Slices {
        self.close(loader, end);
        let mut slices = self.slices;
        slices.args = std::mem::take(&mut loader.texts).all;
        // Vectors grow by doubling; what sorting needs comes on top of what they really hold.
        slices.shrink();
        self.thread.shrink_to_fit();
        self.thread.iter_mut().for_each(|thread| *thread = tracks.place[*thread as usize]);
        let sorted = sort::by_track(&self.thread, &slices.start, |index| slices.dur[index], tracks.all.len());
        drop(self.thread);
        for (track, range) in tracks.all.iter_mut().zip(sorted.ranges) {
            track.slices = range;
        }
        if let Some(order) = sorted.order {
            slices.reorder(&order);
        }
        slices
    }

    /// Lets go of checkpoints that a complete slice replaces, and ends the rest with their process.
    fn close(&mut self, loader: &Loader, end: u64) {
        if !self.open.is_empty() {
            for (index, place) in self.slices.detail.iter().enumerate().filter(|(_, place)| **place > 0) {
                let detail = &mut self.slices.details[*place as usize - 1];
                let process = loader.threads[self.thread[index] as usize].process.0;
                let Some(begun) = self.open.remove(&(process, self.slices.kind[index], detail.id)) else { continue };
                // Where very many were open, the end knows neither: only the checkpoint does.
                detail.parent = if detail.parent == 0 { begun.detail.parent } else { detail.parent };
                detail.args = if detail.args == 0 { begun.detail.args } else { detail.args };
            }
        }
        let mut open: Vec<OpenSlice> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|slice| (slice.start, slice.detail.id));
        open.append(&mut self.open_calls);
        for mut slice in open {
            let process: &Process =
                &loader.manifest.processes[loader.threads[slice.thread as usize].process.0 as usize];
            let dur = process.ended_ns.unwrap_or(end).saturating_sub(slice.start);
            slice.kind |= OPEN;
            self.push(slice, dur);
        }
    }
}

#[derive(Default)]
pub struct SampleRows {
    samples: Samples,
    thread: Vec<u32>,
}

impl SampleRows {
    pub fn take(&mut self, loader: &mut Loader, rows: &Rows) {
        let (times, stacks, states) = (rows.longs("time_ns"), rows.ints("stack"), rows.ints("state"));
        let (processes, tids) = (rows.ints("process"), rows.ints("thread"));
        for row in 0..rows.count {
            if self.samples.len() >= MOST_ROWS {
                return;
            }
            self.thread.push(loader.thread(processes[row], tids[row]));
            self.samples.time.push(loader.time(times[row]));
            self.samples.stack.push(loader.stack(stacks[row]));
            self.samples.state.push(states[row] as u8);
        }
    }

    pub fn finish(mut self, tracks: &mut Tracks) -> Samples {
        self.thread.iter_mut().for_each(|thread| *thread = tracks.place[*thread as usize]);
        let sorted = sort::by_track(&self.thread, &self.samples.time, |_| 0, tracks.all.len());
        for (track, range) in tracks.all.iter_mut().zip(sorted.ranges) {
            track.samples = range;
        }
        if let Some(order) = sorted.order {
            sort::gather(&mut self.samples.time, &order);
            sort::gather(&mut self.samples.stack, &order);
            sort::gather(&mut self.samples.state, &order);
        }
        self.samples
    }
}
