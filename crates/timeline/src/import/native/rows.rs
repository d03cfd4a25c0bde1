//! Rows of names, stacks, threads, counters and losses, taken in as they come. Slices and samples, of which there are
//! millions, have `events`.

use super::load::Loader;
use super::table::Rows;
use crate::{Counter, Loss, Name, StackIndex};
use std::borrow::Cow;
use trace::event::{MAX_TEXT, cut};
use trace::tables::{HOST, WHOLE_PROCESS};

impl Loader {
    pub(super) fn take_names(&mut self, rows: &Rows) {
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

    pub(super) fn take_stacks(&mut self, rows: &Rows) {
        let (ids, parents, names, lines) = (rows.ints("id"), rows.ints("parent"), rows.ints("name"), rows.ints("line"));
        let levels = rows.levels("parent");
        for row in 0..rows.count {
            let parent = (levels.is_empty() || levels[row] == 1).then(|| self.stack_ids.get(parents[row])).flatten();
            let line = u32::try_from(lines[row]).unwrap_or(0);
            let name = self.name(names[row]);
            let index = self.stacks.push(parent.map(StackIndex), name, line);
            self.stack_ids.insert(ids[row], index.0);
        }
    }

    pub(super) fn take_threads(&mut self, rows: &Rows) {
        let (processes, tids, names) = (rows.ints("process"), rows.ints("thread"), rows.texts("name"));
        for row in 0..rows.count {
            let name = self.texts.get(&text(names.get(row)));
            let thread = self.thread(processes[row], tids[row]);
            self.threads[thread as usize].name = name;
        }
    }

    pub(super) fn take_counters(&mut self, rows: &Rows) {
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

    pub(super) fn take_losses(&mut self, rows: &Rows) {
        let (times, processes, counts) = (rows.longs("time_ns"), rows.ints("process"), rows.longs("count"));
        let (collectors, reasons) = (rows.texts("collector"), rows.texts("reason"));
        for row in 0..rows.count {
            let process = (processes[row] != HOST).then(|| self.process(processes[row]));
            self.losses.push(Loss {
                time: u64::try_from(times[row]).unwrap_or(0),
                process,
                collector: (&*text(collectors.get(row))).into(),
                reason: self.loss_reason(&text(reasons.get(row))),
                count: u64::try_from(counts[row]).unwrap_or(0),
            });
        }
    }
}

/// Text of a row, cut to what the recorder may write, so that a damaged file cannot make each row cost a megabyte.
pub fn text(bytes: Option<&[u8]>) -> Cow<'_, str> {
    let bytes = bytes.unwrap_or_default();
    match String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]) {
        Cow::Borrowed(text) => cut(text, MAX_TEXT).into(),
        owned => owned,
    }
}
