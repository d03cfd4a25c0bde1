//! Advice that fits: what the program is built on decides what can be changed in it. What to advise is said by the rules.

mod no_torch;

use crate::finding::{Abstention, Finding};
use analysis::origin::without_torch;
use timeline::Timeline;

/// Takes from findings what only a program with PyTorch could do, where this one shows that it is none, and says instead what
/// it could.
pub fn fit(timeline: &Timeline, findings: &mut [Finding], abstentions: &mut [Abstention]) {
    if !without_torch(timeline) {
        return;
    }
    findings.iter_mut().for_each(|finding| finding.actions = no_torch::instead(finding.code, &finding.actions));
    let of_torch = |reason: &str| reason.contains("torch.profiler") || reason.contains("--layers");
    for abstention in abstentions.iter_mut().filter(|one| of_torch(&one.reason)) {
        abstention.reason = "nothing shows that the program uses PyTorch".into();
    }
}
