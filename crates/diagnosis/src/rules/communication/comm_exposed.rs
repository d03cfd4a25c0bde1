//! `comm-exposed`: collectives run while nothing else does.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::losses::lacks_most;
use crate::measures::collectives;
use crate::measures::confidence;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::device::kernel_name;
use analysis::phrase;
use analysis::place::Place;
use replay::gain::Gain;

pub const CODE: RuleCode = RuleCode::new("comm-exposed");

pub struct CommExposed;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "overlapping communication changes the model code: a twentieth of the step is worth it",
);

impl Rule for CommExposed {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Collectives that overlap no other kernel take {min_share} of the step or more.",
            why: "While a collective runs alone, the GPU computes nothing. Splitting the work, so that one part is computed while the other is exchanged, hides it. At best all of that time is hidden, as far as there are kernels to overlap it with; at worst none of it (the next kernel needs the result); half of it in the middle.",
            needs: "GPU operations.",
            example: "Exposed collectives take 31 % of the step, mostly ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Overlap exchange and compute: two micro-batches, with the exchange in a separate stream.",
            "Where it cannot be hidden, make it faster: fused with the kernel after it, or through symmetric memory.",
        ]
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some((device, _)) = collectives::most(case) else { return Verdict::Silent };
        let (_, exposed) = collectives::spans(case, device);
        let tally = collectives::tally(device, &exposed);
        let Some(row) = device
            .rows
            .iter()
            .find(|row| row.kind.class == Class::Collective)
            .filter(|_| tally.mid() >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        // Other kernels may have run beside them, where the device's work is not in the recording.
        if let Some(held) = lacks_most(case).map(|one| one.held()).filter(|held| *held >= tally.mid()) {
            let held = phrase::percent(held);
            return Verdict::Abstain(format!(
                "GPU activity missing from the recording for {held} of {}",
                case.the_step()
            ));
        }
        let others = device.share(|row| row.kind.class != Class::Collective);
        let most = 100.0 * tally.mid().min(others);
        let gain = Gain::up_to(most);
        let kernel = case.timeline.names.text(row.name);
        let longest = exposed.all().iter().max_by_key(|(start, end)| end - start);
        let mut evidence: Vec<Evidence> =
            longest.map(|(start, end)| Evidence::at("the longest", None, *start, *end)).into_iter().collect();
        evidence.push(
            Evidence::new(format!("other kernels take {} of {}", phrase::percent(others), case.steps_time()))
                .number("others", others),
        );
        let finding = Finding {
            code: CODE,
            title: format!(
                "Exposed collectives take {} of {}, mostly {}",
                phrase::percent(tally.mid()),
                case.the_step(),
                kernel_name::brief(kernel)
            ),
            place: Place { kernel: Some(kernel.to_owned()), ..Place::default() },
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
            evidence,
            actions: vec![
                Action::torch(
                    "Overlap exchange and compute: two micro-batches (vLLM: --enable-dbo; in your own code a second stream and async_op=True).",
                ),
                Action::torch(
                    "Where it cannot be hidden, make it faster: all-reduce fused with the norm after it, symmetric memory (torch.distributed._symmetric_memory).",
                ),
            ],
            verify: proof::verify(case, most / 200.0),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(start: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..5us\n stream 7\n kernel gemm 10us..5ms\n\
             api cudaLaunchKernel 5us..10us\n stream 8\n kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL {start}\n end"
        )
    }

    #[test]
    fn a_collective_alone() {
        let found = found(&CommExposed, &steps("5ms..8ms"));
        assert_eq!(
            found[0].title,
            "Exposed collectives take 30 % of the step, mostly ncclDevKernel_AllReduce_Sum_f32_…"
        );
        assert_eq!(found[0].gain.map(|gain| (gain.low, gain.mid.round(), gain.high.round())), Some((0.0, 15.0, 30.0)));
    }

    /// Most of the step's other work is not in the recording: nothing says that the collective was alone.
    #[test]
    fn abstains_where_the_devices_work_is_not_recorded() {
        let text = "track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaGraphLaunch 0..5us\n stream 7\n memset 10us..20us 64\n memset 6ms..6.1ms 64\n\
             api cudaLaunchKernel 5us..10us\n stream 8\n kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL 6.1ms..8ms\n end";
        abstains(&CommExposed, text, "GPU activity missing from the recording for 60 % of the step");
    }

    #[test]
    fn silent_when_it_is_hidden_and_without_one() {
        silent(&CommExposed, &steps("1ms..4ms"));
        silent(&CommExposed, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
