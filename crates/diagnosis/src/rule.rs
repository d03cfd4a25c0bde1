//! What a rule is, and the [`Case`] that it looks at: the timeline, its steps, and what everything inside them was doing.

use crate::bottleneck_kind::BottleneckKind;
use crate::finding::Finding;
use crate::health_topic::HealthTopic;
use crate::rule_code::RuleCode;
use crate::threshold::{RuleSettings, Threshold};
use crate::too_short::TooFewSamples;
use crate::wording::memory::not_simulated;
use crate::wording::origin::not_recorded;
use analysis::host::breakdown::PartKind;
use analysis::host::step_samples::LEAST_SAMPLES;
use analysis::memory::attribution::DeviceAttribution;
use analysis::stats::share::Share;
use analysis::{
    AllocatorMemory, DeviceIdle, GpuMetrics, HostLayers, StepAnalysis, StepContext, StepOperators, StepSource, phrase,
};
use replay::ReplayedSteps;
use replay::allocator::{NotSimulated, WhatIf};
use std::ops::Deref;
use std::sync::OnceLock;
use timeline::memory::AllocatorIndex;
use timeline::{CollectorCode, Timeline};

/// A rule looks at a case and says what it found. It never looks at what other rules said.
pub trait Rule: Sync {
    /// Its name everywhere, in kebab case.
    fn code(&self) -> RuleCode;
    fn docs(&self) -> RuleDocs;

    /// The levels from which it speaks.
    fn thresholds(&self) -> &'static [Threshold] {
        &[]
    }

    /// Levels that its documentation names and no file changes, for the analysis or other rules use them, too.
    fn fixed(&self) -> &'static [Threshold] {
        &[]
    }

    /// Other rules that its documentation names: each `{rule}` in it is the next of them.
    fn mentions(&self) -> &'static [RuleCode] {
        &[]
    }

    fn look(&self, case: &Case) -> Verdict;

    /// Rules that show the same time without naming its cause, which this one names: it comes before them. Whether two findings are of the same time, and
    /// what is named against what is of the whole step, comes from the recording (`relation`); this settles the rest, which no recording shows.
    fn explains(&self) -> &'static [RuleCode] {
        &[]
    }

    /// Whether what it asks for changes what the devices do. Else it changes what the host does, and cannot gain more than the time in which the devices are idle.
    fn changes_device_work(&self) -> bool {
        false
    }

    /// What a finding of it shows, also where no gain is known. None: nothing that tells where the time goes.
    fn shows(&self) -> Option<Shown> {
        None
    }

    /// What the steps are bound by where it is most of them, whatever their threads seem to do: its time looks like running code.
    fn bottleneck_behind_running(&self) -> Option<BottleneckKind> {
        None
    }

    /// The line of the recording's health that its finding is.
    fn health_topic(&self) -> Option<HealthTopic> {
        None
    }

    /// Whether it says what sets the pace, where nothing is to be gained.
    fn sets_pace(&self) -> bool {
        false
    }

    /// What the steps are bound by where this is the cause.
    fn bottleneck(&self) -> Option<BottleneckKind> {
        None
    }

    /// What to do in a program without PyTorch, in place of the actions that need it.
    fn without_torch(&self) -> &'static [&'static str] {
        &[]
    }

    /// The fix of `inferscope verify` that answers it without an edit of the program.
    fn fix(&self) -> Option<&'static str> {
        None
    }

    /// What has to be edited in the program, where no switch can do it.
    fn edit(&self) -> Option<Edit> {
        None
    }

    /// It finds that others use the machine: true of any program that runs there meanwhile, and no news of this one.
    fn is_of_others(&self) -> bool {
        false
    }

    /// The time that it finds is slept and not run: it is as long on a machine that nobody else uses.
    fn sleeps(&self) -> bool {
        false
    }

    /// What it finds is as it should be: the title is the fact, and nothing is to be fixed.
    fn finds_health(&self) -> bool {
        false
    }
}

/// Where time goes, with or without a fix for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// A function of the host that has it, whatever the cause.
    HostCode,
    /// What a device works on.
    DeviceWork,
    /// The host waits for a device.
    WaitForDevice,
    /// Work of a device that is not in the recording.
    MissingWork,
}

/// Rules of one kind: a folder, and a page of the documentation.
pub struct Family {
    /// The folder's name.
    pub name: &'static str,
    pub title: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// They speak of the recording itself, and not of its steps.
    pub is_of_recording: bool,
    pub rules: &'static [&'static dyn Rule],
}

/// A fix that has to be written.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    pub what: &'static str,
    /// The expression for `inferscope whatif` that tells beforehand what it would gain.
    pub whatif: Option<&'static str>,
}

/// The documentation of a rule, from which docs/rules/ is made. `{min_share}` in it stands for the value of the threshold of that name,
/// `{stack_samples}` for how many samples every rule needs that lives on them.
#[derive(Clone, Copy, Debug)]
pub struct RuleDocs {
    /// One sentence: what it finds.
    pub summary: &'static str,
    /// Why it costs time, and how the data shows it.
    pub why: &'static str,
    /// What has to be recorded for it to look.
    pub needs: &'static str,
    /// What it says, as it says it.
    pub example: &'static str,
}

impl RuleDocs {
    /// A text of this documentation with the values that are in force.
    pub fn filled(text: &str, rule: &dyn Rule, settings: &RuleSettings) -> String {
        let all = rule.thresholds().iter().chain(rule.fixed());
        let text = text.replace("{stack_samples}", &LEAST_SAMPLES.to_string());
        let text = rule.mentions().iter().fold(text, |text, code| text.replacen("{rule}", code.as_str(), 1));
        all.fold(text, |text, threshold| {
            let value = threshold.unit.say(settings.value(*threshold));
            text.replace(&format!("{{{}}}", threshold.name), &value)
        })
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    Found(Vec<Finding>),
    Silent,
    /// It could not look: why.
    Abstain(String),
    /// It could not look, for want of what only PyTorch could have recorded: why.
    NeedsTorch(String),
}

impl From<Finding> for Verdict {
    fn from(finding: Finding) -> Verdict {
        Verdict::Found(vec![finding])
    }
}

/// What is left of a case when all rules have looked.
pub struct CaseParts<'a> {
    pub context: StepContext<'a>,
    pub gpu: Option<GpuMetrics>,
    pub idle: Vec<DeviceIdle>,
    pub operators: Option<StepOperators>,
    pub host_layers: HostLayers,
    pub memory: Vec<AllocatorMemory>,
    pub attribution: Vec<DeviceAttribution>,
}

pub struct Case<'a> {
    steps: ReplayedSteps<'a>,
    settings: RuleSettings,
    allocators: OnceLock<Vec<Result<WhatIf, NotSimulated>>>,
}

/// Everything that was measured, and what changes of it would gain.
impl<'a> Deref for Case<'a> {
    type Target = ReplayedSteps<'a>;

    fn deref(&self) -> &ReplayedSteps<'a> {
        &self.steps
    }
}

impl<'a> Case<'a> {
    /// `step`: the step or scope to look at by name. None: chosen from what was recorded.
    pub fn new(timeline: &'a Timeline, step: Option<&str>) -> Case<'a> {
        Case::with_settings(timeline, step, RuleSettings::default())
    }

    pub fn with_settings(timeline: &'a Timeline, step: Option<&str>, settings: RuleSettings) -> Case<'a> {
        let steps = ReplayedSteps::new(StepAnalysis::new(timeline, step));
        Case { steps, settings, allocators: OnceLock::new() }
    }

    /// What the user changed of the rules.
    pub fn settings(&self) -> &RuleSettings {
        &self.settings
    }

    /// The value of a threshold that is in force.
    pub fn threshold(&self, threshold: Threshold) -> f64 {
        self.settings.value(threshold)
    }

    /// That value, in words.
    pub fn threshold_text(&self, threshold: Threshold) -> String {
        threshold.unit.say(self.threshold(threshold))
    }

    /// What an allocator would have reserved under other settings; Err: why that is not known.
    pub fn allocator_what_if(&self, allocator: AllocatorIndex) -> Result<&WhatIf, String> {
        let memory = &self.timeline.memory;
        let all = (0..memory.allocators.len() as u32).map(AllocatorIndex);
        let known = self.allocators.get_or_init(|| all.map(|one| replay::allocator::what_if(memory, one)).collect());
        let one = known.get(allocator.0 as usize).ok_or_else(|| "not recorded".to_owned())?;
        one.as_ref().map_err(|why| not_simulated(*why))
    }

    /// What a report shows of it.
    pub fn into_parts(self) -> CaseParts<'a> {
        let mut analysis = self.steps.into_analysis();
        let (gpu, idle, memory) = (analysis.take_gpu(), analysis.take_idle(), analysis.take_memory());
        let (operators, host_layers) = (analysis.take_operators(), analysis.take_host_layers());
        let attribution = analysis.take_attribution();
        CaseParts { context: analysis.into_context(), gpu, idle, operators, host_layers, memory, attribution }
    }

    /// The part of a recording without steps in which modules are imported, where it is worth a word: as a share, and the time of it.
    pub fn imports(&self) -> Option<(Share, u64)> {
        if let Some(startup) = self.steps.steps.startup.filter(|_| self.steps.steps.source == StepSource::Whole) {
            let imports = startup.imports_ns?;
            return Some((Share::exactly(imports as f64 / self.timeline.duration().max(1) as f64), imports));
        }
        let (share, _) = self.share(|one| self.starts_up(one));
        let enough = self.without_samples().is_none() && share.mid >= MIN_IMPORT_SHARE;
        enough.then(|| (share, (share.mid * self.windows.total() as f64) as u64))
    }

    /// Whether the breakdown stands on more than a few samples: they are enough, or recorded calls took their place.
    pub fn breakdown_tells(&self) -> bool {
        // Waits for a device are measured: where they are most of the step, no sample is needed to say so.
        let measured = self.breakdown.share(PartKind::Gpu) > 0.5;
        self.breakdown.by_calls || measured || self.without_samples().is_none()
    }

    /// The samples, where they are too few to say anything by them.
    pub fn too_few_samples(&self) -> Option<TooFewSamples> {
        TooFewSamples::of(self)
    }

    /// Why a rule that lives on samples cannot look, where it cannot.
    pub fn without_samples(&self) -> Option<String> {
        if let Some(few) = self.too_few_samples() {
            return Some(few.reason(self));
        }
        match self.samples.all.len() {
            _ if self.timeline.samples.is_empty() => {
                Some(not_recorded(self.timeline, CollectorCode::Stacks, "stacks not sampled"))
            }
            0 => Some(format!("no stack samples inside {}", self.the_steps())),
            few if few < LEAST_SAMPLES => {
                let few = phrase::counted(few as u64, "stack sample");
                Some(format!("only {few} inside {}; at least {LEAST_SAMPLES} needed", self.the_steps()))
            }
            _ if self.coverage() < 0.5 => {
                let seen = phrase::percent(self.coverage());
                Some(format!("samples cover only {seen} of {}", self.steps_time()))
            }
            _ => None,
        }
    }
}

/// Less changes no other share by as much as it is unsure.
const MIN_IMPORT_SHARE: f64 = 0.05;
