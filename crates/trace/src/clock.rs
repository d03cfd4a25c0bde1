//! The clock. Records carry ticks: the processor's time-stamp counter where the kernel itself trusts it, else
//! `CLOCK_MONOTONIC` nanoseconds. Ticks become nanoseconds outside the workload, by anchors: both clocks read in
//! one bracket, again and again. The distance between prediction and anchor is kept as the error bar.

use std::sync::atomic::{AtomicU32, Ordering};

/// `CLOCK_MONOTONIC` nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

/// A reading of the segment's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ticks(pub u64);

/// Where ticks come from. The numbers are in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Source {
    Monotonic = 1,
    Tsc = 2,
}

impl Source {
    pub fn from_u32(number: u32) -> Option<Source> {
        match number {
            1 => Some(Source::Monotonic),
            2 => Some(Source::Tsc),
            _ => None,
        }
    }

    /// The counter is used only if the processor calls it invariant and the kernel keeps its own time by it:
    /// the kernel watches it against other clocks and switches away when it drifts.
    pub fn detect() -> Source {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::__cpuid;
            let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0;
            let kernel = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
            if invariant && kernel.is_ok_and(|name| name.trim() == "tsc") {
                return Source::Tsc;
            }
        }
        Source::Monotonic
    }

    #[inline(always)]
    pub fn now(self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self == Source::Tsc {
            // SAFETY: rdtsc has no precondition on x86_64.
            return unsafe { std::arch::x86_64::_rdtsc() };
        }
        monotonic().0
    }
}

// Set once before the first record; read on the hot path.
static SOURCE: AtomicU32 = AtomicU32::new(Source::Monotonic as u32);

/// Chooses the clock of this process's records.
pub fn set_source(source: Source) {
    SOURCE.store(source as u32, Ordering::Relaxed);
}

/// Now, in the clock chosen by [`set_source`].
#[inline(always)]
pub fn now() -> u64 {
    if SOURCE.load(Ordering::Relaxed) == Source::Tsc as u32 { Source::Tsc.now() } else { monotonic().0 }
}

pub fn monotonic() -> Nanos {
    Nanos(read(libc::CLOCK_MONOTONIC))
}

pub fn realtime() -> u64 {
    read(libc::CLOCK_REALTIME)
}

#[inline(always)]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clocks read together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Anchor {
    pub ticks: u64,
    pub mono: u64,
    pub real: u64,
    /// Width of the bracket in ticks: the readings are at most this far apart.
    pub bracket: u64,
}

impl Anchor {
    /// The tightest of several brackets, so that one preemption does not spoil it.
    pub fn take(source: Source) -> Anchor {
        let one = || {
            let before = source.now();
            let mono = monotonic().0;
            let after = source.now();
            let bracket = after.wrapping_sub(before);
            Anchor { ticks: before.wrapping_add(bracket / 2), mono, real: 0, bracket }
        };
        let mut best = one();
        for _ in 0..8 {
            let next = one();
            if next.bracket < best.bracket {
                best = next;
            }
        }
        let real = realtime();
        best.real = real.wrapping_sub(monotonic().0.wrapping_sub(best.mono));
        best
    }
}

/// One straight piece of the mapping. Frozen once made, so a tick maps to the same nanosecond for ever.
#[derive(Clone, Copy, Debug)]
struct Piece {
    ticks: u64,
    mono: u64,
    /// Nanoseconds per tick, 32 fractional bits.
    slope: u64,
}

impl Piece {
    #[inline]
    fn at(&self, ticks: u64) -> u64 {
        let delta = i128::from(ticks) - i128::from(self.ticks);
        let nanos = i128::from(self.mono) + ((delta * i128::from(self.slope)) >> 32);
        nanos.clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// Ticks to nanoseconds: continuous, monotone straight pieces that follow the anchors.
///
/// Each new anchor starts a piece at the value the last piece predicts (so time never jumps) with a slope that
/// meets the anchor's line one interval later.
#[derive(Clone, Debug)]
pub struct Mapping {
    source: Source,
    first: Anchor,
    last: Anchor,
    pieces: Vec<Piece>,
    residual: u64,
}

/// A piece a second is kept for a day; then every other old piece goes.
const MOST_PIECES: usize = 86_400;

impl Mapping {
    /// From two anchors of the same clock, the farther apart the better.
    pub fn new(source: Source, first: Anchor, second: Anchor) -> Mapping {
        let slope = slope(first, second).unwrap_or(1 << 32);
        let piece = Piece { ticks: first.ticks, mono: first.mono, slope };
        Mapping { source, first, last: second, pieces: vec![piece], residual: 0 }
    }

    /// A mapping that starts now. Watches the two clocks for 10 ms.
    pub fn calibrate(source: Source) -> Mapping {
        let first = Anchor::take(source);
        if source == Source::Tsc {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Mapping::new(source, first, Anchor::take(source))
    }

    pub fn source(&self) -> Source {
        self.source
    }

    /// Takes a later anchor in and returns how far the prediction was off, in nanoseconds.
    pub fn extend(&mut self, anchor: Anchor) -> u64 {
        if self.source == Source::Monotonic || anchor.ticks <= self.last.ticks || anchor.mono <= self.last.mono {
            return 0;
        }
        let predicted = self.nanos(Ticks(anchor.ticks)).0;
        let off = predicted.abs_diff(anchor.mono);
        self.residual = self.residual.max(off);
        let Some(rate) = slope(self.first, anchor) else { return off };
        // Where the anchors' line will be one interval from now; never backwards.
        let interval = anchor.ticks - self.last.ticks;
        let target = u128::from(anchor.mono) + ((u128::from(interval) * u128::from(rate)) >> 32);
        let rise = target.saturating_sub(u128::from(predicted));
        let slope = u64::try_from((rise << 32) / u128::from(interval)).unwrap_or(rate);
        self.pieces.push(Piece { ticks: anchor.ticks, mono: predicted, slope });
        if self.pieces.len() > MOST_PIECES {
            let half = self.pieces.len() / 2;
            let mut number = 0;
            self.pieces.retain(|_| {
                number += 1;
                number == 1 || number > half || number % 2 == 0
            });
        }
        self.last = anchor;
        off
    }

    #[inline]
    pub fn nanos(&self, ticks: Ticks) -> Nanos {
        if self.source == Source::Monotonic {
            return Nanos(ticks.0);
        }
        let last = &self.pieces[self.pieces.len() - 1];
        if ticks.0 >= last.ticks {
            return Nanos(last.at(ticks.0));
        }
        let after = self.pieces.partition_point(|piece| piece.ticks <= ticks.0);
        Nanos(self.pieces[after.saturating_sub(1)].at(ticks.0))
    }

    /// The largest distance between prediction and anchor so far: the error bar of every time in the trace.
    pub fn residual(&self) -> u64 {
        self.residual
    }
}

/// Nanoseconds per tick between two anchors, 32 fractional bits. None when they are damaged or identical.
fn slope(first: Anchor, second: Anchor) -> Option<u64> {
    let ticks = second.ticks.checked_sub(first.ticks).filter(|t| *t > 0)?;
    let nanos = second.mono.checked_sub(first.mono).filter(|n| *n > 0)?;
    u64::try_from((u128::from(nanos) << 32) / u128::from(ticks)).ok().filter(|s| *s > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(ticks: u64, mono: u64) -> Anchor {
        Anchor { ticks, mono, real: 0, bracket: 0 }
    }

    #[test]
    fn a_tick_keeps_its_nanosecond_when_anchors_arrive() {
        let mut mapping = Mapping::new(Source::Tsc, anchor(1000, 500), anchor(3_001_000, 1_000_500));
        let before = mapping.nanos(Ticks(4_000_000));
        mapping.extend(anchor(6_001_000, 2_000_700));
        assert_eq!(mapping.nanos(Ticks(4_000_000)), before);
        assert!(mapping.residual().abs_diff(200) <= 1);
    }

    #[test]
    fn time_never_runs_backwards_and_follows_a_drifting_clock() {
        let mut mapping = Mapping::new(Source::Tsc, anchor(0, 0), anchor(3_000_000, 1_000_000));
        let mut last = Nanos(0);
        // 3 ticks a nanosecond, then 20 ppm faster.
        for second in 1..50u64 {
            let mono = second * 1_000_000_000;
            let drifted = mono + mono / 50_000;
            mapping.extend(anchor(mono * 3, drifted));
            for part in 0..100 {
                let now = mapping.nanos(Ticks(mono * 3 + part * 30_000_000));
                assert!(now >= last);
                last = now;
            }
        }
        let end = 50 * 1_000_000_000u64;
        assert!(mapping.nanos(Ticks(end * 3)).0.abs_diff(end + end / 50_000) < 2_000);
    }

    #[test]
    fn the_real_clocks_agree() {
        let source = Source::detect();
        let mut mapping = Mapping::calibrate(source);
        for _ in 0..20 {
            let anchor = Anchor::take(source);
            mapping.extend(anchor);
            let low = monotonic();
            let mapped = mapping.nanos(Ticks(source.now()));
            let high = monotonic();
            // The bracket may be widened by preemption but never inverted by more than the residual.
            let slack = mapping.residual() + 20_000;
            assert!(mapped.0 + slack >= low.0 && mapped.0 <= high.0 + slack);
        }
    }

    #[test]
    fn damaged_anchors_do_no_harm() {
        let zero = anchor(0, 0);
        let mut mapping = Mapping::new(Source::Tsc, zero, zero);
        mapping.extend(anchor(u64::MAX, 1));
        mapping.extend(anchor(5, u64::MAX));
        mapping.nanos(Ticks(u64::MAX));
        mapping.nanos(Ticks(0));
    }
}
