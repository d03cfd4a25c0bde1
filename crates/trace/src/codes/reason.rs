//! Why a collector in the workload does not record, or no longer, or less than all: a code with its numbers and names. It stands on the
//! status page and in notes; [`crate::wording`] makes the sentence, outside of the workload.

use super::note::{BETWEEN, clean};
use super::{Note, NoteCode};

super::codes! {
    /// The arguments of each stand beside its wording.
    pub enum ReasonCode {
        /// CUDA calls went on, and CUPTI no longer knows us.
        CuptiTaken = 1, "cupti-taken";
        /// CUDA calls went on to the end, and their work was never reported.
        CuptiSilent = 2, "cupti-silent";
        /// The same while the program still runs.
        CuptiQuiet = 3, "cupti-quiet";
        CuptiKeptRecords = 4, "cupti-kept-records";
        KernelsRefusedAfterPause = 5, "kernels-refused-after-pause";
        CuptiTellsNoTime = 6, "cupti-tells-no-time";
        CuptiTimeIsZero = 7, "cupti-time-is-zero";
        CuptiTimeFailed = 8, "cupti-time-failed";
        /// Before the end: it may come to so much.
        MemoryAfterCapture = 9, "memory-after-capture";
        /// At the end.
        MemoryKeptAfterCapture = 10, "memory-kept-after-capture";
        CuptiOfAnotherCuda = 11, "cupti-of-another-cuda";
        CuptiNewerThanDriver = 12, "cupti-newer-than-driver";
        NoCallTable = 13, "no-call-table";
        CallTableReadOnly = 14, "call-table-read-only";
        FunctionNotFound = 15, "function-not-found";
        FunctionNotCalled = 16, "function-not-called";
        TooManyCopies = 17, "too-many-copies";
        SlotReadOnly = 18, "slot-read-only";
        HookRemoved = 19, "hook-removed";
        NoHook = 20, "no-hook";
        NvtxGivesNoFunctions = 21, "nvtx-gives-no-functions";
        /// Where this version of Python keeps its frames is not known.
        PythonUnknown = 22, "python-unknown";
        /// What was read of its frames is not what it says itself.
        PythonDiffers = 23, "python-differs";
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    pub code: ReasonCode,
    pub args: Vec<String>,
}

/// In front of a reason on the status page: a character that no sentence there has.
const MARK: char = '\u{1e}';

impl Reason {
    pub fn new(code: ReasonCode) -> Reason {
        Reason { code, args: Vec::new() }
    }

    /// Adds an argument.
    pub fn with(mut self, argument: impl ToString) -> Reason {
        self.args.push(clean(argument));
        self
    }

    /// As the status page has it.
    pub fn message(&self) -> String {
        let mut text = format!("{MARK}{}", self.code.name());
        for argument in &self.args {
            text.push(BETWEEN);
            text.push_str(argument);
        }
        text
    }

    /// The inverse of [`Reason::message`]. None: a sentence, as what works describes itself by.
    pub fn from_message(message: &str) -> Option<Reason> {
        let mut parts = message.strip_prefix(MARK)?.split(BETWEEN);
        let code = ReasonCode::from_name(parts.next()?)?;
        Some(Reason { code, args: parts.map(str::to_owned).collect() })
    }

    /// The note that has it as its arguments.
    pub fn note(&self, code: NoteCode) -> Note {
        self.args.iter().fold(Note::new(code).with(self.code.name()), |note, argument| note.with(argument))
    }

    /// The inverse of [`Reason::note`]. None: a sentence, of a trace from before there were reasons.
    pub fn of_note(note: &Note) -> Option<Reason> {
        let (code, args) = note.args.split_first()?;
        Some(Reason { code: ReasonCode::from_name(code)?, args: args.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_the_status_page_and_its_note() {
        let reason = Reason::new(ReasonCode::CuptiKeptRecords).with("error 7,\u{1f} unknown").with(3);
        assert_eq!(Reason::from_message(&reason.message()), Some(reason.clone()));
        assert_eq!(Reason::of_note(&reason.note(NoteCode::GpuRecordingStopped)), Some(reason));
        for sentence in ["", "cupti-taken", "libcupti.so.13, CUPTI 130001", "\u{1e}of-a-later-version"] {
            assert_eq!(Reason::from_message(sentence), None, "{sentence}");
        }
        let older = Note::new(NoteCode::GpuRecordingStopped).with("another profiler has taken CUPTI over");
        assert_eq!(Reason::of_note(&older), None);
    }

    #[test]
    fn it_fits_onto_the_status_page_with_a_path() {
        let longest = Reason::new(ReasonCode::KernelsRefusedAfterPause).with("e".repeat(120));
        assert!(longest.message().len() <= crate::status::MESSAGE_BYTES);
    }
}
