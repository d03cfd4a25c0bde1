//! One clock: CUPTI is given ours. Where it does not take it, and as a check where it does, both are read in a bracket again and
//! again; the largest disagreement goes onto the status page as the residual.

use super::api::{Cupti, SUCCESS};
use crate::session::Session;
use std::sync::atomic::Ordering;
use trace::clock::monotonic;
use trace::status::Collector;

pub struct Clock {
    /// CUPTI's own clock minus ours. None: it runs on ours.
    offset: Option<i64>,
}

unsafe extern "C" fn now() -> u64 {
    monotonic().0
}

impl Clock {
    pub fn new(cupti: &Cupti, session: &Session) -> Clock {
        // SAFETY: the callback only reads the clock.
        let taken = cupti.register_timestamp.is_some_and(|register| unsafe { register(now) } == SUCCESS);
        let mut clock = Clock { offset: (!taken).then_some(0) };
        clock.anchor(cupti, session);
        clock
    }

    pub fn is_ours(&self) -> bool {
        self.offset.is_none()
    }

    /// Reads both clocks, several times, and believes the narrowest bracket.
    pub fn anchor(&mut self, cupti: &Cupti, session: &Session) {
        let Some(timestamp) = cupti.timestamp else { return };
        let mut best: Option<(u64, i64)> = None;
        for _ in 0..5 {
            let mut theirs = 0;
            let before = monotonic().0;
            // SAFETY: it only stores a number.
            let code = unsafe { timestamp(&mut theirs) };
            let after = monotonic().0;
            if code != SUCCESS || theirs == 0 {
                return;
            }
            let half = (after - before).div_ceil(2);
            let offset = theirs.wrapping_sub(before + (after - before) / 2) as i64;
            if best.is_none_or(|(narrowest, _)| half < narrowest) {
                best = Some((half, offset));
            }
        }
        let Some((half, offset)) = best else { return };
        let known = self.offset.unwrap_or(0);
        // The first look only finds the offset.
        let moved = if self.offset == Some(0) { 0 } else { offset.abs_diff(known) };
        session.status(Collector::Gpu).residual_ns.fetch_max(moved + half, Ordering::Relaxed);
        if self.offset.is_some() {
            self.offset = Some(offset);
        }
    }

    #[inline]
    pub fn ours(&self, theirs: u64) -> u64 {
        self.offset.map_or(theirs, |offset| theirs.wrapping_sub(offset as u64))
    }
}
