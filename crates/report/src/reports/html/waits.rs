//! What the waits on a stream's track waited for, so that a click on one leads there.

use super::names::PageNames;
use super::{lod, pack};
use serde::Serialize;
use timeline::gpu::Stream;
use timeline::{NameIndex, Timeline, WorkKind};

/// What waits waited for, of those of which it is known.
#[derive(Serialize)]
pub struct Waits {
    /// Which box of the track the wait is.
    place: String,
    /// The page's track and name of the work, and when it ran: its own box may stand for several.
    track: String,
    name: String,
    start: String,
    dur: String,
    /// 1: of an event, whose place in its stream is not recorded.
    inferred: String,
}

/// The streams of a device that have tracks, one after the other from the first.
pub struct Drawn<'a> {
    pub streams: &'a [&'a Stream],
    pub first: usize,
}

impl Drawn<'_> {
    /// The page's track that holds a piece of work.
    fn track_of(&self, work: usize) -> Option<usize> {
        Some(self.first + self.streams.iter().position(|stream| stream.work.contains(&work))?)
    }
}

/// Boxes that are several pieces have none: which of them waited for what cannot be shown.
pub fn waits(timeline: &Timeline, blocks: &[lod::Block], drawn: &Drawn, names: &mut PageNames) -> Option<Waits> {
    let work = &timeline.gpu.work;
    let waited = |(place, block): (usize, &lod::Block)| {
        let wait = block.count == 1 && work.kind(block.item) == WorkKind::Sync;
        let call = work.launch(block.item).filter(|_| wait)?;
        let known = timeline.waited_for(call);
        let found = known.or_else(|| timeline.probably_waited_for(call))?;
        Some((place, drawn.track_of(found)?, found, known.is_none()))
    };
    let all: Vec<(usize, usize, usize, bool)> = blocks.iter().enumerate().filter_map(waited).collect();
    (!all.is_empty()).then(|| Waits {
        place: pack::delta(all.iter().map(|wait| wait.0 as i64)),
        track: pack::plain(all.iter().map(|wait| wait.1 as u64)),
        name: pack::plain(all.iter().map(|wait| names.place(NameIndex(work.name[wait.2])))),
        start: pack::delta(all.iter().map(|wait| work.start[wait.2].saturating_sub(timeline.start) as i64)),
        dur: pack::plain(all.iter().map(|wait| work.dur[wait.2])),
        inferred: pack::plain(all.iter().map(|wait| u64::from(wait.3))),
    })
}
