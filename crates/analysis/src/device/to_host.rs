//! Copies of results to the host, and how near the wait for one is: what idle time, rules and metrics call an implicit synchronisation.

use timeline::gpu::detail;
use timeline::{Timeline, WorkKind};

/// Up to here a copy to the host takes no longer than its own latency on any link: it is the wait that costs, not the bytes.
pub const SMALL_BYTES: u64 = 64 << 10;

/// Between a copy and the wait for it PyTorch makes at most a few short calls.
pub const CALLS_BETWEEN: usize = 3;
pub const TIME_BETWEEN_NS: u64 = 100_000;

/// What a call copies to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToHost {
    pub bytes: u64,
    /// Into pageable memory also the asynchronous copy returns only when it is done.
    pub pageable: bool,
}

impl ToHost {
    /// None: the call copies elsewhere, or nothing is known of it.
    pub fn of(timeline: &Timeline, call: usize) -> Option<ToHost> {
        let work = &timeline.gpu.work;
        let copies = work.of_launch(call).iter().map(|index| work.get(*index as usize));
        let copies = copies.filter(|piece| piece.kind == WorkKind::Memcpy && piece.copy().direction == detail::D2H);
        let each = copies.map(|piece| ToHost { bytes: piece.bytes, pageable: piece.copy().target == detail::PAGEABLE });
        each.reduce(|a, b| ToHost { bytes: a.bytes.saturating_add(b.bytes), pageable: a.pageable || b.pageable })
    }

    pub fn is_small(self) -> bool {
        self.bytes <= SMALL_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_to_the_host_is_known_by_its_call() {
        let text = "track main\n stream 7\n api cudaMemcpyAsync 0..1us\n copy d2h 2us..3us 8 pageable\n\
                    api cudaMemcpyAsync 4us..5us\n copy h2d 6us..7us 8 pinned";
        let timeline = Timeline::from_text(text).unwrap();
        assert_eq!(ToHost::of(&timeline, 0), Some(ToHost { bytes: 8, pageable: true }));
        assert_eq!(ToHost::of(&timeline, 1), None);
        assert!(ToHost { bytes: SMALL_BYTES, pageable: false }.is_small());
    }
}
