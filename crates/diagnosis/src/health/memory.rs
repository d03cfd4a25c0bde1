//! How far a recording of memory alone, a snapshot, can be trusted: whether all of it was read, whether the allocator's start is in it, and how well its
//! replay reproduces it.

use super::{HealthLine, HealthState, HealthTopic, note_state};
use crate::measures::allocators;
use crate::rule::Case;
use analysis::phrase;
use timeline::State;

pub fn lines(case: &Case) -> Vec<HealthLine> {
    let line = |topic, state, text| HealthLine::new(topic, (state, text));
    let events = phrase::counted(case.timeline.memory.events.len() as u64, "allocator event");
    let (state, read) = match case.timeline.info.state {
        State::Cut { .. } => (HealthState::Warn, "only the beginning is readable"),
        _ => (HealthState::Ok, "complete"),
    };
    let mut lines = vec![line(HealthTopic::Recording, state, format!("{read}, {events}"))];
    for one in case.memory() {
        let name = allocators::name(case, one.allocator);
        if case.timeline.memory.allocator(one.allocator).began_late && one.history.allocs > 0 {
            let text = format!("{name}: memory from before the first event is known from the state at the end only");
            lines.push(line(HealthTopic::Start, HealthState::Info, text));
        }
        if one.missing_frees > 0 {
            let text =
                format!("{name}: {} missing, blocks were handed out again", phrase::counted(one.missing_frees, "free"));
            lines.push(line(HealthTopic::Losses, HealthState::Warn, text));
        }
        lines.push(match case.allocator_what_if(one.allocator) {
            Ok(what_if) => {
                let (same, all) =
                    (phrase::count(what_if.unchanged.same_place), phrase::counted(what_if.unchanged.blocks, "block"));
                let text = format!(
                    "{name}: replayed within 1 % of the recorded peak; {same} of {all} at their recorded address"
                );
                line(HealthTopic::Replay, HealthState::Ok, text)
            }
            Err(why) => line(HealthTopic::Replay, HealthState::Info, format!("{name}: {why}")),
        });
    }
    lines.extend(case.timeline.notes.iter().map(|note| line(HealthTopic::Note, note_state(note), note.said())));
    lines
}
