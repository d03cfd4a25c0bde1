//! Takes events one by one into a [`Builder`]. Stacks, processes and threads may come after the events that refer to them:
//! all is joined in `finish`.

use super::device;
use super::event::Event;
use super::scopes::Scopes;
use super::warnings::JsonWarnings;
use crate::finish::{RowOrder, Rows, finish};
use crate::gpu::{WorkKind, detail};
use crate::import::json::places::Places;
use crate::import::json::{LONGEST_ARGS, MOST_EVENTS};
use crate::names::IdMap;
use crate::{
    Builder, FixMoment, NameIndex, OverheadKind, RecordingWindow, SliceExtra, SliceKind, StackIndex, State, Timeline,
    TrackIndex,
};

#[derive(Default)]
pub struct Loader {
    pub builder: Builder,
    pub places: Places,
    pub warnings: JsonWarnings,
    /// Events of a type that the format has.
    pub known: u64,
    pub all: u64,
    /// As `trace_metadata` says.
    pub duration: Option<u64>,
    /// The file is of a version that has codes.
    pub has_codes: bool,
    pub(super) stack_ids: IdMap,
    scopes: Scopes,
    /// What a sample's event is called, for when its stack is missing.
    leaves: Vec<u32>,
    pub(super) last: u64,
}

impl Loader {
    pub fn event(&mut self, event: &Event<'_>) {
        self.all += 1;
        self.known += 1;
        match &*event.sort {
            _ if self.builder.timeline.slices.len().max(self.leaves.len()) >= MOST_EVENTS => {
                self.warnings.too_many += 1
            }
            "cpu_call" => self.call(event, kind_of_call(event)),
            "cpu_syscall" => self.call(event, SliceKind::CCall),
            "scope_enter" | "scope_exit" => self.scope(event),
            "instant" => self.instant(event),
            "gpu_kernel" => self.work(event, WorkKind::Kernel, 0),
            "h2d_copy" => self.work(event, WorkKind::Memcpy, detail::H2D),
            "d2h_copy" => self.work(event, WorkKind::Memcpy, detail::D2H),
            "memory_event" => self.memory(event),
            other => {
                self.known -= 1;
                self.warnings.unknown(other);
            }
        }
    }

    fn call(&mut self, event: &Event<'_>, kind: SliceKind) {
        let Some((start, dur)) = event.span(&mut self.warnings) else {
            self.warnings.times += 1;
            return;
        };
        let (track, name, args) = (self.track(event), self.name(event), self.args(event));
        // The scope around a call is known by time; the file's `parent_scope` says the same.
        let id = match kind {
            SliceKind::ApiCall => device::correlation(event),
            SliceKind::Overhead => {
                event.overhead.text().and_then(|code| OverheadKind::from_name(&code)).map_or(0, |k| k as u32)
            }
            _ => 0,
        };
        let more = SliceExtra { id, args, open: event.open.truth(), ..SliceExtra::default() };
        self.builder.slice(track, kind, name, start, dur, more);
        self.last = self.last.max(start.saturating_add(dur));
    }

    fn scope(&mut self, event: &Event<'_>) {
        let Some(time) = self.time(event) else { return };
        // Entering and leaving are paired by name where they have no number: so without file and line.
        let name = event.name.as_deref().map_or(NameIndex(0), |name| self.builder.name(name, "", 0));
        let track = self.track(event);
        if event.sort == "scope_enter" {
            let args = self.args(event);
            self.scopes.enter(&mut self.builder, (track, name, time), event, args, &mut self.warnings);
        } else {
            self.scopes.leave(&mut self.builder, (track, name, time), event, &mut self.warnings);
        }
    }

    fn instant(&mut self, event: &Event<'_>) {
        let Some(time) = self.time(event) else { return };
        match event.category.0 {
            r#""counter""# => {
                let Some(value) = event.value.whole() else {
                    self.warnings.values += 1;
                    return;
                };
                let process = event.process.given().then(|| self.places.process(&mut self.builder, event.process));
                let tid = self.places.tid(&mut self.builder, event.process, event.thread);
                self.builder.count(process, tid, event.name.as_deref().unwrap_or_default(), time, value);
            }
            r#""sample""# => {
                let (track, leaf) = (self.track(event), self.name(event));
                let stack = event.stack.whole().and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
                let stack = StackIndex(if event.stack.given() && stack == 0 { u32::MAX } else { stack as u32 });
                self.builder.sample(track, time, stack, event.active.truth(), event.gil.truth());
                self.leaves.push(leaf.0);
            }
            r#""recording-window""# => {
                let window = event.window.text().and_then(|turn| RecordingWindow::from_name(&turn));
                let Some(window) = window else {
                    self.warnings.values += 1;
                    return;
                };
                let (track, name) = (self.track(event), self.name(event));
                let more = SliceExtra { id: window as u32, ..SliceExtra::default() };
                self.builder.slice(track, SliceKind::RecordingWindow, name, time, 0, more);
            }
            r#""fix""# => {
                let Some(moment) = event.fix.text().and_then(|moment| FixMoment::from_name(&moment)) else {
                    self.warnings.values += 1;
                    return;
                };
                let (track, name) = (self.track(event), self.name(event));
                let more = SliceExtra { id: moment as u32, ..SliceExtra::default() };
                self.builder.slice(track, SliceKind::Fix, name, time, 0, more);
            }
            _ => {
                let (track, name, args) = (self.track(event), self.name(event), self.args(event));
                let more = SliceExtra { parent: event.parent.small(), args, ..SliceExtra::default() };
                self.builder.slice(track, SliceKind::Mark, name, time, 0, more);
            }
        }
    }

    pub(super) fn time(&mut self, event: &Event<'_>) -> Option<u64> {
        let time = event.time();
        match time {
            Some(time) => self.last = self.last.max(time),
            None => self.warnings.times += 1,
        }
        time
    }

    fn track(&mut self, event: &Event<'_>) -> TrackIndex {
        self.places.track(&mut self.builder, event.process, event.thread)
    }

    fn name(&mut self, event: &Event<'_>) -> NameIndex {
        match &event.name {
            Some(name) => self.builder.name(name, &event.file.text().unwrap_or_default(), event.line.small()),
            None => NameIndex(0),
        }
    }

    fn args<'a>(&mut self, event: &Event<'a>) -> Option<&'a str> {
        let args = event.args.object()?;
        let fits = args.len() <= LONGEST_ARGS;
        self.warnings.args += u64::from(!fits);
        fits.then_some(args)
    }

    /// `cut` says where the file ends early.
    pub fn finish(mut self, cut: Option<String>) -> Timeline {
        self.scopes.close(&mut self.builder, self.last, &mut self.warnings);
        for (at, leaf) in self.leaves.iter().enumerate() {
            let id = self.builder.timeline.samples.stack[at];
            let known = self.stack_ids.get(id as i32);
            self.builder.timeline.samples.stack[at] = known.unwrap_or_else(|| {
                self.warnings.stacks += u64::from(id != 0);
                if id == 0 { 0 } else { self.builder.frame(None, NameIndex(*leaf), 0).0 }
            });
        }
        self.places.arrange(&mut self.builder);
        let mut notes = self.warnings.lines();
        if cut.is_some() {
            self.builder.timeline.info.state = State::Cut { events: Some(self.all) };
        } else if self.all == 0 {
            notes.push("The file holds no events.".into());
        }
        notes.extend(cut);
        finish(Rows {
            order: RowOrder::OuterFirst,
            duration: self.duration,
            before_codes: !self.has_codes,
            notes,
            ..self.builder.into_rows()
        })
    }
}

fn kind_of_call(event: &Event<'_>) -> SliceKind {
    match event.kind.0 {
        r#""c-call""# => SliceKind::CCall,
        r#""gc""# => SliceKind::Gc,
        r#""api""# => SliceKind::ApiCall,
        r#""nvtx""# => SliceKind::Nvtx,
        r#""layer""# => SliceKind::Layer,
        r#""overhead""# => SliceKind::Overhead,
        r#""entry""# => SliceKind::Entry,
        r#""op""# => SliceKind::Op,
        _ => SliceKind::Call,
    }
}
