//! `launch-thread-descheduled`: the thread that drives the steps is ready to run but gets no core.

use crate::action::{Action, Precondition};
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::own_load::{self, CoreWait};
use crate::measures::proof;
use crate::measures::run_queue;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use crate::wording::origin::not_recorded;
use analysis::host::series::Growth;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use timeline::CollectorCode;

pub const CODE: RuleCode = RuleCode::new("launch-thread-descheduled");

pub struct LaunchThreadDescheduled;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "kernel rounding and the odd interrupt stay far below");

const MIN_SHARE_WITHOUT_GPU: Threshold = Threshold::new(
    CODE,
    "min_share_without_gpu",
    0.1,
    Unit::Share,
    "threads that compute share their cores with whatever else runs; no launch is late for it",
);

impl Rule for LaunchThreadDescheduled {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_SHARE_WITHOUT_GPU]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The thread that runs the steps and launches GPU work is runnable but not scheduled for {min_share} of step time or more ({min_share_without_gpu} in a program without GPU work).",
            why: "The kernel counts how long each thread was in a run queue. The counter is read ten times a second; its growth between two readings is assigned to the steps as far as the thread was active in them. The low and high end of the gain are bounds that hold however that split falls. Whether what else runs there can be stopped or moved is in no recording: that halves the confidence, and not the place in the list. What the recorder itself ran in the steps is taken out; where it is most of the wait, the finding says that recording takes it, and promises no gain.",
            needs: "Per-thread scheduler counters (collector `threads`).",
            example: "Launching thread runnable but not scheduled for 12 % of the step",
        }
    }

    fn fix(&self) -> Option<&'static str> {
        Some("affinity")
    }

    fn is_of_others(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some(growth) = &case.run_queue else {
            return Verdict::Abstain(not_recorded(
                case.timeline,
                CollectorCode::Threads,
                "run-queue time of the steps' threads not recorded",
            ));
        };
        let share = run_queue::bounds(growth);
        if share.mid < least(case) {
            return Verdict::Silent;
        }
        let cores = own_load::cores(case);
        match own_load::taken_out(share, cores) {
            CoreWait::Ours(_) => of_recording(case, growth, share, cores).into(),
            CoreWait::Others(left) if left.mid < least(case) => Verdict::Silent,
            CoreWait::Others(left) => finding(case, growth, left, cores).into(),
        }
    }
}

fn least(case: &Case) -> f64 {
    case.threshold(if case.timeline.gpu.is_empty() { MIN_SHARE_WITHOUT_GPU } else { MIN_SHARE })
}

/// The recorder had most of what the thread waited for: nothing of that is to be gained in the program.
fn of_recording(case: &Case, growth: &Growth, share: Share, cores: f64) -> Finding {
    let waited = format!("{} of step time in the run queue", phrase::percent_range(share));
    let mut evidence = vec![
        Evidence::new(waited).number("ns", growth.tally.part),
        Evidence::new(own_load::text(cores)).number("cores", cores),
    ];
    evidence.extend(run_queue::stretches(case, growth, "not scheduled"));
    Finding {
        code: CODE,
        title: format!(
            "Recording takes {} of a core, and the step waits {} of its time for one",
            phrase::percent(cores),
            phrase::percent(share.mid)
        ),
        place: Place::default(),
        gain: None,
        severity: Severity::Info,
        certainty: Certainty::seen(growth.tally.repeats()),
        evidence,
        actions: own_load::actions(case),
        verify: proof::verify(case, 0.0),
    }
}

/// `cores`: what the recorder ran meanwhile, which is not counted.
fn finding(case: &Case, growth: &Growth, share: Share, cores: f64) -> Finding {
    let mut evidence = vec![
        Evidence::new(format!(
            "{} of step time in the run queue, over {} intervals between readings",
            phrase::percent_range(share),
            phrase::count(growth.tally.stretches)
        ))
        .number("ns", growth.tally.part),
    ];
    evidence.extend(run_queue::stretches(case, growth, "not scheduled"));
    let own = format!("{}, which is not counted here", own_load::text(cores));
    evidence.extend((cores > 0.0).then(|| Evidence::new(own).number("cores", cores)));
    let gain = case.gain_of_host(share);
    let who = if case.timeline.gpu.is_empty() { "Runnable" } else { "Launching thread runnable" };
    Finding {
        code: CODE,
        title: format!("{who} but not scheduled for {} of {}", phrase::percent(share.mid), case.the_step()),
        place: Place::default(),
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(run_queue::above(share, least(case)) * growth.tally.repeats()),
        evidence,
        actions: vec![
            Action::new("Find what else runs: pidstat -u 1, or the other threads of this timeline; stop it or move it to other cores.")
                // That the cores are wanted by others is seen; whose they are, and who may have them, is not.
                .needs([Precondition::Unknown("what else runs on these cores can be stopped or moved".into())]),
            "Give this process cores of its own: taskset -c 0-3 inferscope run -- ...".into(),
            Action::new("Limit compute threads").by("OMP_NUM_THREADS").or_torch("torch.set_num_threads"),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEPS: &str = "
        track main
        repeat 20 every 100ms
          step request 0..80ms
          samples 0..80ms every 10ms active gil serve>work:5
          samples 80ms..100ms every 10ms serve>wait@/usr/lib/python3.12/threading.py:3
        end
        api cudaLaunchKernel 85ms..85.1ms
        stream 7
        kernel k 86ms..86.1ms\n";

    #[test]
    fn counts_run_queue_time_inside_the_steps() {
        let found =
            found(&LaunchThreadDescheduled, &format!("{STEPS} counter runqueue_wait_ns 0..2s every 100ms grows 24ms"));
        assert_eq!(found[0].title, "Launching thread runnable but not scheduled for 30 % of the step");
        let gain = found[0].gain.unwrap();
        assert!((gain.low - 5.0).abs() < 0.1 && (gain.high - 30.0).abs() < 0.1, "{gain:?}");
        assert!(found[0].evidence[1].track.is_some());
    }

    #[test]
    fn silent_when_cores_are_there() {
        silent(&LaunchThreadDescheduled, &format!("{STEPS} counter runqueue_wait_ns 0..2s every 100ms grows 1ms"));
    }

    /// The recorder's own load is nobody else's: it is taken out, and where it is the main part nothing is promised.
    #[test]
    fn what_recording_takes_is_not_blamed_on_others() {
        let text = |own: &str| {
            format!(
                "{STEPS} counter runqueue_wait_ns 0..2s every 100ms grows 24ms\n counter host recorder_cpu_ns 0..2s every 100ms grows {own}"
            )
        };
        let some = found(&LaunchThreadDescheduled, &text("10ms")).remove(0);
        assert!(some.title.ends_with("not scheduled for 20 % of the step"), "{}", some.title);
        assert!(some.evidence.last().unwrap().text.ends_with("which is not counted here"), "{:?}", some.evidence);
        let most = found(&LaunchThreadDescheduled, &text("20ms")).remove(0);
        assert_eq!(most.title, "Recording takes 20 % of a core, and the step waits 30 % of its time for one");
        assert!(most.gain.is_none() && most.actions[0].contains("--rate"), "{:?}", most.actions);
        // Nothing worth a word is left.
        silent(
            &LaunchThreadDescheduled,
            &text("10ms").replace("grows 24ms", "grows 3ms").replace("grows 10ms", "grows 1ms"),
        );
    }

    /// Without launches that are late for it, little of it is worth no finding.
    #[test]
    fn a_program_without_a_gpu_has_to_wait_longer() {
        let cpu = STEPS.split("api ").next().unwrap();
        let text = |grows: &str| format!("{cpu} counter runqueue_wait_ns 0..2s every 100ms grows {grows}");
        silent(&LaunchThreadDescheduled, &text("6ms"));
        let title = &found(&LaunchThreadDescheduled, &text("24ms"))[0].title;
        assert_eq!(title, "Runnable but not scheduled for 30 % of the step");
    }

    #[test]
    fn a_counter_that_steps_back_counts_for_nothing() {
        silent(&LaunchThreadDescheduled, &format!("{STEPS} counter runqueue_wait_ns 0=9s 100ms=8s 200ms=1s 300ms=1s"));
    }

    #[test]
    fn abstains_without_the_counter() {
        abstains(&LaunchThreadDescheduled, STEPS, "not recorded");
        silent(&LaunchThreadDescheduled, &format!("{STEPS} counter runqueue_wait_ns 0=5"));
    }
}
