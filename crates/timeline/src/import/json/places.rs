//! Processes and threads of the file: made when an event first names them, completed by the lists at its end, and put into
//! the order that a `Timeline` has.

use super::fields::Raw;
use crate::{Builder, Process, ProcessIndex, TrackIndex};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub struct Places {
    processes: HashMap<i64, ProcessIndex>,
    tracks: HashMap<(ProcessIndex, Thread), TrackIndex>,
    /// In the order of the file's own lists.
    listed_processes: Vec<ProcessIndex>,
    listed_tracks: Vec<TrackIndex>,
    is_listed: (HashSet<ProcessIndex>, HashSet<TrackIndex>),
    /// Threads whose numbers do not fit get made-up ones, from the far end.
    made_up: i32,
    /// Events of a thread mostly come together.
    last: Option<(i64, i64, TrackIndex)>,
}

/// Files name threads by the kernel's number, by `pthread_self`, or in words.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Thread {
    Number(i64),
    Words(String),
    Unknown,
}

impl Places {
    /// A file of another writer need not name processes: then all is one, with number 0.
    pub fn process(&mut self, builder: &mut Builder, process: Raw<'_>) -> ProcessIndex {
        let pid = process.whole().unwrap_or(0);
        *self.processes.entry(pid).or_insert_with(|| builder.process(Process { pid, ..Process::default() }))
    }

    pub fn track(&mut self, builder: &mut Builder, process: Raw<'_>, thread: Raw<'_>) -> TrackIndex {
        let numbers = thread.whole().map(|thread| (process.whole().unwrap_or(0), thread));
        if let (Some(numbers), Some(last)) = (numbers, self.last)
            && numbers == (last.0, last.1)
        {
            return last.2;
        }
        let process = self.process(builder, process);
        let key = match (thread.whole(), thread.text()) {
            (Some(number), _) => Thread::Number(number),
            (None, Some(words)) => Thread::Words(words.into_owned()),
            (None, None) => Thread::Unknown,
        };
        let made_up = &mut self.made_up;
        let track = *self.tracks.entry((process, key)).or_insert_with_key(|(_, key)| {
            let mut next = || {
                *made_up += 1;
                i32::MIN + *made_up
            };
            let (tid, name) = match key {
                Thread::Number(number) => match i32::try_from(*number) {
                    Ok(tid) => (tid, String::new()),
                    Err(_) => (next(), format!("thread {number}")),
                },
                Thread::Words(words) => (next(), words.clone()),
                Thread::Unknown => (next(), "thread not named in the file".to_owned()),
            };
            builder.track(process, tid, &name)
        });
        self.last = numbers.map(|numbers| (numbers.0, numbers.1, track));
        track
    }

    /// The thread of a counter need not have a track.
    pub fn tid(&mut self, builder: &mut Builder, process: Raw<'_>, thread: Raw<'_>) -> Option<i32> {
        if !thread.given() {
            return None;
        }
        let plain = thread.whole().and_then(|number| i32::try_from(number).ok());
        plain.or_else(|| {
            let track = self.track(builder, process, thread);
            Some(builder.timeline.tracks[track.0 as usize].tid)
        })
    }

    /// False: one with that number is listed already.
    pub fn list_process(&mut self, builder: &mut Builder, number: Raw<'_>, process: Process) -> bool {
        let index = self.process(builder, number);
        if !self.is_listed.0.insert(index) {
            return false;
        }
        self.listed_processes.push(index);
        let pid = builder.timeline.processes[index.0 as usize].pid;
        builder.timeline.processes[index.0 as usize] = Process { pid, ..process };
        true
    }

    pub fn list_thread(&mut self, builder: &mut Builder, process: Raw<'_>, thread: Raw<'_>, name: &str) {
        let track = self.track(builder, process, thread);
        if self.is_listed.1.insert(track) {
            self.listed_tracks.push(track);
        }
        if !name.is_empty() {
            builder.timeline.tracks[track.0 as usize].name = name.into();
        }
    }

    /// Processes as listed, then as met; tracks by process, as listed, then the main thread, then as met.
    pub fn arrange(self, builder: &mut Builder) {
        let timeline = &mut builder.timeline;
        let count = timeline.processes.len();
        let mut place = vec![usize::MAX; count];
        let met = (0..count as u32).map(ProcessIndex);
        let mut processes = Vec::with_capacity(count);
        for index in self.listed_processes.into_iter().chain(met) {
            if place[index.0 as usize] == usize::MAX {
                place[index.0 as usize] = processes.len();
                processes.push(std::mem::take(&mut timeline.processes[index.0 as usize]));
            }
        }
        timeline.processes = processes;
        let renumber = |process: &mut ProcessIndex| process.0 = place[process.0 as usize] as u32;
        timeline.tracks.iter_mut().for_each(|track| renumber(&mut track.process));
        timeline.counters.iter_mut().filter_map(|counter| counter.process.as_mut()).for_each(renumber);
        timeline.gpu.allocations.iter_mut().for_each(|allocation| renumber(&mut allocation.process));
        builder.work.renumber(renumber);
        let mut listed = vec![usize::MAX; timeline.tracks.len()];
        self.listed_tracks.iter().enumerate().for_each(|(at, track)| listed[track.0 as usize] = at);
        let mut order: Vec<u32> = (0..timeline.tracks.len() as u32).collect();
        order.sort_by_key(|index| {
            let track = &timeline.tracks[*index as usize];
            let other = i64::from(track.tid) != timeline.processes[track.process.0 as usize].pid;
            (track.process, listed[*index as usize], other)
        });
        builder.order_tracks(&order);
    }
}
