//! The sentences of the codes, each written once. They stand here because everybody who says one can reach this crate and no later one:
//! the recorder at the end of a run, the analysis in a finding's title, the report. What runs in the workload says none of them, and
//! the linker leaves them out of its libraries. Nobody reads a meaning out of them.

mod notes;
mod reasons;
mod windows;

use crate::codes::{LossReason, RecordingWindow};

/// What was lost, to stand after its number: one, and many.
const fn forms(reason: LossReason) -> [&'static str; 2] {
    match reason {
        LossReason::Unknown => [
            "record lost for a reason that this version does not know",
            "records lost for a reason that this version does not know",
        ],
        LossReason::Overwritten => [
            "record overwritten before it could be written to disk",
            "records overwritten before they could be written to disk",
        ],
        LossReason::OverwrittenDuringRestart => {
            ["record overwritten while the recorder restarted", "records overwritten while the recorder restarted"]
        }
        LossReason::UnknownRecord => ["record of an unknown kind", "records of an unknown kind"],
        LossReason::IncompleteDeviceRecord => ["GPU record partly overwritten", "GPU records partly overwritten"],
        LossReason::RowsNotWritten => {
            ["row dropped: the disk did not accept it", "rows dropped: the disk did not accept them"]
        }
        LossReason::RecorderLate => [
            "sample dropped because the recorder could not keep up",
            "samples dropped because the recorder could not keep up",
        ],
        LossReason::NoRoom => {
            ["record dropped: no shared memory left for it", "records dropped: no shared memory left for them"]
        }
        LossReason::CollectorErrors => [
            "internal error of the collector; recording went on",
            "internal errors of the collector; recording went on",
        ],
        LossReason::Unpaired => ["begin or end that did not pair", "begins and ends that did not pair"],
        LossReason::TextCut => {
            ["name or metadata truncated to 4096 bytes", "names or metadata truncated to 4096 bytes"]
        }
        LossReason::TooManyFunctions => {
            ["function not recorded: too many functions", "functions not recorded: too many functions"]
        }
        LossReason::DroppedByCupti => [
            "GPU record dropped, by CUPTI or for lack of buffer space",
            "GPU records dropped, by CUPTI or for lack of buffer space",
        ],
        LossReason::WorkWithoutTime => ["GPU operation without a timestamp", "GPU operations without a timestamp"],
        LossReason::UnknownCuptiRecord => [
            "CUPTI record of a kind that this version does not know",
            "CUPTI records of a kind that this version does not know",
        ],
        LossReason::TooManyRanges => [
            "NVTX range, domain or name not recorded: too many of them",
            "NVTX ranges, domains or names not recorded: too many of them",
        ],
        LossReason::SamplerLate => {
            ["stack sample skipped: the sampler was late", "stack samples skipped: the sampler was late"]
        }
        LossReason::StackChanged => [
            "stack sample unreadable: the stack changed while it was read",
            "stack samples unreadable: the stack changed while it was read",
        ],
        LossReason::SamplesNotWritten => {
            ["stack sample dropped: the disk did not accept it", "stack samples dropped: the disk did not accept them"]
        }
        LossReason::SlicesBeyondTimeline => [
            "slice left out: a timeline holds at most 4294967294",
            "slices left out: a timeline holds at most 4294967294",
        ],
        LossReason::WorkBeyondTimeline => [
            "GPU operation left out: a timeline holds at most 4294967294",
            "GPU operations left out: a timeline holds at most 4294967294",
        ],
        LossReason::SamplesBeyondTimeline => [
            "sample left out: a timeline holds at most 4294967294",
            "samples left out: a timeline holds at most 4294967294",
        ],
        LossReason::BlocksBeyondTimeline => [
            "allocator event left out: a timeline holds at most 400000000",
            "allocator events left out: a timeline holds at most 400000000",
        ],
    }
}

impl LossReason {
    /// What was lost so many times, to stand behind the number.
    pub fn said(self, count: u64) -> &'static str {
        let [one, many] = forms(self);
        if count == 1 { one } else { many }
    }
}

impl RecordingWindow {
    /// How the turn is called on a page and in other tools.
    pub fn said(self) -> &'static str {
        match self {
            RecordingWindow::On => "GPU recording on",
            RecordingWindow::Off => "GPU recording off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_told_as_many() {
        assert_eq!(LossReason::StackChanged.said(1), "stack sample unreadable: the stack changed while it was read");
        for reason in LossReason::ALL {
            assert_ne!(reason.said(1), reason.said(2), "{}", reason.name());
            assert_eq!(reason.said(0), reason.said(2));
        }
    }
}
