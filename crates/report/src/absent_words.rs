//! What a recording does not have, and why.

use analysis::metrics::absent::{Absent, Missing, Why};
use analysis::phrase;
use diagnosis::wording::origin;
use timeline::RecordedBy;

pub fn what(absent: &Absent) -> &'static str {
    match absent.what {
        Missing::Samples => "stack samples",
        Missing::Calls => "calls",
        Missing::Marks => "scopes, steps and marks",
        Missing::Launches => "calls that launch GPU work",
        Missing::Layers => "layers",
        Missing::CpuTime => "CPU time",
        Missing::Memory => "memory",
    }
}

pub fn why(absent: &Absent) -> String {
    match (&absent.why, absent.what) {
        (Why::Reported(reason), _) => reason.as_str(),
        (Why::NotAsked(recorder), Missing::Launches) => origin::for_launches(*recorder),
        (Why::NotAsked(recorder), Missing::Layers) => origin::for_layers(*recorder),
        (Why::NotAsked(recorder), _) => origin::for_calls(*recorder),
        (Why::NotFrom(RecordedBy::Kineto), Missing::Samples) => "torch.profiler does not sample",
        (Why::NotFrom(_), Missing::Samples) => "not read from Nsight Systems files",
        (Why::NotFrom(recorder), _) => {
            recorder.choose("not read", "not recorded by torch.profiler", "not read from the file")
        }
        (Why::SamplingOff, _) => "sampling was off",
        (Why::NoPythonThread, _) => "no Python thread was sampled",
        (Why::NotPython, _) => "the program is not Python",
        (Why::NoneSeen, _) => "no calls seen",
        (Why::Outside(outside), _) => origin::why(*outside),
        (Why::Unmarked { recorded_by, python }, _) => {
            let ours = if *python { "from inferscope import scope, step" } else { "NVTX ranges" };
            let how = recorded_by.choose(ours, "torch.profiler.record_function, prof.step()", "NVTX ranges");
            return format!("none in the program ({how})");
        }
        (Why::NotLoaded(some), _) => {
            let processes = phrase::counted(*some as u64, "Python process");
            return format!("none in the recorded processes; collectors not loaded in {processes}");
        }
    }
    .to_owned()
}

/// What the collector itself left as its reason: it is said with the other collectors.
pub fn is_reported(absent: &Absent) -> bool {
    matches!(absent.why, Why::Reported(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    /// All that is said of a recording with a step, of which little else was recorded.
    fn said(before: &str, recorded_by: RecordedBy) -> Vec<String> {
        let mut timeline = Timeline::from_text(&format!("{before} track main\n mark hello 5us")).unwrap();
        timeline.info.recorded_by = recorded_by;
        analysis::measure(&timeline).absent.iter().map(|one| format!("{}: {}", what(one), why(one))).collect()
    }

    #[test]
    fn what_is_missing_is_said_with_its_reason() {
        let ours = [
            "stack samples: no Python thread was sampled",
            "calls: no calls seen",
            "CPU time: not read",
            "memory: not read",
        ];
        assert_eq!(said("rate 100\n calls on\n", RecordedBy::InferScope), ours);
        assert_eq!(said("rate 100\n", RecordedBy::InferScope)[1], "calls: record with --calls");
    }

    #[test]
    fn our_flags_are_not_for_other_tools_files() {
        for recorder in [RecordedBy::Kineto, RecordedBy::Nsight] {
            let said = said("", recorder);
            assert!(said.iter().all(|text| !text.contains("--") && !text.contains("inferscope")), "{said:?}");
        }
    }
}
