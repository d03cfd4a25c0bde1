//! What the steps are bound by, in one word: where more than half of their time goes, if it goes to one thing.

mod device;

use crate::bottleneck_kind::BottleneckKind;
use crate::finding::Finding;
use crate::rule::Case;
use crate::rules;
use analysis::host::breakdown::PartKind;
use analysis::host::step_samples::{Doing, StepSample};
use analysis::host::waits::{For, waits_for};
use analysis::phrase;
use analysis::stats::share::Share;

#[derive(Clone, PartialEq, Debug)]
pub struct Bottleneck {
    pub kind: BottleneckKind,
    /// One sentence.
    pub primary_cause: String,
    pub confidence: f64,
    pub evidence: Vec<String>,
}

/// Bound by a thing means that it takes more than all others together.
const MAJORITY: f64 = 0.5;

pub fn of(case: &Case, findings: &[Finding]) -> Bottleneck {
    let breakdown = &case.breakdown;
    let evidence: Vec<String> = breakdown
        .kinds()
        .iter()
        .map(|(kind, ns, share)| {
            format!("{}: {} per step, {}", kind.name(), phrase::duration(*ns), phrase::percent(*share))
        })
        .chain(device::evidence(case))
        .collect();
    let leading = crate::leading::leading(case, findings);
    let device = device::of(case, findings, leading);
    let (kind, confidence) = match case.breakdown_tells() {
        _ if breakdown.total_ns == 0 => (BottleneckKind::Unknown, 0.0),
        _ if device.is_some() => device.unwrap_or((BottleneckKind::Unknown, 0.0)),
        _ if breakdown.share(PartKind::Gpu) > MAJORITY => waits_for_device(case),
        true if breakdown.by_calls => by_parts(case),
        true => by_samples(case),
        false => (BottleneckKind::Unknown, 0.0),
    };
    let (kind, confidence) = match known(findings, leading) {
        Some(known) if kind == BottleneckKind::Unknown => known,
        _ => (kind, confidence),
    };
    let most = |finding: &&Finding| finding.gain.is_some_and(|gain| gain.low >= 100.0 * MAJORITY);
    let hidden = |finding: &Finding| rules::find(finding.code)?.bottleneck_behind_running();
    let kind = findings.iter().filter(most).find_map(hidden).unwrap_or(kind);
    // As sure as what it rests on.
    let confidence = match leading.filter(|finding| finding.gain.is_some()) {
        Some(finding) => confidence.min(finding.confidence()),
        None => confidence,
    };
    let cause = leading.map(|finding| rules::headline(finding).into_owned());
    let device = || crate::leading::device(case);
    let primary_cause = cause.or_else(device).unwrap_or_else(|| match breakdown.functions().first() {
        _ if !case.breakdown_tells() => "not enough data to identify a cause".into(),
        Some(part) => {
            format!("no single cause found; {} takes {}, the largest part", part.label, phrase::percent(part.share))
        }
        None => "no timed events recorded".into(),
    });
    Bottleneck { kind, primary_cause, confidence, evidence }
}

/// What the rule stands for that explains most of the steps; or another rule that speaks of the same place.
fn known(findings: &[Finding], leading: Option<&Finding>) -> Option<(BottleneckKind, f64)> {
    let most = leading.filter(|finding| finding.gain.is_some_and(|gain| gain.mid >= 100.0 * MAJORITY))?;
    let there = findings.iter().filter(|finding| finding.place.function.is_some() && finding.place == most.place);
    let (kind, _) = std::iter::once(most).chain(there).find_map(device::bottleneck_of)?;
    Some((kind, most.confidence()))
}

/// The host waits for the device: the device sets the pace where it is at work meanwhile, else the waiting itself does.
fn waits_for_device(case: &Case) -> (BottleneckKind, f64) {
    let repeats = case.windows.repeats();
    match device::at_work(case) {
        Some(sure) => (BottleneckKind::Gpu, sure * repeats),
        None => (BottleneckKind::Sync, repeats),
    }
}

/// Recorded calls do not show waiting well: running is the most that they can say.
fn by_parts(case: &Case) -> (BottleneckKind, f64) {
    let share = |kind| case.breakdown.share(kind);
    let runs = share(PartKind::Python) + share(PartKind::Native) + share(PartKind::Gc) + share(PartKind::Descheduled);
    match runs > MAJORITY {
        true => (BottleneckKind::Cpu, runs * case.windows.repeats()),
        false => (BottleneckKind::Unknown, 0.0),
    }
}

fn by_samples(case: &Case) -> (BottleneckKind, f64) {
    let kind_of = |one: &StepSample| match one.doing {
        Doing::Python | Doing::Native | Doing::Gc => BottleneckKind::Cpu,
        Doing::Gil => BottleneckKind::Sync,
        Doing::Gpu => BottleneckKind::Gpu,
        Doing::Waiting => match waits_for(case.timeline, &case.frames, case.sample(one).stack) {
            For::Lock => BottleneckKind::Sync,
            For::Io | For::Child => BottleneckKind::Input,
            For::Nothing | For::Unknown => BottleneckKind::Unknown,
        },
    };
    let kinds = [
        BottleneckKind::Cpu,
        BottleneckKind::Gpu,
        BottleneckKind::Sync,
        BottleneckKind::Input,
        BottleneckKind::Unknown,
    ];
    let shares: Vec<(BottleneckKind, Share)> =
        kinds.into_iter().map(|kind| (kind, case.share(|one| kind_of(one) == kind).0)).collect();
    let most = shares.iter().max_by(|a, b| a.1.mid.total_cmp(&b.1.mid));
    match most {
        Some((kind, share)) if share.mid > MAJORITY => (*kind, share.surely_above(MAJORITY) * case.coverage()),
        Some((_, share)) => (BottleneckKind::Balanced, (1.0 - share.surely_above(MAJORITY)) * case.coverage()),
        None => (BottleneckKind::Unknown, 0.0),
    }
}
