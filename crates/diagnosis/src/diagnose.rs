//! `diagnose`: a timeline in, a [`Diagnosis`] out. Every rule looks; what they found is ranked by what the step would gain.

use crate::advice;
use crate::answer;
use crate::bottleneck::{self, Bottleneck};
use crate::calibration;
use crate::confidence;
use crate::considered::{self, Considered};
use crate::device_limit;
use crate::finding::{Abstention, Finding};
use crate::health::{self, HealthLine};
use crate::leading;
use crate::memory_answer;
use crate::named::Figures;
use crate::rank;
use crate::recording_cost;
use crate::relation::{Relation, Relations};
use crate::rule::{Case, CaseParts, Rule, Shown, Verdict};
use crate::rules::{self, RULES};
use crate::threshold::RuleSettings;
use crate::user_rules::UserRules;
use crate::wording;
use analysis::AllocatorMemory;
use analysis::host::breakdown::Breakdown;
use analysis::idle::DeviceIdle;
use analysis::memory::attribution::DeviceAttribution;
use analysis::slow_steps::{self, SlowSteps};
use analysis::steps::{StepSource, Steps};
use analysis::waterfall::{self, Waterfall};
use analysis::{GpuMetrics, HostLayers, StepContext, StepOperators};
use replay::Check;
use replay::allocator::WhatIf;
use timeline::Timeline;
use timeline::memory::AllocatorIndex;
use timeline::parallel::{self, Task};

#[derive(Clone, Debug, Default)]
pub struct Options<'a> {
    /// The step or scope to look at by name. None: chosen from what was recorded.
    pub step: Option<String>,
    /// What the user changed of our rules.
    pub rules: RuleSettings,
    /// The user's own.
    pub user: Option<UserRules<'a>>,
}

#[derive(Clone, Debug)]
pub struct Diagnosis {
    pub steps: Steps,
    pub breakdown: Breakdown,
    /// Most to gain first, after a place beside which that is little; what has no gain after that, most severe first.
    pub findings: Vec<Finding>,
    /// Rules that could not look.
    pub abstentions: Vec<Abstention>,
    pub bottleneck: Bottleneck,
    /// There are too few samples for any share of them to be said.
    pub too_few_samples: bool,
    /// Three sentences for somebody who reads nothing else.
    pub answer: [String; 3],
    /// What else could be the cause, and what speaks against it.
    pub considered: Vec<Considered>,
    pub health: Vec<HealthLine>,
    /// What made the slow steps slow. None: there are no steps to compare.
    pub slow_steps: Option<SlowSteps>,
    /// The median step as a picture. None: there are no steps.
    pub waterfall: Option<Waterfall>,
    /// How well a replay of unchanged steps reproduces them, or why there is none: what gains rest on.
    pub replay: Result<Check, String>,
    /// None: no device work was recorded.
    pub gpu: Option<GpuMetrics>,
    /// Why each device was idle inside the steps; as many as `gpu` has.
    pub idle: Vec<DeviceIdle>,
    /// The operators of a step, from those that were looked at. None: none were recorded, or a device does their work.
    pub operators: Option<StepOperators>,
    /// Layers by the host's time. Empty: none were recorded, or their time is that of their kernels.
    pub host_layers: HostLayers,
    /// What frameworks' allocators held. Empty: nothing of them was recorded.
    pub memory: Vec<AllocatorMemory>,
    /// Every byte of the devices by what it is for, or why that is not known. Empty: nothing of their memory was recorded.
    pub attribution: Vec<DeviceAttribution>,
    /// What each allocator of the timeline would have reserved under other settings, or why that is not known.
    pub allocator_replays: Vec<Result<WhatIf, String>>,
}

impl Diagnosis {
    /// What the named metrics are made from.
    pub fn figures(&self) -> Figures<'_> {
        Figures { steps: &self.steps, breakdown: &self.breakdown, gpu: self.gpu.as_ref() }
    }
}

pub fn diagnose(timeline: &Timeline, options: &Options) -> Diagnosis {
    let case = Case::with_settings(timeline, options.step.as_deref(), options.rules.clone());
    // First: most rules ask for it, and it is measured with what else goes over all device work, on all cores.
    case.gpu();
    // One direction: made, fitted to the program, ranked, settled, said. Every stage takes findings and gives new ones.
    let (verdicts, slow_steps, waterfall) = look(&case);
    let (findings, abstentions) = without_guesses(&case, with_the_users(&case, options, made(verdicts)));
    let findings = device_limit::limited(&case, calibration::calibrated(advice::fitted(timeline, findings)));
    let abstentions = advice::fitted_abstentions(timeline, abstentions);
    let findings = confidence::limited_by_recording(&case, recording_cost::with_cost(&case, findings));
    let relations = Relations::of(&findings, &*case);
    let findings = confidence::among_rivals(findings, &relations);
    let order = rank::order(&findings, &relations);
    let (findings, relations) = (reordered(findings, &order), relations.reordered(&order));
    let findings = confidence::settled(&case, findings, &relations);
    let considered = considered::for_the_answer(&case, &findings, &relations);
    let findings = leading::leading_first(&case, said_once(&case, findings, &relations));
    let bottleneck = bottleneck::of(&case, &findings);
    let health = health::lines(&case, &findings, &abstentions);
    let answer = match analysis::memory::is_all(timeline) {
        true => memory_answer::say(&case, &findings),
        false => answer::say(&case, &findings, &abstentions, &health),
    };
    let findings = with_headlines(findings);
    let replay = case.player().map(|player| player.check()).map_err(wording::replay::refusal);
    let too_few_samples = case.too_few_samples().is_some();
    let allocator_replays = (0..timeline.memory.allocators.len() as u32)
        .map(|one| case.allocator_what_if(AllocatorIndex(one)).cloned())
        .collect();
    let CaseParts { context, gpu, idle, operators, host_layers, memory, attribution } = case.into_parts();
    let StepContext { steps, breakdown, .. } = context;
    Diagnosis {
        steps,
        breakdown,
        findings,
        abstentions,
        bottleneck,
        too_few_samples,
        answer,
        considered,
        health,
        slow_steps,
        waterfall,
        replay,
        gpu,
        idle,
        operators,
        host_layers,
        memory,
        attribution,
        allocator_replays,
    }
}

/// What the rules found, and which of them could not look, in the order of the rules.
fn made(verdicts: Vec<Verdict>) -> (Vec<Finding>, Vec<Abstention>) {
    let (mut findings, mut abstentions) = (Vec::new(), Vec::new());
    for (rule, verdict) in RULES.iter().zip(verdicts) {
        match verdict {
            Verdict::Found(found) => findings.extend(found),
            Verdict::Abstain(reason) => abstentions.push(Abstention { code: rule.code(), reason, needs_torch: false }),
            Verdict::NeedsTorch(reason) => {
                abstentions.push(Abstention { code: rule.code(), reason, needs_torch: true })
            }
            Verdict::Silent => {}
        }
    }
    (findings, abstentions)
}

/// With what the user's own rules say.
fn with_the_users(
    case: &Case,
    options: &Options,
    (findings, abstentions): (Vec<Finding>, Vec<Abstention>),
) -> (Vec<Finding>, Vec<Abstention>) {
    let Some(user) = &options.user else { return (findings, abstentions) };
    let figures = Figures { steps: &case.steps, breakdown: &case.breakdown, gpu: case.gpu() };
    let (found, abstained) = user.look(case.timeline, figures);
    (findings.into_iter().chain(found).collect(), abstentions.into_iter().chain(abstained).collect())
}

fn reordered(findings: Vec<Finding>, order: &[usize]) -> Vec<Finding> {
    let mut findings: Vec<Option<Finding>> = findings.into_iter().map(Some).collect();
    order.iter().filter_map(|at| findings[*at].take()).collect()
}

fn with_headlines(findings: Vec<Finding>) -> Vec<Finding> {
    let with_headline = |one: Finding| Finding { title: rules::headline(&one).into_owned(), ..one };
    findings.into_iter().map(with_headline).collect()
}

/// Without code of the host that the first finding has named: the same function, in time of which that one says why. The relations are of the findings in
/// their order.
fn said_once(case: &Case, findings: Vec<Finding>, relations: &Relations) -> Vec<Finding> {
    let shows_code = |one: &Finding| rules::shown(one) == Some(Shown::HostCode);
    let Some(first) = leading::leading(case, &findings).filter(|first| !shows_code(first)) else {
        return findings;
    };
    let place = findings.iter().position(|one| std::ptr::eq(one, first)).unwrap_or(0);
    let explains = rules::find(first.code).map_or(&[][..], |rule| rule.explains());
    let says_why = |at: usize, one: &Finding| {
        explains.contains(&one.code) || matches!(relations.get(place, at), Relation::Explains | Relation::Whole)
    };
    let named = |one: &Finding| (one.place.function.clone(), one.place.file.clone());
    let first = named(first);
    let repeats =
        |at: usize, one: &Finding| first.0.is_some() && shows_code(one) && named(one) == first && says_why(at, one);
    findings.into_iter().enumerate().filter(|(at, one)| !repeats(*at, one)).map(|(_, one)| one).collect()
}

/// One look at a start-up is no rate of anything: what would be gained is not known, and the rule abstains.
fn without_guesses(
    case: &Case,
    (findings, abstentions): (Vec<Finding>, Vec<Abstention>),
) -> (Vec<Finding>, Vec<Abstention>) {
    let Some(few) = case.too_few_samples().filter(|_| case.steps.source == StepSource::Whole) else {
        return (findings, abstentions);
    };
    let (guesses, kept): (Vec<_>, Vec<_>) = findings.into_iter().partition(|finding| finding.gain.is_some());
    let abstention = |finding: Finding| Abstention { code: finding.code, reason: few.reason(case), needs_torch: false };
    (kept, abstentions.into_iter().chain(guesses.into_iter().map(abstention)).collect())
}

/// What every rule says, and the two pictures of steps: none of them asks what another said, so they look side by side.
fn look(case: &Case) -> (Vec<Verdict>, Option<SlowSteps>, Option<Waterfall>) {
    let mut verdicts = vec![Verdict::Silent; RULES.len()];
    let (mut slow_steps, mut waterfall) = (None, None);
    let asked = |rule: &dyn Rule| case.settings().off(rule.code()).is_none() && rules::fits(case.timeline, rule.code());
    let on = verdicts.iter_mut().zip(RULES).filter(|(_, rule)| asked(*rule));
    let rules = on.map(|(verdict, rule)| -> Task { Box::new(|| *verdict = rule.look(case)) });
    let mut tasks: Vec<Task> = vec![Box::new(|| slow_steps = slow_steps::measure(case))];
    tasks.push(Box::new(|| waterfall = waterfall::measure(case)));
    tasks.extend(rules);
    let size = case.timeline.slices.len() + case.timeline.gpu.work.len();
    // Most gains rest on it, and who asks for it first makes the others wait.
    parallel::run(size, tasks, || _ = case.player());
    (verdicts, slow_steps, waterfall)
}
