//! What a step's thread did, with what it handed over to other threads of its process: where it makes no call and waits for one of them, that
//! one tells.

use super::Cause;
use super::IdleInputs;
use super::host::{Asker, Piece};
use crate::host::breakdown::handed;
use crate::steps::StepSource;
use timeline::TrackIndex;

pub fn split(
    inputs: IdleInputs,
    hosts: &mut Asker,
    track: TrackIndex,
    (start, end): (u64, u64),
    pieces: &mut Vec<Piece>,
) {
    let mut own = Vec::new();
    hosts.split(track, start, end, &mut own);
    // Samples say what the thread itself does.
    let mut others = match inputs.by_calls && inputs.steps.source != StepSource::Whole {
        true => handed::find(inputs.timeline, inputs.windows, track),
        false => Vec::new(),
    };
    others.sort_by_key(|other| other.start);
    for piece in own {
        if piece.cause != Cause::Unknown {
            pieces.push(piece);
            continue;
        }
        let mut at = piece.start;
        let first = others.partition_point(|other| other.end <= piece.start);
        for other in others[first..].iter().take_while(|other| other.start < piece.end) {
            if at < other.start {
                pieces.push(Piece { start: at, end: other.start, ..piece });
            }
            let from = at.max(other.start);
            at = piece.end.min(other.end);
            hosts.split(other.track, from, at, pieces);
        }
        if at < piece.end {
            pieces.push(Piece { start: at, ..piece });
        }
    }
}
