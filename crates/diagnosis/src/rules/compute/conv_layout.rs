//! `conv-layout`: images are turned from one layout to the other and back around convolutions.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::device::kernel_name;
use analysis::device::step_kernels::Row;
use analysis::phrase;
use replay::gain::Left;

pub const CODE: RuleCode = RuleCode::new("conv-layout");

pub struct ConvLayout;

const MIN_SHARE: Threshold = Threshold::new(CODE, "min_share", 0.03, Unit::Share, "the memory format is one line");

impl Rule for ConvLayout {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Layout conversions around convolutions take {min_share} of the step or more.",
            why: "Tensor cores want channels last (NHWC), PyTorch tensors are channels first (NCHW) by default. cuDNN then converts the input before a convolution and its result after it, with separate kernels. In channels-last memory format these kernels are not needed: the gain is the recorded steps replayed without them. At worst the longest per step stays, because the first input has to be converted once.",
            needs: "GPU operations.",
            example: "Layout conversions (NCHW to NHWC) take 9.4 % of the step: 16 times per step, mostly nchwToNhwcKernel",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Keep images and filters channels last from the first layer to the last: CUDNN_TENSOR_NHWC."]
    }

    fn fix(&self) -> Option<&'static str> {
        Some("channels-last")
    }

    fn look(&self, case: &Case) -> Verdict {
        let turns = |row: &Row| row.kind.class == Class::Layout;
        let Some((device, share)) = case.most_kernels(turns).filter(|(_, share)| *share >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let fitting = |index: usize| device.kind(case, index).class == Class::Layout;
        let (pieces, tally) = (device.pieces(case, fitting), device.tally(case, fitting));
        let longest = pieces.iter().map(|index| case.timeline.gpu.work.dur[*index as usize]).max().unwrap_or(0);
        let stays = longest as f64 * device.windows.len() as f64 / tally.part.max(1.0);
        let gain = case.gain_of_work(device, vec![(pieces, Left::gone(stays.min(1.0)))]);
        let row = device.rows.iter().find(|row| turns(row));
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        let each = device.per_step(case, turns);
        let finding = Finding {
            code: CODE,
            title: format!(
                "Layout conversions (NCHW to NHWC) take {} of {}: {} per step, mostly {}",
                phrase::percent(share),
                case.the_step(),
                crate::measures::calls_in_steps::times(each),
                kernel_name::brief(place.kernel.as_deref().unwrap_or(""))
            ),
            place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
            evidence: vec![
                Evidence::new(format!(
                    "convolutions themselves take {} of {}",
                    phrase::percent(device.share(|row| row.kind.class == Class::Convolution)),
                    case.the_step()
                ))
                .number("share", share),
            ],
            actions: vec![
                Action::torch(
                    "Use the channels-last memory format: model = model.to(memory_format=torch.channels_last).",
                ),
                Action::torch("Convert the input too: x = x.to(device, memory_format=torch.channels_last)."),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(kernel: &str) -> String {
        format!(
            "device 0 NVIDIA_H200\n track main\n repeat 20 every 10ms\n step r 0..10ms\n stream 7\n\
             api cudaLaunchKernel 0..10us\n kernel {kernel} 20us..1ms\n api cudaLaunchKernel 10us..20us\n kernel sm80_xmma_fprop_implicit_gemm_tf32f32 1ms..9ms\n\
             api cudaStreamSynchronize 25us..9.1ms\n end"
        )
    }

    #[test]
    fn kernels_that_only_turn_images() {
        let found = found(&ConvLayout, &steps("nchwToNhwcKernel<float>"));
        assert_eq!(
            found[0].title,
            "Layout conversions (NCHW to NHWC) take 9.8 % of the step: once per step, mostly nchwToNhwcKernel"
        );
        let gain = found[0].gain.unwrap();
        // It is the only one: at worst it stays.
        assert!((gain.mid - 9.8).abs() < 1.0 && gain.low < 0.1 && found[0].actions.len() == 2, "{gain:?}");
    }

    #[test]
    fn at_worst_the_longest_of_a_step_stays() {
        let again = "api cudaLaunchKernel 20us..22us\n kernel nhwcToNchwKernel<float> 9ms..9.3ms\n api cudaStreamSynchronize 25us..9.5ms";
        let text = steps("nchwToNhwcKernel<float>").replace("api cudaStreamSynchronize 25us..9.1ms", again);
        let gain = found(&ConvLayout, &text)[0].gain.unwrap();
        assert!((gain.mid - 12.8).abs() < 0.5 && (gain.low - 3.0).abs() < 0.5, "{gain:?}");
    }

    #[test]
    fn silent_without_them() {
        silent(&ConvLayout, &steps("elementwise_kernel<relu>"));
        silent(&ConvLayout, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
