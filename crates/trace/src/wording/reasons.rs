//! Why a collector does not record, or less than all, in words.

use crate::codes::{Reason, ReasonCode};
use crate::quantity;

impl Reason {
    pub fn said(&self) -> String {
        use ReasonCode::*;
        let [first, second, third] = [0, 1, 2].map(|at| self.args.get(at).map_or("", String::as_str));
        match self.code {
            CuptiTaken => {
                "another profiler took over CUPTI: CUDA calls went on, but their GPU work was no longer reported".into()
            }
            CuptiSilent => {
                "CUDA calls went on, but their GPU work was no longer reported: another profiler may have taken over CUPTI"
                    .into()
            }
            CuptiQuiet => format!(
                "CUDA calls go on, but no GPU work finished for {first} s: a kernel runs that long, or another profiler \
                 took over CUPTI"
            ),
            CuptiKeptRecords => format!("CUPTI did not deliver its last records: {first}"),
            KernelsRefusedAfterPause => format!(
                "after a pause CUPTI refuses to record kernels: {first}; some or all GPU work after that is missing"
            ),
            CuptiTellsNoTime => no_clock("it has no cuptiGetTimestamp"),
            CuptiTimeIsZero => no_clock("cuptiGetTimestamp gives 0"),
            CuptiTimeFailed => no_clock(&format!("cuptiGetTimestamp: {first}")),
            MemoryAfterCapture => format!(
                "CUPTI keeps about {first} bytes of the program's memory for every kernel launched after a CUDA graph was \
                 captured while it records, and never frees them (seen with CUDA 13.0): here that may be {} and more. To \
                 avoid it, record a shorter run, or start recording after the capture: call inferscope.start() in the \
                 program instead of using inferscope run",
                bytes(second)
            ),
            MemoryKeptAfterCapture => {
                let counted = match first == second {
                    true => String::new(),
                    false => format!(" ({second} were counted in recorded windows)"),
                };
                format!(
                    "about {first} kernels were launched after a CUDA graph was captured{counted}: CUPTI may have kept {} \
                     or more of the program's memory by the end",
                    bytes(third)
                )
            }
            CuptiOfAnotherCuda => format!(
                "{first} is for CUDA {second}, but the program runs CUDA {third}: kernels may be missing or have wrong times"
            ),
            CuptiNewerThanDriver => {
                format!("{first} is for CUDA {second}, newer than the driver's CUDA {third}: kernels may be missing")
            }
            NoCallTable => format!("{first} has no table of its calls"),
            CallTableReadOnly => format!("{first} is write-protected (RELRO)"),
            FunctionNotFound => format!("{first} was not found in any loaded library"),
            FunctionNotCalled => format!("{first} does not call {second}: this version of PyTorch is not supported"),
            TooManyCopies => format!("the program loads more than {first} copies of PyTorch"),
            SlotReadOnly => format!("the entry of {first} is write-protected: {second}"),
            HookRemoved => "another tool replaced InferScope's hook in PyTorch: blocks after that are missing".into(),
            NoHook => format!("no hook for {first}"),
            PythonUnknown => format!("stacks of blocks are read on CPython 3.10 to 3.13, this is {first}"),
            PythonDiffers => {
                format!("a trial reading of Python's frames did not match what Python {second} says itself ({first})")
            }
            NvtxGivesNoFunctions => "the program's NVTX has none of the expected functions".into(),
        }
    }
}

fn no_clock(why: &str) -> String {
    format!("CUPTI does not take the recorder's clock and does not tell its own ({why})")
}

fn bytes(text: &str) -> String {
    quantity::bytes(text.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_says_something_with_and_without_its_arguments() {
        for code in ReasonCode::ALL {
            let bare = Reason::new(*code);
            let full = bare.clone().with("7").with("8").with("9");
            assert!(!bare.said().is_empty() && !full.said().contains("  "), "{}", code.name());
        }
    }

    #[test]
    fn what_cupti_may_have_kept_is_of_what_was_launched() {
        let kept = |launched: u64, counted: u64| {
            let reason = Reason::new(ReasonCode::MemoryKeptAfterCapture).with(launched).with(counted);
            reason.with(launched * 32).said()
        };
        assert!(
            kept(3_000_000, 3_000_000)
                .starts_with("about 3000000 kernels were launched after a CUDA graph was captured:")
        );
        assert!(kept(3_000_000, 900_000).contains("(900000 were counted in recorded windows)"));
    }
}
