//! What kind of change a gain is of. How far a promised gain is from a measured one differs by this more than by anything else: a wait that goes is
//! gone, what a faster kernel reaches is an estimate. Ranges are calibrated by it.

use crate::expression::{Change, Target};
use timeline::{Timeline, WorkKind};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ChangeKind {
    /// Kernels run faster, or fewer of them do the same.
    Kernels,
    /// Copies and memsets go, shrink or overlap.
    Copies,
    /// Waits for a device, and other CUDA calls, go.
    Calls,
    /// Launches cost less: a graph, or no gaps between queued work.
    Launches,
    /// Code of the host goes or moves elsewhere.
    HostCode,
    /// Nothing that a replay knows, or several of these.
    #[default]
    Other,
}

impl ChangeKind {
    pub const ALL: [ChangeKind; 6] = [
        ChangeKind::Kernels,
        ChangeKind::Copies,
        ChangeKind::Calls,
        ChangeKind::Launches,
        ChangeKind::HostCode,
        ChangeKind::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Kernels => "kernels",
            ChangeKind::Copies => "copies",
            ChangeKind::Calls => "calls",
            ChangeKind::Launches => "launches",
            ChangeKind::HostCode => "host-code",
            ChangeKind::Other => "other",
        }
    }

    /// Several changes are of the kind that all of them are of.
    pub(crate) fn of(timeline: &Timeline, changes: &[Change]) -> ChangeKind {
        let mut kinds = changes.iter().map(|change| of_one(timeline, change));
        let Some(first) = kinds.next() else { return ChangeKind::Other };
        if kinds.all(|kind| kind == first) { first } else { ChangeKind::Other }
    }
}

fn of_one(timeline: &Timeline, change: &Change) -> ChangeKind {
    match change {
        Change::Work(pieces, _) => {
            let kernels = pieces.iter().filter(|index| timeline.gpu.work.kind(**index as usize) == WorkKind::Kernel);
            if 2 * kernels.count() > pieces.len() { ChangeKind::Kernels } else { ChangeKind::Copies }
        }
        Change::Scale(Target::Kernel(_), _) => ChangeKind::Kernels,
        Change::Scale(Target::Copy(_), _) | Change::PinCopies => ChangeKind::Copies,
        Change::Calls(..) | Change::Scale(Target::SyncApi | Target::Api(_), _) => ChangeKind::Calls,
        Change::GraphSteps | Change::CloseGaps => ChangeKind::Launches,
        Change::Stretches(..) | Change::HostCode(_) | Change::Scale(Target::Host(_), _) => ChangeKind::HostCode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_of_the_kind_that_all_of_them_are_of() {
        let timeline = Timeline::default();
        let of = |changes: &[Change]| ChangeKind::of(&timeline, changes);
        assert_eq!(of(&[]), ChangeKind::Other);
        assert_eq!(of(&[Change::GraphSteps, Change::CloseGaps]), ChangeKind::Launches);
        assert_eq!(of(&[Change::GraphSteps, Change::HostCode(0.5)]), ChangeKind::Other);
        assert_eq!(of(&[Change::Calls(vec![0], 0.0)]), ChangeKind::Calls);
        assert_eq!(of(&[Change::PinCopies]), ChangeKind::Copies);
        assert_eq!(of(&[Change::Scale(Target::Kernel("gemm*".into()), 0.5)]), ChangeKind::Kernels);
    }

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let mut names: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ChangeKind::ALL.len());
    }
}
