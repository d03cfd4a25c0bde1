//! `single-threaded-loader`: a DataLoader without workers makes every batch on the thread that serves, while the device waits.

use crate::action::{Action, Precondition};
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::free_cores;
use crate::measures::on_path;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::host_wait;
use crate::rules::pipeline::preprocess_before_first_kernel;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use timeline::Name;

pub const CODE: RuleCode = RuleCode::new("single-threaded-loader");

pub struct SingleThreadedLoader;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "workers are one argument; a twentieth of the step is worth them",
);

/// More workers than this are seldom worth their memory.
const MAX_WORKERS: u64 = 8;

impl Rule for SingleThreadedLoader {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A torch DataLoader with num_workers=0 makes batches on the step's own thread for {min_share} of the step or more.",
            why: "Without workers, reading and decoding happens between two steps of the model, on the same thread, and nothing else runs. With workers it happens ahead of time, in other processes. As many workers as there are free cores, eight at most, keep up if a batch takes them no longer than the rest of the step; what they would not keep up with stays. The recorded steps are replayed without the remaining time.",
            needs: "Stack samples inside the steps (at least {stack_samples}), or recorded calls.",
            example: "DataLoader without workers takes 58 % of the step, mostly in __getitem__ (images.py:31)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[preprocess_before_first_kernel::CODE, host_wait::CODE, hot_line::CODE, waits_in_step::CODE]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Input)
    }

    fn look(&self, case: &Case) -> Verdict {
        let found = match on_path::find(case, case.threshold(MIN_SHARE), "making the batch", loads_here, |_| true) {
            Ok(found) => found,
            Err(verdict) => return verdict,
        };
        let load = found.share.mid;
        let cores = free_cores::find(case);
        let workers = match &cores {
            Some(cores) => (cores.for_moved(load) as u64).clamp(1, MAX_WORKERS),
            None => case
                .timeline
                .info
                .host
                .cpu_count
                .map_or(MAX_WORKERS / 2, |all| all.saturating_sub(1).clamp(1, MAX_WORKERS)),
        };
        let free_core = match &cores {
            Some(cores) => cores.one_more(load),
            None if case.timeline.info.host.cpu_count == Some(1) => {
                Precondition::Fails("the machine has one core".into())
            }
            None => Precondition::Holds,
        };
        let left = ((load / workers as f64 - (1.0 - load)) / load).clamp(0.0, 1.0);
        let gain = found.gain(case, left);
        // Without workers, what less work in a batch saves.
        let gain = if free_core == Precondition::Holds { gain } else { gain.at_most() };
        let device = case.gpu().is_some();
        let mut evidence = found.evidence;
        if free_core == Precondition::Holds {
            evidence.push(Evidence::new(format!(
                "{} would make a batch in {} of a step each",
                phrase::counted(workers, "worker"),
                phrase::percent(load / workers as f64)
            )));
        }
        let finding = Finding {
            code: CODE,
            title: format!(
                "DataLoader without workers takes {} of {}{}",
                phrase::percent(load),
                case.the_step(),
                match found.place.function {
                    Some(_) => format!(", mostly in {}", phrase::place(&found.place)),
                    None => String::new(),
                }
            ),
            place: found.place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(found.confidence),
            evidence,
            actions: vec![
                Action::torch("Make batches in worker processes")
                    .by(&format!(
                        "DataLoader(..., num_workers={workers}, {}persistent_workers=True).",
                        if device { "pin_memory=True, " } else { "" }
                    ))
                    .needs([free_core]),
                Action::torch(match device {
                    true => {
                        "Do less per batch: decode on the GPU (torchvision.io.decode_jpeg(..., device=\"cuda\")), cache prepared tensors on disk."
                    }
                    false => {
                        "Do less per batch: cache prepared tensors on disk, decode to the size that the model takes."
                    }
                }),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

/// Batches are fetched by this thread itself.
fn loads_here(name: &Name) -> bool {
    on_path::in_file(name, "torch/utils/data/_utils/fetch.py")
        || on_path::in_file(name, "torch/utils/data/dataloader.py") && name.text.contains("_SingleProcess")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(stack: &str) -> String {
        format!(
            "host cpus 16\n track main\n repeat 40 every 50ms\n step r 0..50ms\n samples 0..30ms every 1ms active gil main@serve.py:3>{stack}\n\
             samples 30ms..50ms every 1ms active gil main@serve.py:3>forward@model.py:9\n end"
        )
    }
    const FETCH: &str = "__next__@/x/site-packages/torch/utils/data/dataloader.py:700>fetch@/x/site-packages/torch/utils/data/_utils/fetch.py:54>__getitem__@images.py:31";

    #[test]
    fn batches_made_on_the_serving_thread() {
        let found = found(&SingleThreadedLoader, &steps(FETCH));
        assert_eq!(
            found[0].title,
            "DataLoader without workers takes 60 % of the step, mostly in __getitem__ (images.py:31)"
        );
        assert!(found[0].actions[0].contains("num_workers=8"));
        assert!((found[0].gain.unwrap().mid - 60.0).abs() < 1.0, "{:?}", found[0].gain);
    }

    /// Pinned memory is for copies to a device, and workers need cores that nobody uses.
    #[test]
    fn what_is_advised_fits_the_machine() {
        let of = |more: &str| {
            found(&SingleThreadedLoader, &steps(FETCH).replacen(" track main\n", &format!(" track main\n{more}"), 1))
                .remove(0)
        };
        let busy = |cpus: u64, other: &str, waits: &str| {
            let thread = |ran: &str, waits: &str| {
                format!(
                    "counter cpu_ns 0..2s every 100ms grows {ran}\n counter runqueue_wait_ns 0..2s every 100ms grows {waits}\n"
                )
            };
            let (main, other) = (thread("100ms", waits), thread(other, "0ms"));
            of(&format!("{main}track other\n {other}host cpus {cpus}\n track main\n"))
        };
        assert!(!of("").actions.iter().any(|one| one.contains("pin_memory") || one.contains("GPU")));
        let device = of("stream 7\n kernel k 1ms..2ms\n track main\n");
        assert!(device.actions[0].contains("num_workers=8, pin_memory=True"), "{:?}", device.actions);
        let free = busy(4, "1ms", "1ms");
        assert!(free.actions[0].contains("num_workers=3") && free.actions[0].applies() == 1.0, "{:?}", free.actions);
        for none in [busy(4, "1ms", "80ms"), busy(2, "95ms", "1ms")] {
            assert_eq!((none.actions[0].applies(), none.gain.unwrap().low), (0.0, 0.0), "{:?}", none.actions);
        }
    }

    #[test]
    fn silent_with_workers_and_without_a_loader() {
        silent(
            &SingleThreadedLoader,
            &steps(
                "__next__@/x/site-packages/torch/utils/data/dataloader.py:700>_try_get_data@/x/site-packages/torch/utils/data/dataloader.py:1200",
            ),
        );
        silent(&SingleThreadedLoader, &steps("fetch@mine.py:4"));
    }

    #[test]
    fn abstains_without_samples() {
        abstains(&SingleThreadedLoader, "track main\n step r 0..1s", "not sampled");
    }
}
