//! The events of JSON 1.1, track by track in the order of time: so the ids between those of entering and leaving a scope are
//! the events that happened on its thread while it was open.

use super::scopes::Scopes;
use crate::json_text::{Event, Quoted, Separator};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use timeline::{Slice, SliceKind, Timeline, Track};

pub struct Events<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) names: &'a Quoted,
    pub scopes: Scopes,
    pub(super) event: Event,
    separator: Separator,
    next_id: u64,
}

/// What is open on a track while its events are written.
#[derive(Default)]
struct Open {
    /// Scopes by the time they end; of those that end together, the one entered last comes first.
    exits: BinaryHeap<(Reverse<u64>, usize)>,
    /// Ends of calls around the next event.
    calls: Vec<u64>,
    /// Scopes that nest, innermost last: (end, number).
    nested: Vec<(u64, u32)>,
    /// End of the last scope that overlaps others without nesting; until then, which scope a call belongs to is not known.
    tangled_until: u64,
}

impl<'a> Events<'a> {
    pub fn new(timeline: &'a Timeline, names: &'a Quoted, scopes: Scopes) -> Events<'a> {
        Events { timeline, names, scopes, event: Event::default(), separator: Separator::new(), next_id: 1 }
    }

    pub fn track(&mut self, track: &Track, out: &mut impl Write) -> io::Result<()> {
        let (slices, samples) = (&self.timeline.slices, &self.timeline.samples);
        let mut open = Open::default();
        let mut next_sample = track.samples.clone().peekable();
        for index in track.slices.clone() {
            let slice = slices.get(index);
            while let Some(sample) = next_sample.next_if(|sample| samples.time[*sample] < slice.start) {
                self.leave_until(samples.time[sample], None, &mut open, track, out)?;
                self.sample(sample, track, out)?;
            }
            self.leave_until(slice.start, Some(slices.detail(index).parent), &mut open, track, out)?;
            self.slice(index, slice, &mut open, track, out)?;
        }
        for sample in next_sample {
            self.leave_until(samples.time[sample], None, &mut open, track, out)?;
            self.sample(sample, track, out)?;
        }
        self.leave_until(u64::MAX, None, &mut open, track, out)
    }

    /// Writes the exits up to `time`. A scope that ends in the very moment its child begins stays open for it.
    fn leave_until(
        &mut self,
        time: u64,
        child_of: Option<u32>,
        open: &mut Open,
        track: &Track,
        out: &mut impl Write,
    ) -> io::Result<()> {
        while let Some((Reverse(end), index)) = open.exits.peek().copied() {
            let waits = end == time && child_of == Some(self.timeline.slices.detail(index).id) && child_of != Some(0);
            if end > time || waits {
                return Ok(());
            }
            open.exits.pop();
            let slice = self.timeline.slices.get(index);
            let number = self.scopes.number(index);
            let id = self.begin("scope_exit", self.names.get(slice.name), end, end);
            self.scopes.events[number as usize - 1].1 = id;
            self.place(track);
            self.event.raw(r#","scope":"#).number(number.into());
            self.finish(&slice, None, out)?;
        }
        Ok(())
    }

    fn slice(
        &mut self,
        index: usize,
        slice: Slice,
        open: &mut Open,
        track: &Track,
        out: &mut impl Write,
    ) -> io::Result<()> {
        open.calls.retain_last(|end| *end > slice.start);
        open.nested.retain_last(|scope| scope.0 > slice.start || slice.dur == 0 && scope.0 == slice.start);
        let args = self.timeline.slices.args(index);
        match slice.kind {
            SliceKind::Scope | SliceKind::Step => self.enter(index, slice, args, open, track, out),
            SliceKind::Mark => {
                let recorded = self.timeline.slices.detail(index).parent;
                let (start, end) = (slice.start, slice.start);
                let parent = self.scopes.enclosing(self.timeline, track.process, recorded, start, end);
                self.instant(self.names.get(slice.name), slice.start, "mark");
                self.place(track);
                self.parent(parent);
                self.finish(&slice, args, out)
            }
            SliceKind::RecordingWindow => {
                self.instant(self.names.get(slice.name), slice.start, "recording-window");
                self.place(track);
                let window = self.timeline.slices.recording_window(index).map_or("", |window| window.name());
                self.event.raw(r#","window":"#).text(window);
                self.finish(&slice, args, out)
            }
            SliceKind::Fix => {
                self.instant(self.names.get(slice.name), slice.start, "fix");
                self.place(track);
                self.event.raw(r#","fix":"#).text(self.timeline.slices.fix(index).map_or("", |moment| moment.name()));
                self.finish(&slice, args, out)
            }
            _ => {
                let around = open.nested.last().filter(|scope| slice.end() <= scope.0).map(|scope| scope.1);
                let parent = around.filter(|_| slice.start >= open.tangled_until);
                let name = self.timeline.names.get(slice.name);
                self.begin("cpu_call", self.names.get(slice.name), slice.start, slice.end());
                self.place(track);
                self.event.raw(r#","cpu_id":null,"call_depth":"#).number(open.calls.len() as u64);
                self.parent(parent);
                self.event.raw(r#","allocations_bytes":null,"kind":""#).raw(slice.kind.name()).raw("\"");
                if !name.file.is_empty() {
                    self.event.raw(r#","file":"#).text(&name.file).raw(r#","line":"#).number(name.line.into());
                }
                if slice.kind == SliceKind::ApiCall {
                    let correlation = self.timeline.slices.detail(index).id;
                    self.event.raw(r#","correlation_id":"#).number(correlation.into());
                }
                if slice.kind == SliceKind::Overhead {
                    self.event.raw(r#","overhead":"#).text(self.timeline.slices.overhead(index).name());
                }
                open.calls.push(slice.end());
                self.finish(&slice, args, out)
            }
        }
    }

    fn enter(
        &mut self,
        index: usize,
        slice: Slice,
        args: Option<&str>,
        open: &mut Open,
        track: &Track,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let number = self.scopes.number(index);
        let id = self.begin("scope_enter", self.names.get(slice.name), slice.start, slice.start);
        self.scopes.events[number as usize - 1].0 = id;
        self.place(track);
        self.event.raw(r#","scope":"#).number(number.into()).raw(r#","kind":""#).raw(slice.kind.name()).raw("\"");
        self.parent(self.scopes.parent(number));
        if slice.kind == SliceKind::Step {
            let phase = self.timeline.engine_phase(index).map_or("none", |phase| phase.name());
            self.event.raw(r#","phase":"#).text(phase);
        }
        self.finish(&slice, args, out)?;
        open.exits.push((Reverse(slice.end()), index));
        if open.nested.last().is_none_or(|around| slice.end() <= around.0) {
            open.nested.push((slice.end(), number));
        } else {
            open.tangled_until = open.tangled_until.max(slice.end());
        }
        Ok(())
    }

    fn sample(&mut self, index: usize, track: &Track, out: &mut impl Write) -> io::Result<()> {
        let sample = self.timeline.samples.get(index);
        let leaf = self.timeline.stacks.frame(sample.stack);
        self.instant(self.names.get(leaf.name), sample.time, "sample");
        self.place(track);
        self.event.raw(r#","active":"#).raw(truth(sample.active)).raw(r#","gil":"#).raw(truth(sample.gil));
        self.event.raw(r#","stack":"#);
        match sample.stack.0 {
            0 => self.event.raw("null"),
            stack => self.event.number(stack.into()),
        };
        self.event.raw("}}").send(out)
    }

    pub fn counters(&mut self, out: &mut impl Write) -> io::Result<()> {
        for counter in &self.timeline.counters {
            let mut name = Event::default();
            name.text(&counter.name);
            let mut quoted = Vec::new();
            name.send(&mut quoted)?;
            let pid = counter.process.map(|process| self.timeline.processes[process.0 as usize].pid);
            for (time, value) in counter.time.iter().zip(&counter.value) {
                self.instant(&quoted, *time, "counter");
                self.event.raw(r#""process_id":"#);
                number_or_null(&mut self.event, pid);
                self.event.raw(r#","thread_id":"#);
                number_or_null(&mut self.event, counter.tid.map(i64::from));
                self.event.raw(r#","value":"#).signed(*value).raw("}}").send(out)?;
            }
        }
        Ok(())
    }

    /// `{"id":1,"type":"cpu_call","name":"f","timestamp_start_us":…,"metadata":{`; gives the id.
    pub(super) fn begin(&mut self, kind: &str, name: &[u8], start: u64, end: u64) -> u64 {
        let zero = self.timeline.start;
        let (start, end) = (start.saturating_sub(zero), end.saturating_sub(zero));
        let id = self.next_id;
        self.next_id += 1;
        self.event.raw(self.separator.next()).raw(r#"{"id":"#).number(id).raw(r#","type":""#).raw(kind);
        self.event.raw(r#"","name":"#).bytes(name).raw(r#","timestamp_start_us":"#).micros(start);
        self.event.raw(r#","timestamp_end_us":"#).micros(end).raw(r#","duration_us":"#).micros(end - start);
        if kind == "instant" {
            self.event.raw(r#","timestamp_us":"#).micros(start);
        }
        self.event.raw(r#","metadata":{"#);
        id
    }

    fn instant(&mut self, name: &[u8], time: u64, category: &str) {
        self.begin("instant", name, time, time);
        self.event.raw(r#""category":""#).raw(category).raw("\",");
    }

    fn place(&mut self, track: &Track) {
        self.event.raw(r#""process_id":"#).signed(self.timeline.process(track).pid);
        self.event.raw(r#","thread_id":"#).signed(track.tid.into());
    }

    fn parent(&mut self, parent: Option<u32>) {
        self.event.raw(r#","parent_scope":"#);
        number_or_null(&mut self.event, parent.map(i64::from));
    }

    fn finish(&mut self, slice: &Slice, args: Option<&str>, out: &mut impl Write) -> io::Result<()> {
        if slice.open {
            self.event.raw(r#","open":true"#);
        }
        if let Some(args) = args {
            self.event.raw(r#","args":"#).object(args);
        }
        self.event.raw("}}").send(out)
    }
}

pub(super) fn number_or_null(event: &mut Event, number: Option<i64>) {
    match number {
        Some(number) => event.signed(number),
        None => event.raw("null"),
    };
}

fn truth(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
}

/// Takes from the end of a stack what is over.
trait RetainLast<T> {
    fn retain_last(&mut self, keep: impl Fn(&T) -> bool);
}

impl<T> RetainLast<T> for Vec<T> {
    fn retain_last(&mut self, keep: impl Fn(&T) -> bool) {
        while self.last().is_some_and(|last| !keep(last)) {
            self.pop();
        }
    }
}
