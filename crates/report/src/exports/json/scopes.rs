//! Scopes and steps numbered over the whole trace, with their parents and children. A parent is the recorded one, and only if
//! it encloses the child: a task may outlive the scope that started it, and then lies inside nothing.

use crate::json_text::{Event, Quoted, Separator};
use std::collections::HashMap;
use std::io::{self, Write};
use timeline::{ProcessIndex, SliceKind, Timeline};

pub struct Scopes {
    /// Places of scopes and steps among the slices, in order; a scope's number is its place here plus one.
    slices: Vec<u32>,
    /// Number of the parent, or 0.
    parents: Vec<u32>,
    by_id: HashMap<(ProcessIndex, u32), u32>,
    /// Ids of the events of entering and leaving.
    pub events: Vec<(u64, u64)>,
}

impl Scopes {
    pub fn find(timeline: &Timeline) -> Scopes {
        let mut scopes = Scopes { slices: Vec::new(), parents: Vec::new(), by_id: HashMap::new(), events: Vec::new() };
        let mut processes = Vec::new();
        for track in &timeline.tracks {
            for index in track.slices.clone() {
                if matches!(timeline.slices.kind(index), SliceKind::Scope | SliceKind::Step) {
                    scopes.slices.push(index as u32);
                    processes.push(track.process);
                    let id = timeline.slices.detail(index).id;
                    let number = scopes.slices.len() as u32;
                    if id != 0 {
                        scopes.by_id.entry((track.process, id)).or_insert(number);
                    }
                }
            }
        }
        scopes.events = vec![(0, 0); scopes.slices.len()];
        let parent = |(place, process): (usize, &ProcessIndex)| {
            let slice = timeline.slices.get(scopes.slices[place] as usize);
            let id = timeline.slices.detail(scopes.slices[place] as usize).parent;
            let parent = scopes.enclosing(timeline, *process, id, slice.start, slice.end());
            // Two that last equally long could each enclose the other: the one numbered first is the parent.
            parent.filter(|parent| *parent as usize <= place || scopes.longer(timeline, *parent, place))
        };
        scopes.parents = processes.iter().enumerate().map(|at| parent(at).unwrap_or(0)).collect();
        scopes
    }

    fn longer(&self, timeline: &Timeline, parent: u32, place: usize) -> bool {
        let dur = |place: usize| timeline.slices.dur[self.slices[place] as usize];
        dur(parent as usize - 1) > dur(place)
    }

    /// The number of a scope or step by its place among the slices.
    pub fn number(&self, slice: usize) -> u32 {
        self.slices.binary_search(&(slice as u32)).map_or(0, |place| place as u32 + 1)
    }

    /// The scope with this recorded id, if it lasts from before `start` to after `end`.
    pub fn enclosing(&self, timeline: &Timeline, process: ProcessIndex, id: u32, start: u64, end: u64) -> Option<u32> {
        let number = *self.by_id.get(&(process, id)).filter(|_| id != 0)?;
        let scope = timeline.slices.get(self.slices[number as usize - 1] as usize);
        (scope.start <= start && end <= scope.end()).then_some(number)
    }

    pub fn parent(&self, number: u32) -> Option<u32> {
        Some(self.parents[number as usize - 1]).filter(|parent| *parent != 0)
    }

    pub fn write(&self, timeline: &Timeline, names: &Quoted, out: &mut impl Write) -> io::Result<()> {
        let mut children: Vec<(u32, u32)> = self.parents.iter().copied().zip(1..).filter(|pair| pair.0 != 0).collect();
        children.sort_unstable();
        let mut event = Event::default();
        let mut separator = Separator::new();
        for (place, slice) in self.slices.iter().enumerate() {
            let number = place as u32 + 1;
            let name = timeline.slices.get(*slice as usize).name;
            event.raw(separator.next()).raw(r#"{"id":"#).number(number.into());
            event.raw(r#","name":"#).bytes(names.get(name)).raw(r#","parent_id":"#);
            match self.parent(number) {
                Some(parent) => event.number(parent.into()),
                None => event.raw("null"),
            };
            event.raw(r#","child_ids":["#);
            let first = children.partition_point(|pair| pair.0 < number);
            for (at, pair) in children[first..].iter().take_while(|pair| pair.0 == number).enumerate() {
                event.raw(if at > 0 { "," } else { "" }).number(pair.1.into());
            }
            let (enter, exit) = self.events[place];
            event.raw(r#"],"event_range":["#).number(enter).raw(",").number(exit).raw("]}").send(out)?;
        }
        Ok(())
    }
}
