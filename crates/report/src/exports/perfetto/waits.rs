//! Flows between a call that waited and the work that it waited for, where that is known. A reader takes the first event of a
//! flow in time for its begin, and the work may begin before the call does or after it.

use super::messages::TrackEvent;
use std::collections::HashMap;
use timeline::{Timeline, WorkKind};

/// Flows of waits are numbered apart from those of launches.
const FIRST: u64 = 1 << 48;

#[derive(Default)]
pub struct Waits {
    /// Call and work; and the calls of each work.
    waited: HashMap<usize, usize>,
    by_work: HashMap<usize, Vec<usize>>,
}

/// Which side of a flow an event is.
#[derive(Clone, Copy)]
pub enum End {
    Call(usize),
    Work(usize),
}

impl Waits {
    pub fn find(timeline: &Timeline) -> Waits {
        let work = &timeline.gpu.work;
        let mut waits = Waits::default();
        for index in (0..work.len()).filter(|index| work.kind(*index) == WorkKind::Sync) {
            let Some(call) = work.launch(index) else { continue };
            let Some(found) = timeline.waited_for(call) else { continue };
            // Several records of one call are one wait.
            if waits.waited.insert(call, found).is_none() {
                waits.by_work.entry(found).or_default().push(call);
            }
        }
        waits
    }

    pub fn join(&self, event: &mut TrackEvent, timeline: &Timeline, end: End) {
        let begins = |call: usize, work: usize| timeline.slices.start[call] <= timeline.gpu.work.start[work];
        match end {
            End::Call(call) => {
                self.waited.get(&call).into_iter().for_each(|work| add(event, call, begins(call, *work)))
            }
            End::Work(work) => {
                let calls = self.by_work.get(&work).into_iter().flatten();
                calls.for_each(|call| add(event, *call, !begins(*call, work)));
            }
        }
    }
}

fn add(event: &mut TrackEvent, call: usize, first: bool) {
    let flows = if first { &mut event.flow_ids } else { &mut event.terminating_flow_ids };
    flows.push(FIRST + call as u64);
}
