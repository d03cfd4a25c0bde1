//! Takes the events of one file into a [`Builder`]: operators, annotations, Python functions and API calls onto the tracks of
//! their threads. Device work is in `work`; what is known only at the end of the file is joined in `finish`.

use super::args::{self, Args};
use super::event::{Event, Sort};
use super::names::{Named, Names};
use super::warnings::KinetoWarnings;
use crate::builder::Mark;
use crate::import::json::fields::{Raw, fields};
use crate::import::json::places::Places;
use crate::import::json::{LATEST, MOST_EVENTS};
use crate::{Builder, ProcessIndex, SliceExtra, SliceKind, TrackIndex};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use trace::counters;

/// No event of a profiler that keeps all in memory lasts a day.
const LONGEST: i64 = 86_400_000_000_000;
/// Times above this are nanoseconds: as microseconds they would be some thousand years.
const NANOSECONDS: i64 = 100_000_000_000_000_000;
/// Names of threads and processes that are remembered until the end of the file.
const MOST_NAMES: usize = 100_000;

pub struct Loader<'b> {
    pub builder: &'b mut Builder,
    pub warnings: KinetoWarnings,
    pub all: u64,
    /// Events of a category that the profiler has.
    pub known: u64,
    pub(super) places: Places,
    pub(super) names: Names,
    pub(super) mark: Mark,
    /// The process of device work until the file is read: work is written before the calls that asked for it.
    pub(super) launcher: ProcessIndex,
    pub(super) calls: BTreeMap<ProcessIndex, u64>,
    pub(super) devices: BTreeSet<u32>,
    pub(super) process_names: HashMap<i64, String>,
    pub(super) thread_names: HashMap<(i64, i64), String>,
    /// Power of ten that makes nanoseconds of the file's numbers.
    unit: Option<i64>,
    main: String,
    text: String,
}

impl<'b> Loader<'b> {
    /// `number` is the file's among all that go into the builder.
    pub fn new(builder: &'b mut Builder, number: u32) -> Loader<'b> {
        Loader {
            mark: builder.mark(),
            builder,
            warnings: KinetoWarnings::default(),
            all: 0,
            known: 0,
            places: Places::default(),
            names: Names::default(),
            launcher: ProcessIndex(u32::MAX - number),
            calls: BTreeMap::new(),
            devices: BTreeSet::new(),
            process_names: HashMap::new(),
            thread_names: HashMap::new(),
            unit: None,
            main: String::new(),
            text: String::new(),
        }
    }

    pub fn event(&mut self, event: &Event<'_>) {
        self.all += 1;
        let sort = event.sort();
        self.known += u64::from(!matches!(sort, Sort::Unknown | Sort::Meta | Sort::Instant | Sort::Counter));
        match sort {
            _ if self.builder.timeline.slices.len().max(self.builder.work.len()) >= MOST_EVENTS => {
                self.warnings.too_many += 1
            }
            Sort::Op | Sort::Annotation | Sort::Python | Sort::Overhead => self.slice(event, sort),
            Sort::Api => self.call(event),
            Sort::Kernel | Sort::Memcpy | Sort::Memset | Sort::Sync => self.work(event, sort),
            Sort::Instant => self.instant(event),
            Sort::Counter => self.counter(event),
            Sort::Meta => self.meta(event),
            Sort::Repeated => {}
            Sort::Unknown => self.warnings.unknown(event.category.0.trim_matches('"')),
        }
    }

    fn slice(&mut self, event: &Event<'_>, sort: Sort) {
        let Some((start, dur)) = self.span(event) else { return };
        let track = self.track(event);
        let Named { name, kind, id } = self.names.get(self.builder, sort, event.name);
        let mut text = std::mem::take(&mut self.text);
        let given = match kind {
            SliceKind::Step => {
                text.clear();
                text.extend(["{\"marker\":", event.name.0, "}"]);
                true
            }
            SliceKind::CCall if sort == Sort::Op => args::of_op(event.name.0, event.args, &mut text),
            _ => false,
        };
        let more = SliceExtra { id, args: given.then_some(&*text), ..SliceExtra::default() };
        self.builder.slice(track, kind, name, start, dur, more);
        self.text = text;
    }

    fn call(&mut self, event: &Event<'_>) {
        let Some((start, dur)) = self.span(event) else { return };
        let track = self.track(event);
        let Named { name, kind, .. } = self.names.get(self.builder, Sort::Api, event.name);
        let id = Args::of(event.args).correlation.small();
        self.builder.slice(track, kind, name, start, dur, SliceExtra { id, ..SliceExtra::default() });
        let process = self.builder.timeline.tracks[track.0 as usize].process;
        *self.calls.entry(process).or_default() += 1;
    }

    fn instant(&mut self, event: &Event<'_>) {
        // The profiler's own ("Traces") are of no process.
        if event.process.whole().is_none() {
            return;
        }
        let Some(time) = self.time(event.time) else { return };
        if event.name.0 != r#""[memory]""# {
            let (track, Named { name, .. }) = (self.track(event), self.names.get(self.builder, Sort::Op, event.name));
            return self.builder.slice(track, SliceKind::Mark, name, time, 0, SliceExtra::default());
        }
        let args = Args::of(event.args);
        let process = Some(self.places.process(self.builder, event.process));
        // Type 0 is the processor, whose allocator has no totals.
        if args.device_type.whole() == Some(0) {
            return;
        }
        let device = i32::try_from(args.device_id.small()).ok();
        for (name, value) in
            [(counters::TORCH_ALLOCATED_BYTES, args.allocated), (counters::TORCH_RESERVED_BYTES, args.reserved)]
        {
            if let Some(value) = value.whole() {
                self.builder.count(process, device, name, time, value);
            }
        }
    }

    fn counter(&mut self, event: &Event<'_>) {
        let (Some(time), Some(_)) = (self.time(event.time), event.process.whole()) else { return };
        let process = self.places.process(self.builder, event.process);
        let name = event.name.owned();
        let _ = fields(event.args.object().unwrap_or("{}"), |key, value| {
            if let Some(value) = value.whole() {
                self.builder.count(Some(process), None, &format!("{name} {key}"), time, value);
            }
        });
    }

    fn meta(&mut self, event: &Event<'_>) {
        let Some(process) = event.process.whole() else { return };
        let mut name = String::new();
        let _ = fields(event.args.object().unwrap_or("{}"), |key, value| {
            if key == "name" {
                name = value.owned();
            }
        });
        match event.name.0 {
            _ if self.process_names.len() + self.thread_names.len() >= MOST_NAMES || name.is_empty() => {}
            r#""process_name""# => drop(self.process_names.insert(process, name)),
            r#""thread_name""# => {
                if let Some(thread) = event.thread.whole() {
                    self.thread_names.insert((process, thread), name);
                }
            }
            _ => {}
        }
    }

    /// Start and duration in nanoseconds; None when there is no time that can be.
    pub(super) fn span(&mut self, event: &Event<'_>) -> Option<(u64, u64)> {
        let start = self.time(event.time)?;
        let length = event.duration.scaled(self.unit.unwrap_or(3));
        let dur = length.filter(|length| (0..=LONGEST).contains(length));
        self.warnings.lengths += u64::from(dur.is_none());
        Some((start, dur.unwrap_or(0) as u64))
    }

    fn time(&mut self, time: Raw<'_>) -> Option<u64> {
        let unit = match self.unit {
            Some(unit) => unit,
            None => {
                let unit = if time.whole()? >= NANOSECONDS { 0 } else { 3 };
                *self.unit.insert(unit)
            }
        };
        let time = time.scaled(unit).filter(|time| (0..=LATEST).contains(time));
        self.warnings.times += u64::from(time.is_none());
        time.map(|time| time as u64)
    }

    fn track(&mut self, event: &Event<'_>) -> TrackIndex {
        let pid = event.process.whole().unwrap_or(0);
        if pid > 0 {
            if self.main.is_empty() {
                self.main = event.process.0.to_owned();
            }
        } else if !self.main.is_empty() {
            // Python threads that the profiler did not find (0), and its own overhead (-1), are of the same process.
            let main = std::mem::take(&mut self.main);
            let words = if pid == 0 { "\"threads without a number\"" } else { "\"the profiler itself\"" };
            let track = self.places.track(self.builder, Raw(&main), Raw(words));
            self.main = main;
            return track;
        }
        self.places.track(self.builder, event.process, event.thread)
    }
}
