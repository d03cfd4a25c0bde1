//! Takes rows in and builds the `Timeline`: names, stacks, tracks, counters and losses here, slices and samples in
//! `events`. Whatever a row refers to that is not there becomes a placeholder and is counted.

use super::events::{SampleRows, SliceRows};
use super::manifest::Manifest;
use super::table::Rows;
use crate::names::{IdMap, Texts};
use crate::{Counter, Loss, Name, NameIndex, Names, Process, ProcessIndex, Stacks, State, Timeline};
use std::collections::HashMap;
use std::sync::Arc;
use trace::event::{MAX_TEXT, cut};
use trace::tables::{HOST, Table, WHOLE_PROCESS};

/// What did not fit together, counted.
#[derive(Default)]
pub struct Odd {
    pub names: u64,
    pub stacks: u64,
    pub kinds: u64,
    pub times: u64,
}

/// A thread of a process while loading.
pub struct Thread {
    pub process: ProcessIndex,
    pub tid: i32,
    pub name: Arc<str>,
}

pub struct Loader {
    pub manifest: Manifest,
    pub notes: Vec<String>,
    pub odd: Odd,
    names: Names,
    name_ids: IdMap,
    pub texts: Texts,
    stacks: Stacks,
    stack_ids: IdMap,
    /// Process numbers beyond the manifest.
    strangers: HashMap<i32, u32>,
    pub threads: Vec<Thread>,
    thread_ids: HashMap<(u32, i32), u32>,
    slices: SliceRows,
    samples: SampleRows,
    counters: Vec<Counter>,
    counter_ids: HashMap<(i32, i32, i32), usize>,
    losses: Vec<Loss>,
    span: Option<(u64, u64)>,
}

impl Loader {
    pub fn new(manifest: Manifest) -> Loader {
        Loader {
            manifest,
            notes: Vec::new(),
            odd: Odd::default(),
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
            span: None,
        }
    }

    pub fn take(&mut self, table: Table, rows: &Rows) {
        match table {
            Table::Names => self.take_names(rows),
            Table::Stacks => self.take_stacks(rows),
            Table::Threads => self.take_threads(rows),
            Table::Slices => {
                let mut slices = std::mem::take(&mut self.slices);
                slices.take(self, rows);
                self.slices = slices;
            }
            Table::Samples => {
                let mut samples = std::mem::take(&mut self.samples);
                samples.take(self, rows);
                self.samples = samples;
            }
            Table::Counters => self.take_counters(rows),
            Table::Losses => self.take_losses(rows),
            Table::Anchors => {}
        }
    }

    fn take_names(&mut self, rows: &Rows) {
        let (ids, texts, files, lines) = (rows.ints("id"), rows.texts("text"), rows.texts("file"), rows.ints("line"));
        for row in 0..rows.count {
            let name = Name {
                text: text(texts.get(row)).into(),
                file: self.texts.get(&text(files.get(row))),
                line: u32::try_from(lines[row]).unwrap_or(0),
            };
            self.name_ids.insert(ids[row], self.names.intern(name).0);
        }
    }

    fn take_stacks(&mut self, rows: &Rows) {
        let (ids, parents, names, lines) = (rows.ints("id"), rows.ints("parent"), rows.ints("name"), rows.ints("line"));
        let levels = rows.levels("parent");
        for row in 0..rows.count {
            let parent = (levels.is_empty() || levels[row] == 1).then(|| self.stack_ids.get(parents[row])).flatten();
            let line = u32::try_from(lines[row]).unwrap_or(0);
            let name = self.name(names[row]);
            let index = self.stacks.push(parent.map(crate::StackIndex), name, line);
            self.stack_ids.insert(ids[row], index.0);
        }
    }

    fn take_threads(&mut self, rows: &Rows) {
        let (processes, tids, names) = (rows.ints("process"), rows.ints("thread"), rows.texts("name"));
        for row in 0..rows.count {
            let name = self.texts.get(&text(names.get(row)));
            let thread = self.thread(processes[row], tids[row]);
            self.threads[thread as usize].name = name;
        }
    }

    fn take_counters(&mut self, rows: &Rows) {
        let (times, values) = (rows.longs("time_ns"), rows.longs("value"));
        let (processes, tids, counters) = (rows.ints("process"), rows.ints("thread"), rows.ints("counter"));
        for row in 0..rows.count {
            let time = self.time(times[row]);
            let key = (processes[row], tids[row], counters[row]);
            let place = match self.counter_ids.get(&key) {
                Some(place) => *place,
                None => {
                    let name = self.name(key.2);
                    let counter = Counter {
                        process: (key.0 != HOST).then(|| self.process(key.0)),
                        tid: (key.1 != WHOLE_PROCESS).then_some(key.1),
                        name: self.names.get(name).text.clone(),
                        ..Counter::default()
                    };
                    self.counters.push(counter);
                    self.counter_ids.insert(key, self.counters.len() - 1);
                    self.counters.len() - 1
                }
            };
            self.counters[place].time.push(time);
            self.counters[place].value.push(values[row]);
        }
    }

    fn take_losses(&mut self, rows: &Rows) {
        let (times, processes, counts) = (rows.longs("time_ns"), rows.ints("process"), rows.longs("count"));
        let (collectors, whats) = (rows.texts("collector"), rows.texts("what"));
        for row in 0..rows.count {
            let process = (processes[row] != HOST).then(|| self.process(processes[row]));
            self.losses.push(Loss {
                time: u64::try_from(times[row]).unwrap_or(0),
                process,
                collector: text(collectors.get(row)).into_owned(),
                what: text(whats.get(row)).into_owned(),
                count: u64::try_from(counts[row]).unwrap_or(0),
            });
        }
    }

    pub fn name(&mut self, id: i32) -> NameIndex {
        NameIndex(self.name_ids.get(id).unwrap_or_else(|| {
            self.odd.names += 1;
            0
        }))
    }

    pub fn stack(&mut self, id: i32) -> u32 {
        self.stack_ids.get(id).unwrap_or_else(|| {
            self.odd.stacks += 1;
            0
        })
    }

    /// A time of an event; also widens the trace's span.
    pub fn time(&mut self, nanos: i64) -> u64 {
        let Ok(time) = u64::try_from(nanos) else {
            self.odd.times += 1;
            return self.span.map_or(0, |span| span.0);
        };
        let span = self.span.get_or_insert((time, time));
        *span = (span.0.min(time), span.1.max(time));
        time
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

    pub fn finish(mut self) -> Timeline {
        let (first, last) = self.span.unwrap_or((0, 0));
        // The manifest's start counts only if no event lies before it: zero is never after an event.
        let start = match self.manifest.started_ns {
            Some(started) if self.span.is_none() || started <= first => started,
            _ => first,
        };
        let end = self.manifest.ended_ns.unwrap_or(0).max(last).max(start);
        for counter in &mut self.counters {
            if !counter.time.is_sorted() {
                let mut points: Vec<_> = counter.time.iter().copied().zip(counter.value.iter().copied()).collect();
                points.sort_by_key(|point| point.0);
                (counter.time, counter.value) = points.into_iter().unzip();
            }
        }
        let (slices, samples) = (std::mem::take(&mut self.slices), std::mem::take(&mut self.samples));
        let mut tracks = self.tracks();
        let slices = slices.finish(&mut self, &mut tracks, end);
        let samples = samples.finish(&mut tracks);
        self.names.finish();
        let mut notes = std::mem::take(&mut self.manifest.notes);
        if self.manifest.info.state == State::Recording {
            notes.push(
                "This trace was still being recorded, or its recorder was killed: its last events may be missing."
                    .into(),
            );
        }
        notes.append(&mut self.notes);
        notes.extend(self.odd.notes(self.strangers.len()));
        Timeline {
            info: self.manifest.info,
            start,
            end,
            processes: self.manifest.processes,
            tracks: tracks.all,
            names: self.names,
            slices,
            samples,
            stacks: self.stacks,
            counters: self.counters,
            losses: self.losses,
            notes,
        }
    }
}

impl Odd {
    fn notes(&self, processes: usize) -> impl Iterator<Item = String> {
        let counted = [
            (self.names, "events refer to a name that is missing"),
            (self.stacks, "samples refer to a stack that is missing"),
            (self.kinds, "slices are of a kind that this version does not know, and are left out"),
            (self.times, "events have a time that cannot be"),
            (processes as u64, "processes have events but are not in the manifest"),
        ];
        counted.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}."))
    }
}

/// Text of a row, cut to what the recorder may write, so that a damaged file cannot make each row cost a megabyte.
pub fn text(bytes: Option<&[u8]>) -> std::borrow::Cow<'_, str> {
    let bytes = bytes.unwrap_or_default();
    match String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]) {
        std::borrow::Cow::Borrowed(text) => cut(text, MAX_TEXT).into(),
        owned => owned,
    }
}
