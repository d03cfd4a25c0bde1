//! The sentences of the codes, each written once. They stand here because everybody who says one can reach this crate and no later one:
//! the recorder at the end of a run, the analysis in a finding's title, the report. What runs in the workload says none of them, and
//! the linker leaves them out of its libraries. Nobody reads a meaning out of them.

mod notes;

use crate::codes::{LossReason, RecordingWindow};

/// What was lost, to stand after its number: one, and many.
const fn forms(reason: LossReason) -> [&'static str; 2] {
    match reason {
        LossReason::Unknown => [
            "record, for a reason that this version does not know",
            "records, for a reason that this version does not know",
        ],
        LossReason::Overwritten => [
            "record overwritten before it could be written to disk",
            "records overwritten before they could be written to disk",
        ],
        LossReason::OverwrittenDuringRestart => [
            "record overwritten while the recorder was started again",
            "records overwritten while the recorder was started again",
        ],
        LossReason::UnknownRecord => ["record of an unknown kind", "records of an unknown kind"],
        LossReason::IncompleteDeviceRecord => [
            "record of a device of which a part was overwritten",
            "records of a device of which a part was overwritten",
        ],
        LossReason::RowsNotWritten => {
            ["row dropped while the disk took nothing", "rows dropped while the disk took nothing"]
        }
        LossReason::RecorderLate => [
            "sample dropped because the recorder could not keep up",
            "samples dropped because the recorder could not keep up",
        ],
        LossReason::NoRoom => {
            ["record that found no room in shared memory", "records that found no room in shared memory"]
        }
        LossReason::CollectorErrors => {
            ["error inside the collector, survived", "errors inside the collector, survived"]
        }
        LossReason::Unpaired => ["begin or end that did not pair", "begins and ends that did not pair"],
        LossReason::TextCut => ["name or metadata cut to 4096 bytes", "names or metadata cut to 4096 bytes"],
        LossReason::TooManyFunctions => {
            ["function beyond the limit, not recorded", "functions beyond the limit, not recorded"]
        }
        LossReason::DroppedByCupti => {
            ["record that CUPTI dropped or that found no room", "records that CUPTI dropped or that found no room"]
        }
        LossReason::WorkWithoutTime => ["piece of work without a time", "pieces of work without a time"],
        LossReason::UnknownCuptiRecord => {
            ["record of a kind that this version does not know", "records of a kind that this version does not know"]
        }
        LossReason::TooManyRanges => {
            ["range, domain or name beyond the limit", "ranges, domains or names beyond the limit"]
        }
        LossReason::SamplerLate => [
            "stack sample skipped because the machine or the sampler was late",
            "stack samples skipped because the machine or the sampler was late",
        ],
        LossReason::StackChanged => [
            "stack that could not be read because it changed meanwhile",
            "stacks that could not be read because they changed meanwhile",
        ],
        LossReason::SamplesNotWritten => {
            ["stack sample dropped while the disk took nothing", "stack samples dropped while the disk took nothing"]
        }
        LossReason::SlicesBeyondTimeline => [
            "row of slices beyond the 4294967294 that a timeline holds",
            "rows of slices beyond the 4294967294 that a timeline holds",
        ],
        LossReason::WorkBeyondTimeline => [
            "row of gpu beyond the 4294967294 that a timeline holds",
            "rows of gpu beyond the 4294967294 that a timeline holds",
        ],
        LossReason::SamplesBeyondTimeline => [
            "row of samples beyond the 4294967294 that a timeline holds",
            "rows of samples beyond the 4294967294 that a timeline holds",
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
        assert_eq!(LossReason::StackChanged.said(1), "stack that could not be read because it changed meanwhile");
        for reason in LossReason::ALL {
            assert_ne!(reason.said(1), reason.said(2), "{}", reason.name());
            assert_eq!(reason.said(0), reason.said(2));
        }
    }
}
