//! The turns of a loop around calls into one entry point: from the begin of one call to the begin of the next on the same thread.
//! What the loop does between the calls (load the input, decode the output) is part of what is waited for. The last call has no turn:
//! where it would end is not known.

use super::evidence::{Evidence, Near};
use super::score::Measured;
use timeline::TrackIndex;

#[derive(Clone, Debug, Default)]
pub struct Turns {
    pub measured: Measured,
    /// Turns in which nothing else is entered, those in which something is, and the calls alone of these.
    plain: Measured,
    crossed: Measured,
    calls: Measured,
    /// Calls overlap on a thread, as tasks of an event loop do: then nothing goes round.
    overlap: bool,
    here: Option<(u64, u64)>,
    crosses: bool,
    nested: u64,
    near: Near,
}

impl Turns {
    /// A call begins: that is the end of the turn before it.
    pub fn begin(&mut self, evidence: &Evidence, track: TrackIndex, call: (u64, u64), nested: bool) {
        if let Some((start, end)) = self.here.replace(call) {
            self.overlap |= call.0 < end;
            self.nested += u64::from(nested);
            let mut inside = |end: u64| evidence.inside(&mut self.near, track, start, end);
            if self.crosses {
                let (turn, alone) = (inside(call.0), inside(end));
                self.crossed.add(call.0 - start, call.0 - start, turn);
                self.calls.add(end - start, end - start, alone);
            } else {
                let turn = inside(call.0);
                self.plain.add(call.0 - start, call.0 - start, turn);
            }
        }
        self.crosses = false;
    }

    /// Something else is entered.
    pub fn cross(&mut self) {
        self.crosses = true;
    }

    /// The thread ends.
    pub fn leave(&mut self) {
        (self.here, self.crosses) = (None, false);
    }

    /// Whether a turn in which something else is entered has left the loop, and ends with its call: where the usual turn enters
    /// nothing else, training has stopped for an evaluation; where it does, an encoder is followed by its decoder.
    pub fn ends_when_crossed(&self) -> bool {
        self.plain.count > self.crossed.count
    }

    pub fn finish(&mut self, threads: &Measured) {
        self.measured = self.plain.clone();
        self.measured.join(if self.ends_when_crossed() { &self.calls } else { &self.crossed });
        self.measured.nested = self.nested;
        self.measured.kernels = threads.kernels;
        (self.measured.thread_time, self.measured.thread_active) = (threads.thread_time, threads.thread_active);
    }

    pub fn are_steps(&self) -> bool {
        !self.overlap && self.measured.count >= super::candidates::REPEATS
    }
}
