//! Pairs entering and leaving. Our own files number their scopes; in others the innermost open scope of the same name on the
//! same thread is the one that is left.

use super::event::Event;
use super::warnings::JsonWarnings;
use crate::import::json::fields::fields;
use crate::import::markers;
use crate::slices::OPEN;
use crate::{Builder, EnginePhase, NameIndex, ProcessIndex, SliceExtra, SliceKind, TrackIndex};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub struct Scopes {
    /// Open scopes: their places among the slices, as they were added.
    numbered: HashMap<(ProcessIndex, i64), u32>,
    named: HashMap<(TrackIndex, NameIndex), Vec<u32>>,
    /// Entered anew before they were left: nothing can close them any more.
    forsaken: Vec<u32>,
    taken: HashSet<(ProcessIndex, u32)>,
}

impl Scopes {
    pub fn enter(
        &mut self,
        builder: &mut Builder,
        (track, name, start): (TrackIndex, NameIndex, u64),
        event: &Event<'_>,
        args: Option<&str>,
        warnings: &mut JsonWarnings,
    ) {
        let process = builder.timeline.tracks[track.0 as usize].process;
        let place = builder.timeline.slices.len() as u32;
        let kind = if event.kind.0 == r#""step""# { SliceKind::Step } else { SliceKind::Scope };
        if kind == SliceKind::Step
            && let Some(phase) = phase(builder, name, event, args)
        {
            builder.engine_step(name, phase);
        }
        let mut id = event.scope.small();
        if id != 0 && !self.taken.insert((process, id)) {
            warnings.scope_ids += 1;
            id = 0;
        }
        let more = SliceExtra { id, parent: event.parent.small(), args, open: true };
        builder.slice(track, kind, name, start, 0, more);
        match event.scope.whole() {
            Some(number) => self.forsaken.extend(self.numbered.insert((process, number), place)),
            None => self.named.entry((track, name)).or_default().push(place),
        }
    }

    pub fn leave(
        &mut self,
        builder: &mut Builder,
        (track, name, end): (TrackIndex, NameIndex, u64),
        event: &Event<'_>,
        warnings: &mut JsonWarnings,
    ) {
        let process = builder.timeline.tracks[track.0 as usize].process;
        let place = match event.scope.whole() {
            Some(number) => self.numbered.remove(&(process, number)),
            None => self.named.get_mut(&(track, name)).and_then(Vec::pop),
        };
        let Some(place) = place.map(|place| place as usize) else {
            warnings.exits += 1;
            return;
        };
        let slices = &mut builder.timeline.slices;
        match end.checked_sub(slices.start[place]) {
            Some(dur) => slices.dur[place] = dur,
            None => warnings.ends += 1,
        }
        if !event.open.truth() {
            slices.kind[place] &= !OPEN;
        }
    }

    /// What is still open lasts to `end`.
    pub fn close(self, builder: &mut Builder, end: u64, warnings: &mut JsonWarnings) {
        let open = self.named.into_values().flatten().chain(self.numbered.into_values()).chain(self.forsaken);
        for place in open {
            warnings.unclosed += 1;
            let slices = &mut builder.timeline.slices;
            slices.dur[place as usize] = end.saturating_sub(slices.start[place as usize]);
        }
    }
}

/// What a serving engine does in a step; "none" is of a step that no engine marked. Files from before steps had a phase have the engine's marker, which gave the step its name.
fn phase(builder: &Builder, name: NameIndex, event: &Event<'_>, args: Option<&str>) -> Option<EnginePhase> {
    if event.phase.given() {
        return EnginePhase::from_name(&event.phase.text()?);
    }
    let mut marker = None;
    let _ = fields(args?, |key, value| {
        if key == "marker" {
            marker = value.text().and_then(|text| markers::step(&text));
        }
    });
    marker.filter(|marker| marker.name == builder.timeline.names.text(name))?.phase
}
