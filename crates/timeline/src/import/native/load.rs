//! Builds the `Timeline` out of the rows that `rows` and `events` take in. Whatever a row refers to that is not there
//! becomes a placeholder and is counted.

use super::blocks::BlockRows;
use super::events::{SampleRows, SliceRows};
use super::manifest::Manifest;
use super::table::Rows as TableRows;
use crate::before_codes;
use crate::finish::{Rows, finish};
use crate::gpu::{Allocation, Gather};
use crate::names::{IdMap, Texts};
use crate::{
    Counter, Gpu, Info, Loss, LossReason, NameIndex, Names, Note, Process, ProcessIndex, Stacks, State, Timeline,
};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use trace::codes::CollectorCode;
use trace::tables::Table;

/// What did not fit together, counted.
#[derive(Default)]
pub struct RowWarnings {
    pub names: u64,
    pub stacks: u64,
    pub kinds: u64,
    pub times: u64,
    pub work_kinds: u64,
    pub work_times: u64,
    pub allocations: u64,
    pub blocks: u64,
}

/// What is counted while rows are taken in, by the whole or by a part of them.
#[derive(Default)]
pub struct RowTally {
    pub warnings: RowWarnings,
    span: Option<(u64, u64)>,
}

impl RowTally {
    /// A time of an event; also widens the trace's span.
    #[inline]
    pub fn time(&mut self, nanos: i64) -> u64 {
        let Ok(time) = u64::try_from(nanos) else {
            self.warnings.times += 1;
            return self.first().unwrap_or(0);
        };
        let span = self.span.get_or_insert((time, time));
        *span = (span.0.min(time), span.1.max(time));
        time
    }

    /// When the first event is, as far as is known.
    pub fn first(&self) -> Option<u64> {
        self.span.map(|span| span.0)
    }

    #[inline]
    pub fn name(&mut self, names: &IdMap, id: i32) -> u32 {
        names.get(id).unwrap_or_else(|| {
            self.warnings.names += 1;
            0
        })
    }

    /// Adds what a part has seen.
    pub fn join(&mut self, part: RowTally) {
        for time in part.span.into_iter().flat_map(<[u64; 2]>::from) {
            let span = self.span.get_or_insert((time, time));
            *span = (span.0.min(time), span.1.max(time));
        }
        let RowWarnings { names, stacks, kinds, times, work_kinds, work_times, allocations, blocks } = part.warnings;
        let odd = &mut self.warnings;
        odd.names += names;
        odd.stacks += stacks;
        odd.kinds += kinds;
        odd.times += times;
        odd.work_kinds += work_kinds;
        odd.work_times += work_times;
        odd.allocations += allocations;
        odd.blocks += blocks;
    }
}

/// A thread of a process while loading.
pub struct Thread {
    pub process: ProcessIndex,
    pub tid: i32,
    pub name: Arc<str>,
}

pub struct Loader {
    pub manifest: Manifest,
    pub notes: Vec<Note>,
    pub seen: RowTally,
    pub names: Names,
    pub name_ids: IdMap,
    pub texts: Texts,
    pub stacks: Stacks,
    pub stack_ids: IdMap,
    /// Process numbers beyond the manifest.
    strangers: HashMap<i32, u32>,
    pub threads: Vec<Thread>,
    thread_ids: HashMap<(u32, i32), u32>,
    pub slices: SliceRows,
    samples: SampleRows,
    pub counters: Vec<Counter>,
    pub counter_ids: HashMap<(i32, i32, i32), usize>,
    pub losses: Vec<Loss>,
    pub work: Gather,
    pub allocations: Vec<Allocation>,
    blocks: BlockRows,
    /// Only what was going on between these moments is read.
    pub between: Option<RangeInclusive<i64>>,
}

impl Loader {
    pub fn new(manifest: Manifest) -> Loader {
        Loader {
            manifest,
            notes: Vec::new(),
            seen: RowTally::default(),
            names: Names::default(),
            name_ids: IdMap::default(),
            texts: Texts::default(),
            stacks: Stacks::default(),
            stack_ids: IdMap::default(),
            strangers: HashMap::new(),
            threads: Vec::new(),
            thread_ids: HashMap::new(),
            slices: SliceRows::default(),
            samples: SampleRows::default(),
            counters: Vec::new(),
            counter_ids: HashMap::new(),
            losses: Vec::new(),
            work: Gather::default(),
            allocations: Vec::new(),
            blocks: BlockRows::default(),
            between: None,
        }
    }

    pub fn take(&mut self, table: Table, rows: &TableRows) {
        match table {
            Table::Names => self.take_names(rows),
            Table::Stacks => self.take_stacks(rows),
            Table::Threads => self.take_threads(rows),
            Table::Samples => {
                let mut samples = std::mem::take(&mut self.samples);
                samples.take(self, rows);
                self.samples = samples;
            }
            Table::Counters => self.take_counters(rows),
            Table::Losses => self.take_losses(rows),
            Table::Allocations => self.take_allocations(rows),
            Table::Blocks => {
                let mut blocks = std::mem::take(&mut self.blocks);
                blocks.take(self, rows);
                self.blocks = blocks;
            }
            // Slices and work are read by `groups`.
            Table::Slices | Table::Gpu | Table::Anchors => {}
        }
    }

    pub fn name(&mut self, id: i32) -> NameIndex {
        NameIndex(self.seen.name(&self.name_ids, id))
    }

    pub fn stack(&mut self, id: i32) -> u32 {
        self.stack_ids.get(id).unwrap_or_else(|| {
            self.seen.warnings.stacks += 1;
            0
        })
    }

    pub fn time(&mut self, nanos: i64) -> u64 {
        self.seen.time(nanos)
    }

    pub fn process(&mut self, number: i32) -> ProcessIndex {
        if let Ok(index) = u32::try_from(number)
            && (index as usize) < self.manifest.processes.len() - self.strangers.len()
        {
            return ProcessIndex(index);
        }
        let next = self.manifest.processes.len() as u32;
        let index = *self.strangers.entry(number).or_insert(next);
        if index == next {
            let program = format!("process {number}, not in the manifest");
            self.manifest.processes.push(Process { program, ..Process::default() });
        }
        ProcessIndex(index)
    }

    pub fn thread(&mut self, process: i32, tid: i32) -> u32 {
        let process = self.process(process);
        let next = self.threads.len() as u32;
        let index = *self.thread_ids.entry((process.0, tid)).or_insert(next);
        if index == next {
            self.threads.push(Thread { process, tid, name: self.texts.get("") });
        }
        index
    }

    /// A later version may know more reasons; what it lost counts all the same.
    pub fn loss_reason(&self, text: &str) -> LossReason {
        let sentence = || before_codes::loss(text).filter(|_| !self.manifest.has_codes());
        let known = LossReason::from_name(text).or_else(sentence);
        known.unwrap_or(LossReason::Unknown)
    }

    /// Rows of a table that are left out, because places in a timeline are 32 bits wide.
    pub fn beyond(&mut self, table: Table, rows: u64) {
        let reason = match table {
            Table::Samples => LossReason::SamplesBeyondTimeline,
            Table::Gpu => LossReason::WorkBeyondTimeline,
            Table::Blocks => LossReason::BlocksBeyondTimeline,
            _ => LossReason::SlicesBeyondTimeline,
        };
        let known = self.losses.iter_mut().find(|loss| loss.reason == reason);
        match known {
            _ if rows == 0 => {}
            Some(loss) => loss.count = loss.count.saturating_add(rows),
            None => self.losses.push(Loss {
                time: 0,
                process: None,
                collector: CollectorCode::Reader.into(),
                reason,
                count: rows,
            }),
        }
    }

    pub fn damaged(&mut self, file: String) {
        self.manifest.info.damaged.push(file);
    }

    pub fn finish(mut self) -> Timeline {
        let (first, last) = self.seen.span.unwrap_or((0, 0));
        // The manifest's start counts only if no event lies before it: zero is never after an event.
        let start = match self.manifest.started_ns {
            Some(started) if self.seen.span.is_none() || started <= first => started,
            _ => first,
        };
        let end = self.manifest.ended_ns.unwrap_or(0).max(last).max(start);
        let (start, end) = match &self.between {
            None => (start, end),
            Some(between) => {
                let [since, until] = [*between.start(), *between.end()].map(|time| u64::try_from(time).unwrap_or(0));
                let start = start.max(since).min(until);
                (start, end.min(until).max(start))
            }
        };
        let (slices, samples) = (std::mem::take(&mut self.slices), std::mem::take(&mut self.samples));
        let tracks = self.tracks();
        let (slices, slice_track) = slices.into_rows(&self, &tracks, end);
        let (samples, sample_track) = samples.into_rows(&tracks);
        let memory = std::mem::take(&mut self.blocks)
            .into_memory(&tracks, self.manifest.info.settings.memory_stack_bytes.unwrap_or(0));
        let mut notes = std::mem::take(&mut self.manifest.notes);
        if self.manifest.info.state == State::Recording && self.between.is_none() {
            notes.push(Note::sentence(
                "This trace was still being recorded, or its recorder was killed: its last events may be missing.",
            ));
        }
        notes.append(&mut self.notes);
        let odd = self.seen.warnings.notes(self.strangers.len());
        let before_codes = !self.manifest.has_codes();
        let gpu = Gpu { devices: self.manifest.devices, allocations: self.allocations, ..Gpu::default() };
        let info = Info { started_ns: self.manifest.started_ns, ..self.manifest.info };
        let timeline = Timeline {
            info,
            start,
            end,
            processes: self.manifest.processes,
            tracks: tracks.all,
            names: self.names,
            slices,
            samples,
            stacks: self.stacks,
            counters: self.counters,
            gpu,
            memory,
            losses: self.losses,
            notes,
        };
        finish(Rows {
            timeline,
            texts: self.texts,
            slice_track,
            sample_track,
            work: self.work,
            before_codes,
            notes: odd,
            ..Rows::default()
        })
    }
}

impl RowWarnings {
    fn notes(&self, processes: usize) -> Vec<String> {
        let counted = [
            (self.names, "events with a missing name"),
            (self.stacks, "samples with a missing stack"),
            (self.kinds, "slices of an unknown kind, skipped"),
            (self.times, "events with an invalid timestamp"),
            (processes as u64, "processes with events that are not in the manifest"),
            (self.work_kinds, "GPU operations of an unknown kind, skipped"),
            (self.work_times, "GPU operations with a missing or invalid time, skipped"),
            (self.allocations, "invalid GPU allocations, skipped"),
            (self.blocks, "invalid allocator events, skipped"),
        ];
        let said = counted.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, what)| format!("{count} {what}.")).collect()
    }
}
