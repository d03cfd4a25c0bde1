//! Takes the tables into a [`Builder`], in the order in which one names what the next refers to.

use super::database::{Database, Row};
use super::places::Places;
use crate::builder::Mark;
use crate::finish::{RowOrder, Rows, finish};
use crate::gpu::Device;
use crate::import::json::places::Places as Order;
use crate::import::json::{LATEST, MOST_EVENTS};
use crate::import::overheads;
use crate::import::window::{FAR, drop_far};
use crate::{Builder, NameIndex, ProcessIndex, SliceExtra, SliceKind, Timeline};
use std::collections::{BTreeSet, HashMap};

pub struct Loader<'d> {
    pub database: &'d Database,
    pub builder: Builder,
    pub places: Places,
    pub(super) devices: BTreeSet<(ProcessIndex, u32)>,
    texts: HashMap<i64, String>,
    names: HashMap<i64, NameIndex>,
    mark: Mark,
    pub(super) notes: Vec<String>,
    times: u64,
    too_many: u64,
}

impl<'d> Loader<'d> {
    pub fn new(database: &'d Database, builder: Builder) -> Loader<'d> {
        Loader {
            database,
            mark: builder.mark(),
            builder,
            places: Places::default(),
            devices: BTreeSet::new(),
            texts: HashMap::new(),
            names: HashMap::new(),
            notes: Vec::new(),
            times: 0,
            too_many: 0,
        }
    }

    pub fn read(&mut self, progress: &mut dyn FnMut(u64, u64)) {
        let steps: [fn(&mut Self); 11] = [
            Self::strings,
            Self::about,
            Self::calls,
            Self::overhead,
            Self::system_calls,
            Self::nvtx,
            Self::kernels,
            Self::graphs,
            Self::copies,
            Self::memsets,
            Self::waits,
        ];
        for (done, step) in steps.iter().enumerate() {
            progress(done as u64, steps.len() as u64);
            step(self);
        }
        for table in ["SAMPLING_CALLCHAINS", "COMPOSITE_EVENTS"] {
            if self.database.has(table) {
                self.notes.push(format!("The samples of stacks in the file ({table}) are not read."));
            }
        }
    }

    /// Every row of a table, in these columns.
    pub(super) fn table(&mut self, name: &str, columns: &[&str], mut take: impl FnMut(&mut Self, Row<'_>)) {
        let database = self.database;
        if let Err(error) = database.rows(name, columns, |row| take(self, row)) {
            self.notes.push(format!(
                "The table {name} is damaged ({error}): rows before that were read, the rest is missing."
            ));
        }
    }

    fn strings(&mut self) {
        self.table("StringIds", &["id", "value"], |loader, row| {
            if let (Some(id), Some(text)) = (row.number(0), row.text(1)) {
                loader.texts.insert(id, text);
            }
        });
    }

    fn about(&mut self) {
        self.table("PROCESSES", &["globalPid", "name"], |loader, row| {
            if let (Some(global), Some(name)) = (row.number(0), row.text(1)) {
                loader.places.process_names.insert(global, name);
            }
        });
        self.table("ThreadNames", &["globalTid", "nameId"], |loader, row| {
            if let Some((global, name)) = row.number(0).zip(row.number(1).and_then(|id| loader.texts.get(&id))) {
                loader.places.thread_names.insert(global, name.clone());
            }
        });
        self.table("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], |loader, row| {
            let start = row.number(0).unwrap_or(0);
            loader.builder.timeline.info.created_unix_ns = u64::try_from(start).unwrap_or(0);
            loader.builder.timeline.info.clock.unix_minus_mono_ns = start;
        });
    }

    fn calls(&mut self) {
        let columns = ["start", "end", "globalTid", "nameId", "correlationId"];
        self.table("CUPTI_ACTIVITY_KIND_RUNTIME", &columns, |loader, row| {
            let id = row.small(4);
            loader.slice(&row, SliceKind::ApiCall, SliceExtra { id, ..SliceExtra::default() });
        });
    }

    fn overhead(&mut self) {
        let columns = ["start", "end", "globalTid", "nameId"];
        for table in ["CUPTI_ACTIVITY_KIND_OVERHEAD", "PROFILER_OVERHEAD"] {
            self.table(table, &columns, |loader, row| {
                let id = overheads::kind_of(loader.text(row.number(3)).unwrap_or_default()) as u32;
                loader.slice(&row, SliceKind::Overhead, SliceExtra { id, ..SliceExtra::default() });
            });
        }
    }

    fn system_calls(&mut self) {
        let columns = ["start", "end", "globalTid", "nameId"];
        self.table("OSRT_API", &columns, |loader, row| loader.slice(&row, SliceKind::CCall, SliceExtra::default()));
    }

    /// A row that begins with start, end, thread and name.
    fn slice(&mut self, row: &Row<'_>, kind: SliceKind, more: SliceExtra<'_>) {
        let Some((start, dur)) = self.span(row) else { return };
        let track = self.places.track(&mut self.builder, row.number(2).unwrap_or(0));
        let name = self.name(row.number(3));
        self.builder.slice(track, kind, name, start, dur, more);
    }

    /// Start and duration of a row that begins with start and end.
    pub(super) fn span(&mut self, row: &Row<'_>) -> Option<(u64, u64)> {
        if self.builder.timeline.slices.len().max(self.builder.work.len()) >= MOST_EVENTS {
            self.too_many += 1;
            return None;
        }
        let possible = |time: Option<i64>| time.filter(|time| (0..=LATEST).contains(time)).map(|time| time as u64);
        let start = possible(row.number(0));
        let span = start.map(|start| (start, possible(row.number(1)).and_then(|end| end.checked_sub(start))));
        self.times += u64::from(!matches!(span, Some((_, Some(_)))));
        span.map(|(start, dur)| (start, dur.unwrap_or(0)))
    }

    pub(super) fn text(&self, id: Option<i64>) -> Option<&str> {
        self.texts.get(&id?).map(String::as_str)
    }

    pub(super) fn name(&mut self, id: Option<i64>) -> NameIndex {
        let Some((id, text)) = id.and_then(|id| Some((id, self.texts.get(&id)?))) else { return NameIndex(0) };
        let builder = &mut self.builder;
        *self.names.entry(id).or_insert_with(|| builder.name(unversioned(text), "", 0))
    }

    pub fn finish(mut self) -> Timeline {
        let far = drop_far(&mut self.builder, self.mark);
        let mut devices = self.described();
        for (process, ordinal) in std::mem::take(&mut self.devices) {
            let pid = self.builder.timeline.processes[process.0 as usize].pid;
            let known = devices.remove(&(Some(pid), ordinal)).or_else(|| devices.get(&(None, ordinal)).cloned());
            self.builder.device(Device { process: Some(process), ordinal, ..known.unwrap_or_default() });
        }
        Order::default().arrange(&mut self.builder);
        let counted = [
            (self.times, "rows with invalid times: those with a start are shown as instants"),
            (self.too_many, "rows beyond what a timeline can hold, skipped"),
            (far, FAR),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}."));
        self.notes.extend(counted);
        if self.builder.timeline.slices.is_empty() && self.builder.work.len() == 0 {
            self.notes.push("The file holds no events.".into());
        }
        finish(Rows { order: RowOrder::OuterFirst, notes: self.notes, ..self.builder.into_rows() })
    }
}

/// `cudaLaunchKernel_v7000` is called cudaLaunchKernel.
fn unversioned(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((base, digits)) if name.starts_with("cu") && digits.bytes().all(|digit| digit.is_ascii_digit()) => base,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_calls_lose_their_version() {
        let all = ["cudaLaunchKernel_v7000", "cuMemAlloc_v2", "cudaFree", "my_v2", "cu_vx"].map(unversioned);
        assert_eq!(all, ["cudaLaunchKernel", "cuMemAlloc", "cudaFree", "my_v2", "cu_vx"]);
    }
}
