//! One clock: CUPTI is given ours. Where it does not take it, and as a check where it does, both are read in a bracket again and
//! again; the largest disagreement goes onto the status page as the residual. Until one reading succeeded a time of CUPTI's own
//! clock has no place on ours, and gets none.

use super::api::{Cupti, SUCCESS};
use std::sync::atomic::Ordering;
use trace::clock::monotonic;
use trace::codes::{Reason, ReasonCode};
use trace::status::Collector;
use workload::session::Session;

/// Readings of both clocks for one anchor.
const READINGS: usize = 5;

#[derive(Clone, Copy)]
enum Theirs {
    /// CUPTI runs on our clock.
    Ours,
    /// On one of its own, which it has not told yet; why: its result.
    Unknown(u32),
    /// On one of its own: so much more than ours.
    Ahead(i64),
}

pub struct Clock {
    theirs: Theirs,
}

unsafe extern "C" fn now() -> u64 {
    monotonic().0
}

impl Clock {
    pub fn new(cupti: &Cupti, session: &Session) -> Clock {
        // SAFETY: the callback only reads the clock.
        let taken = cupti.register_timestamp.is_some_and(|register| unsafe { register(now) } == SUCCESS);
        let mut clock = Clock { theirs: if taken { Theirs::Ours } else { Theirs::Unknown(SUCCESS) } };
        clock.anchor(cupti, session);
        clock
    }

    pub fn is_ours(&self) -> bool {
        matches!(self.theirs, Theirs::Ours)
    }

    /// Why times of CUPTI have no place on our clock. None: they have.
    pub fn unknown(&self, cupti: &Cupti) -> Option<Reason> {
        let Theirs::Unknown(code) = self.theirs else { return None };
        Some(match (cupti.timestamp, code) {
            (None, _) => Reason::new(ReasonCode::CuptiTellsNoTime),
            (_, SUCCESS) => Reason::new(ReasonCode::CuptiTimeIsZero),
            (_, code) => Reason::new(ReasonCode::CuptiTimeFailed).with(cupti.words(code)),
        })
    }

    /// Reads both clocks, several times, and believes the narrowest bracket.
    pub fn anchor(&mut self, cupti: &Cupti, session: &Session) {
        let Some(timestamp) = cupti.timestamp else { return };
        let (mut best, mut failure): (Option<(u64, i64)>, u32) = (None, SUCCESS);
        for _ in 0..READINGS {
            let mut theirs = 0;
            let before = monotonic().0;
            // SAFETY: it only stores a number.
            let code = unsafe { timestamp(&mut theirs) };
            let after = monotonic().0;
            if code != SUCCESS || theirs == 0 {
                failure = code;
                continue;
            }
            let half = (after - before).div_ceil(2);
            let offset = theirs.wrapping_sub(before + (after - before) / 2) as i64;
            if best.is_none_or(|(narrowest, _)| half < narrowest) {
                best = Some((half, offset));
            }
        }
        let Some((half, offset)) = best else {
            if let Theirs::Unknown(code) = &mut self.theirs {
                *code = failure;
            }
            return;
        };
        let moved = match self.theirs {
            Theirs::Ours => offset.unsigned_abs(),
            // The first look only finds the offset.
            Theirs::Unknown(_) => 0,
            Theirs::Ahead(known) => offset.abs_diff(known),
        };
        session.status(Collector::Gpu).residual_ns.fetch_max(moved + half, Ordering::Relaxed);
        if !self.is_ours() {
            self.theirs = Theirs::Ahead(offset);
        }
    }

    /// A time of CUPTI's on our clock, if that is known.
    #[inline]
    pub fn ours(&self, theirs: u64) -> Option<u64> {
        match self.theirs {
            Theirs::Ours => Some(theirs),
            Theirs::Ahead(offset) => Some(theirs.wrapping_sub(offset as u64)),
            Theirs::Unknown(_) => None,
        }
    }
}
