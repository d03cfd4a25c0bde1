//! What stood around each API call on the thread that made it, in one walk over the track: so that work can be counted for
//! the scopes, steps, NVTX ranges and layers inside which it was launched.

use crate::{SliceKind, Timeline, Track};

/// Nested deeper than this, only the outermost are known: a damaged trace must not cost the square of its slices.
const DEEPEST: usize = 256;

/// Walks the slices of a track and keeps those of the wanted kinds that are open.
pub struct Around<'a> {
    timeline: &'a Timeline,
    next: usize,
    end: usize,
    open: Vec<(u64, usize)>,
}

impl<'a> Around<'a> {
    pub fn new(timeline: &'a Timeline, track: &Track) -> Around<'a> {
        Around { timeline, next: track.slices.start, end: track.slices.end, open: Vec::new() }
    }

    /// The next API call and the scopes, steps, NVTX ranges and layers in which it lies, outermost first, as slices.
    pub fn next_call(&mut self) -> Option<(usize, impl Iterator<Item = usize> + '_)> {
        let slices = &self.timeline.slices;
        while self.next < self.end {
            let index = self.next;
            self.next += 1;
            let kind = slices.kind(index);
            if !matches!(
                kind,
                SliceKind::ApiCall | SliceKind::Scope | SliceKind::Step | SliceKind::Nvtx | SliceKind::Layer
            ) {
                continue;
            }
            let slice = slices.get(index);
            if kind == SliceKind::ApiCall {
                // Ranges that begin and end freely (tasks, NVTX start and end) need not nest: each is asked for its own end.
                self.open.retain(|(end, _)| *end > slice.start);
                return Some((index, self.open.iter().map(|(_, index)| *index)));
            }
            while self.open.last().is_some_and(|(end, _)| *end <= slice.start) {
                self.open.pop();
            }
            if self.open.len() == DEEPEST {
                self.open.retain(|(end, _)| *end > slice.start);
            }
            if self.open.len() < DEEPEST && slice.dur > 0 {
                self.open.push((slice.end(), index));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_lie_in_what_is_open_on_their_thread() {
        let timeline = Timeline::from_text(
            "track main
             step request 0..100us
             nvtx forward 10us..60us
             layer encoder.0 20us..50us
             api one 30us..31us
             api two 55us..56us
             track worker
             api three 30us..31us",
        )
        .unwrap();
        let name = |index: usize| timeline.names.text(timeline.slices.get(index).name);
        let mut all = Vec::new();
        for track in &timeline.tracks {
            let mut around = Around::new(&timeline, track);
            while let Some((call, open)) = around.next_call() {
                all.push(format!("{}: {}", name(call), open.map(name).collect::<Vec<_>>().join(" ")));
            }
        }
        assert_eq!(all, ["one: request forward encoder.0", "two: request forward", "three: "]);
    }
}
