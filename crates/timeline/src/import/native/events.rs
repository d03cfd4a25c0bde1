//! Slices and samples while loading: columns in the order of the files, with a track each, then sorted. A complete slice
//! replaces the checkpoints written while it was open; what never completed ends with its process, and is marked.

use super::load::{Loader, RowTally, Thread};
use super::rows::text;
use super::table::Rows;
use crate::gpu::part::{close_up, pieces};
use crate::names::{IdMap, Texts};
use crate::parallel::{self, Task};
use crate::slices::{Detail, OPEN, Slices};
use crate::{Process, Samples, Track, TrackIndex};
use std::collections::HashMap;
use trace::tables::{SliceKind, Table};

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

impl Tracks {
    /// Where a thread of the loader went.
    pub fn of(&self, thread: u32) -> TrackIndex {
        TrackIndex(self.place[thread as usize])
    }
}

/// Indexes are 32 bits wide.
pub const MOST_ROWS: usize = u32::MAX as usize - 1;

/// Columns with room for the slices of all row groups, which are filled side by side.
#[derive(Default)]
pub struct SliceRows {
    slices: Slices,
    thread: Vec<u32>,
    rooms: Vec<usize>,
    /// Open scopes and steps by process, kind and id: the newest checkpoint of each.
    open: HashMap<(u32, u8, u32), OpenSlice>,
    open_calls: Vec<OpenSlice>,
}

/// The room of one row group.
pub struct SliceRoom<'r> {
    start: &'r mut [u64],
    dur: &'r mut [u64],
    name: &'r mut [u32],
    id: &'r mut [u32],
    detail: &'r mut [u32],
    thread: &'r mut [u32],
    kind: &'r mut [u8],
}

/// What the rows of one group refer to, numbered in this group on its own.
#[derive(Default)]
pub struct SlicePart {
    filled: usize,
    threads: Vec<(i32, i32)>,
    known: HashMap<(i32, i32), u32>,
    /// The thread of the last row: most rows have the same.
    last: Option<((i32, i32), u32)>,
    texts: Texts,
    details: Vec<Detail>,
    open: Vec<OpenSlice>,
    /// Rows without a start that can be.
    unplaced: Vec<Unplaced>,
    any_id: bool,
    seen: RowTally,
}

#[derive(Clone, Copy)]
struct OpenSlice {
    start: u64,
    thread: u32,
    name: u32,
    kind: u8,
    detail: Detail,
}

/// Such a row begins with the recording, as far as it is known by then: only the whole knows.
struct Unplaced {
    /// Its place in the room, or in the list of open ones.
    row: Result<usize, usize>,
    /// The first event of the group before it.
    first: Option<u64>,
}

impl SlicePart {
    pub fn take(&mut self, room: &mut SliceRoom, names: &IdMap, rows: &Rows) {
        let (starts, durs, dur_levels) = (rows.longs("start_ns"), rows.longs("dur_ns"), rows.levels("dur_ns"));
        let (processes, tids, kinds, ids_of_names) =
            (rows.ints("process"), rows.ints("thread"), rows.ints("kind"), rows.ints("name"));
        let (ids, parents, args) = (rows.ints("id"), rows.ints("parent"), rows.texts("args"));
        let any_args = args.any();
        for row in 0..rows.count {
            let Some(kind) = SliceKind::from_i32(kinds[row]) else {
                self.seen.warnings.kinds += 1;
                continue;
            };
            let thread = self.thread(processes[row], tids[row]);
            let first = self.seen.first();
            let start = self.seen.time(starts[row]);
            let name = self.seen.name(names, ids_of_names[row]);
            // Null reads as 0, and ids start at 1.
            let mut detail = Detail { id: ids[row] as u32, parent: parents[row] as u32, args: 0 };
            if any_args && let Some(bytes) = args.get(row) {
                detail.args = self.texts.index(&text(Some(bytes))) + 1;
            }
            let moment = matches!(kind, SliceKind::Mark | SliceKind::RecordingWindow | SliceKind::Fix);
            let open = !dur_levels.is_empty() && dur_levels[row] == 0 && !moment;
            if starts[row] < 0 {
                let row = if open { Err(self.open.len()) } else { Ok(self.filled) };
                self.unplaced.push(Unplaced { row, first });
            }
            if open {
                self.open.push(OpenSlice { start, thread, name, kind: kind as u8, detail });
                continue;
            }
            let dur = u64::try_from(durs[row]).unwrap_or_else(|_| {
                self.seen.warnings.times += 1;
                0
            });
            if starts[row] >= 0 {
                self.seen.time(i64::try_from(start.saturating_add(dur)).unwrap_or(-1));
            }
            let at = self.filled;
            self.filled += 1;
            (room.start[at], room.dur[at], room.name[at]) = (start, dur, name);
            (room.kind[at], room.thread[at], room.id[at]) = (kind as u8, thread, detail.id);
            self.any_id |= detail.id != 0;
            if detail.parent != 0 || detail.args != 0 {
                self.details.push(detail);
                room.detail[at] = self.details.len() as u32;
            }
        }
    }

    #[inline]
    fn thread(&mut self, process: i32, tid: i32) -> u32 {
        let key = (process, tid);
        if let Some((_, thread)) = self.last.filter(|last| last.0 == key) {
            return thread;
        }
        let next = self.threads.len() as u32;
        let thread = *self.known.entry(key).or_insert(next);
        if thread == next {
            self.threads.push(key);
        }
        self.last = Some((key, thread));
        thread
    }
}

impl SliceRows {
    pub fn new(rooms: Vec<usize>) -> SliceRows {
        let rows = rooms.iter().sum();
        let column = || vec![0u32; rows];
        let (start, dur, kind) = (vec![0; rows], vec![0; rows], vec![0; rows]);
        let slices = Slices { start, dur, kind, name: column(), id: column(), detail: column(), ..Slices::default() };
        SliceRows { slices, thread: column(), rooms, ..SliceRows::default() }
    }

    pub fn rooms(&mut self) -> Vec<SliceRoom<'_>> {
        let Slices { start, dur, name, id, detail, kind, .. } = &mut self.slices;
        let (mut start, mut dur) = (pieces(start, &self.rooms), pieces(dur, &self.rooms));
        let mut columns = [name, id, detail, &mut self.thread].map(|column| pieces(column, &self.rooms));
        let mut kind = pieces(kind, &self.rooms);
        let room = |_: &usize| {
            let [name, id, detail, thread] = columns.each_mut().map(|column| column.next());
            let (start, dur, kind) = (start.next()?, dur.next()?, kind.next()?);
            Some(SliceRoom { start, dur, kind, name: name?, id: id?, detail: detail?, thread: thread? })
        };
        self.rooms.iter().map_while(room).collect()
    }

    /// Makes one of what the groups know, in their order.
    pub fn join(&mut self, loader: &mut Loader, parts: Vec<SlicePart>) {
        self.close_up(&parts);
        if parts.iter().all(|part| !part.any_id) {
            self.slices.id = Vec::new();
        }
        if parts.iter().all(|part| part.details.is_empty()) {
            self.slices.detail = Vec::new();
        }
        let mut from = 0;
        let mut numbers = Vec::with_capacity(parts.len());
        for mut part in parts {
            let threads: Vec<u32> = part.threads.iter().map(|(process, tid)| loader.thread(*process, *tid)).collect();
            let texts: Vec<u32> = part.texts.all.iter().map(|text| loader.texts.index(text) + 1).collect();
            let global = |detail: Detail| match detail.args {
                0 => detail,
                args => Detail { args: texts[args as usize - 1], ..detail },
            };
            for Unplaced { row, first } in part.unplaced {
                let start = first.into_iter().chain(loader.seen.first()).min().unwrap_or(0);
                match row {
                    Ok(row) => {
                        self.slices.start[from + row] = start;
                        let end = start.saturating_add(self.slices.dur[from + row]);
                        part.seen.time(i64::try_from(end).unwrap_or(-1));
                    }
                    Err(open) => part.open[open].start = start,
                }
            }
            loader.seen.join(part.seen);
            for open in part.open {
                let thread = threads[open.thread as usize];
                self.take_open(loader, OpenSlice { thread, detail: global(open.detail), ..open });
            }
            let before = self.slices.details.len() as u32;
            self.slices.details.extend(part.details.into_iter().map(global));
            numbers.push((threads, before));
            from += part.filled;
        }
        let rows = self.rooms.iter().sum();
        let any: &[usize] = if self.slices.detail.is_empty() { &[] } else { &self.rooms };
        let mut details = pieces(&mut self.slices.detail, any);
        let tasks = pieces(&mut self.thread, &self.rooms).zip(&numbers).map(|(thread, (threads, before))| {
            let detail = details.next().unwrap_or_default();
            Box::new(move || {
                thread.iter_mut().for_each(|one| *one = threads[*one as usize]);
                detail.iter_mut().filter(|one| **one > 0).for_each(|one| *one += before);
            }) as Task
        });
        let tasks: Vec<Task> = tasks.collect();
        parallel::run(rows, tasks, || {});
    }

    /// Lets go of the room that was not filled.
    fn close_up(&mut self, parts: &[SlicePart]) {
        let filled: Vec<usize> = parts.iter().map(|part| part.filled).collect();
        if filled == self.rooms {
            return;
        }
        let Slices { start, dur, name, id, detail, kind, .. } = &mut self.slices;
        close_up(start, &self.rooms, &filled);
        close_up(dur, &self.rooms, &filled);
        close_up(kind, &self.rooms, &filled);
        for column in [name, id, detail, &mut self.thread] {
            close_up(column, &self.rooms, &filled);
        }
        self.rooms = filled;
    }

    fn take_open(&mut self, loader: &Loader, slice: OpenSlice) {
        if slice.detail.id == 0 {
            self.open_calls.push(slice);
        } else {
            let process = loader.threads[slice.thread as usize].process.0;
            self.open.insert((process, slice.kind, slice.detail.id), slice);
        }
    }

    /// The slices as they were read, and the track of each.
    pub fn into_rows(mut self, loader: &Loader, tracks: &Tracks, end: u64) -> (Slices, Vec<u32>) {
        self.close(loader, end);
        self.thread.iter_mut().for_each(|thread| *thread = tracks.place[*thread as usize]);
        (self.slices, self.thread)
    }

    /// Lets go of checkpoints that a complete slice replaces, and ends the rest with their process.
    fn close(&mut self, loader: &Loader, end: u64) {
        // Few kinds are ever open, and calls of CUDA, of which there are millions, are none of them.
        let mut kinds = [false; 256];
        self.open.keys().for_each(|(_, kind, _)| kinds[usize::from(*kind)] = true);
        let closes = |slices: &Slices, index: usize| kinds[usize::from(slices.kind[index])];
        for index in 0..if self.open.is_empty() { 0 } else { self.slices.len() } {
            if !closes(&self.slices, index) {
                continue;
            }
            let mut detail = self.slices.detail(index);
            let process = loader.threads[self.thread[index] as usize].process.0;
            let Some(begun) = self.open.remove(&(process, self.slices.kind[index], detail.id)) else { continue };
            // Where very many were open, the end knows neither: only the checkpoint does.
            detail.parent = if detail.parent == 0 { begun.detail.parent } else { detail.parent };
            detail.args = if detail.args == 0 { begun.detail.args } else { detail.args };
            self.slices.set_detail(index, detail);
        }
        let mut open: Vec<OpenSlice> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|slice| (slice.start, slice.detail.id));
        open.append(&mut self.open_calls);
        for slice in open {
            let process: &Process =
                &loader.manifest.processes[loader.threads[slice.thread as usize].process.0 as usize];
            let dur = process.ended_ns.unwrap_or(end).saturating_sub(slice.start);
            self.slices.push(slice.kind | OPEN, slice.name, slice.start, dur, slice.detail);
            self.thread.push(slice.thread);
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
                return loader.beyond(Table::Samples, (rows.count - row) as u64);
            }
            self.thread.push(loader.thread(processes[row], tids[row]));
            self.samples.time.push(loader.time(times[row]));
            self.samples.stack.push(loader.stack(stacks[row]));
            self.samples.state.push(states[row] as u8);
        }
    }

    pub fn into_rows(mut self, tracks: &Tracks) -> (Samples, Vec<u32>) {
        self.thread.iter_mut().for_each(|thread| *thread = tracks.place[*thread as usize]);
        (self.samples, self.thread)
    }
}
