//! Puts changes into a plan. What a change means under the best, usual and worst assumption is decided here; a change that finds nothing, or has nothing to be computed from, is refused.

mod copies;
mod host;
mod stretches;

use crate::answer::{Changed, Near, NotThere, Refusal};
use crate::assume::Assume;
use crate::assumption::Assumption;
use crate::expression::{Change, Target, fits};
use crate::graph::waits::{Does, does};
use crate::graph::{Graph, Job};
use crate::plan::Plan;
use analysis::device::kernel_name;
use analysis::spelling::distance;
use std::collections::{BTreeMap, HashMap};
use timeline::gpu::detail;
use timeline::{NameIndex, Timeline, WorkKind};

/// How many were changed in the measured steps, by the number of their name or as what they are.
#[derive(Default)]
pub struct Counts {
    by_name: HashMap<u32, u64>,
    unnamed: Option<(Changed, u64)>,
}

impl Counts {
    pub fn new() -> Counts {
        Counts::default()
    }

    pub fn of(what: Changed, count: u64) -> Counts {
        Counts { by_name: HashMap::new(), unnamed: Some((what, count)).filter(|_| count > 0) }
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.unnamed.is_none()
    }

    pub fn add_to(self, sums: &mut BTreeMap<Changed, u64>, timeline: &Timeline) {
        let name = |name: u32| Changed::Named(timeline.names.text(NameIndex(name)).to_owned());
        let named = self.by_name.into_iter().map(|(number, count)| (name(number), count));
        named.chain(self.unnamed).for_each(|(what, count)| *sums.entry(what).or_default() += count);
    }
}

pub fn apply(graph: &Graph, plan: &mut Plan, change: &Change, assume: Assume) -> Result<Counts, Refusal> {
    match change {
        Change::Scale(Target::SyncApi, factor) => sync_api(graph, plan, *factor, assume),
        Change::Scale(Target::Kernel(pattern), factor) => {
            let wanted = |kind: WorkKind, name: &str, _: u8| kind == WorkKind::Kernel && kernel_fits(pattern, name);
            Ok(work(graph, plan, *factor, assume, wanted))
        }
        Change::Scale(Target::Copy(pattern), factor) => {
            let wanted = |kind: WorkKind, name: &str, direction: u8| {
                kind != WorkKind::Kernel && (fits(pattern, name) || short(direction).is_some_and(|s| fits(pattern, s)))
            };
            Ok(work(graph, plan, *factor, assume, wanted))
        }
        Change::Scale(Target::Api(pattern), factor) => Ok(calls(graph, plan, pattern, *factor)),
        Change::Scale(Target::Host(pattern), factor) => Ok(host::cut(graph, plan, pattern, *factor)),
        Change::PinCopies => copies::pin(graph, plan, assume),
        Change::GraphSteps => stretches::graph(graph, plan, assume),
        Change::Stretches(all, factor) => Ok(host::stretches(graph, plan, all, *factor)),
        Change::HostCode(factor) => Ok(host::all(graph, plan, *factor)),
        Change::CloseGaps => {
            plan.gap = Some(graph.floors.shortest_gap(assume));
            let queued = graph.jobs.iter().filter(|job| job.before != 0).count();
            Ok(Counts::of(Changed::QueuedGaps, queued as u64))
        }
        Change::Calls(slices, factor) => {
            let fitting = slices.iter().filter_map(|slice| graph.call_of(*slice as usize));
            Ok(scale_calls(graph, plan, fitting, *factor))
        }
        Change::Work(indices, factor) => {
            let mut wanted: Vec<u32> = indices.clone();
            wanted.sort_unstable();
            let fits = |_: usize, job: &Job| wanted.binary_search(&job.work).is_ok();
            Ok(scale_jobs(graph, plan, *factor, assume, fits))
        }
    }
}

/// What the three cases differ in. None: the plan's notes say it.
pub fn assumed(change: &Change, among_calls: bool) -> Option<Assumption> {
    Some(match change {
        Change::Scale(Target::SyncApi, _) => Assumption::WaitsForResultsStay,
        Change::Scale(Target::Kernel(_) | Target::Copy(_), 0.0) | Change::Work(_, 0.0) => Assumption::LaunchesRemoved,
        Change::Scale(Target::Kernel(_) | Target::Copy(_), _) | Change::Work(..) => Assumption::WorkScaled,
        Change::Scale(Target::Api(_), _) | Change::Calls(..) => Assumption::CallsScaled,
        Change::CloseGaps => Assumption::GapsShrink,
        Change::Stretches(..) | Change::HostCode(_) => Assumption::HostCodeScaled,
        Change::Scale(Target::Host(_), _) => Assumption::FunctionScaled { among_calls },
        Change::PinCopies => return None,
        Change::GraphSteps => Assumption::LaunchesBecomeGraph,
    })
}

/// Nothing takes longer, by whatever factor: sums must not overflow.
const LONGEST_NS: i64 = 1 << 50;

/// A pattern means a whole name, or what is left of it without return type, namespaces, template and parameters.
fn kernel_fits(pattern: &str, name: &str) -> bool {
    let bare = kernel_name::bare(name);
    [name, kernel_name::plain(name), &bare, kernel_name::last(&bare)].iter().any(|name| fits(pattern, name))
}

fn short(direction: u8) -> Option<&'static str> {
    match direction {
        detail::H2D => Some("h2d"),
        detail::D2H => Some("d2h"),
        detail::D2D => Some("d2d"),
        detail::P2P => Some("p2p"),
        _ => None,
    }
}

fn sync_api(graph: &Graph, plan: &mut Plan, factor: f64, assume: Assume) -> Result<Counts, Refusal> {
    if factor != 0.0 {
        return Err(Refusal::NotThere(NotThere::LengthOfWait));
    }
    let mut last_launch = vec![i64::MIN; graph.steps.len() + 1];
    for call in graph.calls.iter().filter(|call| call.jobs > 0) {
        let last = &mut last_launch[call.step as usize];
        *last = call.begin.max(*last);
    }
    let mut changed = Counts::new();
    for (index, call) in graph.calls.iter().enumerate() {
        if !matches!(does(graph.timeline, call.name), Does::Wait | Does::WaitEvent) {
            continue;
        }
        let collects = call.step != 0 && call.begin > last_launch[call.step as usize];
        if !collects || assume == Assume::Best {
            plan.cost[index] = Some(0);
            note(graph, &mut changed, call.step, call.name);
        }
    }
    Ok(changed)
}

fn work(
    graph: &Graph,
    plan: &mut Plan,
    factor: f64,
    assume: Assume,
    wanted: impl Fn(WorkKind, &str, u8) -> bool,
) -> Counts {
    let columns = &graph.timeline.gpu.work;
    // Names repeat: each is asked once.
    let mut known: HashMap<(u32, u8, u8), bool> = HashMap::new();
    let fits = |_: usize, job: &Job| {
        let piece = columns.get(job.work as usize);
        let direction = piece.copy().direction;
        let key = (piece.name.0, piece.kind as u8, direction);
        *known.entry(key).or_insert_with(|| wanted(piece.kind, graph.timeline.names.text(piece.name), direction))
    };
    scale_jobs(graph, plan, factor, assume, fits)
}

fn scale_jobs(
    graph: &Graph,
    plan: &mut Plan,
    factor: f64,
    assume: Assume,
    mut wanted: impl FnMut(usize, &Job) -> bool,
) -> Counts {
    let mut changed = Counts::new();
    for (index, job) in graph.jobs.iter().enumerate() {
        if !wanted(index, job) {
            continue;
        }
        plan.dur[index] = ((plan.dur[index] as f64 * factor).round() as i64).min(LONGEST_NS);
        let call = (job.call as usize).checked_sub(1);
        if factor == 0.0 {
            plan.gone[index] = true;
            if let Some(call) = call.filter(|call| graph.calls[*call].jobs == 1 && assume != Assume::Worst) {
                plan.cost[call] = Some(0);
            }
        }
        let name = graph.timeline.gpu.work.name[job.work as usize];
        note(graph, &mut changed, call.map_or(0, |call| graph.calls[call].step), name);
    }
    changed
}

fn calls(graph: &Graph, plan: &mut Plan, pattern: &str, factor: f64) -> Counts {
    let names = graph.timeline.names.len() as u32;
    let fitting: Vec<bool> = (0..names).map(|name| fits(pattern, graph.timeline.names.text(NameIndex(name)))).collect();
    let wanted = (0..graph.calls.len()).filter(|call| fitting[graph.calls[*call].name as usize]);
    scale_calls(graph, plan, wanted, factor)
}

fn scale_calls(graph: &Graph, plan: &mut Plan, wanted: impl Iterator<Item = usize>, factor: f64) -> Counts {
    let mut changed = Counts::new();
    for index in wanted {
        let call = &graph.calls[index];
        plan.cost[index] = Some(((call.end - call.begin) as f64 * factor).round() as i64);
        note(graph, &mut changed, call.step, call.name);
    }
    changed
}

/// Counts what lies in a measured step.
pub fn note(graph: &Graph, changed: &mut Counts, step: u32, name: u32) {
    if (step as usize).checked_sub(1).is_some_and(|step| graph.steps[step].measured) {
        *changed.by_name.entry(name).or_default() += 1;
    }
}

/// Short names with the time of each, the largest first.
fn by_name<'a>(all: impl Iterator<Item = (&'a str, i64)>) -> Vec<String> {
    // The same name comes again and again: it is shortened once.
    let mut times: HashMap<&str, i64> = HashMap::new();
    all.for_each(|(name, time)| *times.entry(name).or_default() += time);
    let mut short: HashMap<String, i64> = HashMap::new();
    times.into_iter().for_each(|(name, time)| *short.entry(short_name(name)).or_default() += time);
    let mut names: Vec<(String, i64)> = short.into_iter().collect();
    names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    names.into_iter().map(|(name, _)| name).collect()
}

/// A name without return type, namespaces, template and parameters: what a pattern may mean it by.
fn short_name(name: &str) -> String {
    kernel_name::last(&kernel_name::bare(name)).chars().take(LONGEST_NAME).collect()
}

const LONGEST_NAME: usize = 60;

/// What might have been meant: the name that is near, else those that have most of the time.
fn near(pattern: &str, names: Vec<String>) -> Near {
    let plain = pattern.replace('*', "").to_lowercase();
    // A pattern says only a part of a name: so much of the name is held against it.
    let apart = |name: &String| {
        let name: String = name.to_lowercase();
        let start: String = name.chars().take(plain.chars().count()).collect();
        distance(&plain, &name).min(if pattern.contains('*') { distance(&plain, &start) } else { usize::MAX })
    };
    let nearest = names.iter().min_by_key(|name| apart(name));
    let letters = plain.chars().count();
    // Two letters that changed places are two changes, in a short name too.
    let slips = (letters / 3).max(2).min(letters.saturating_sub(2));
    match nearest.filter(|name| apart(name) <= slips) {
        Some(name) => Near::Alike(name.clone()),
        None => Near::Longest(names.into_iter().take(3).collect()),
    }
}

/// Why a change changed nothing, with the nearest name that there is.
pub fn nothing(graphs: &[&Graph], change: &Change) -> Refusal {
    let of_work = |kernels: bool| {
        let jobs = graphs.iter().flat_map(|graph| graph.jobs.iter().map(move |job| (*graph, job)));
        let kind = |(graph, job): &(&Graph, &Job)| {
            (graph.timeline.gpu.work.kind(job.work as usize) == WorkKind::Kernel) == kernels
        };
        by_name(jobs.filter(kind).map(|(graph, job)| {
            let name = graph.timeline.gpu.work.name[job.work as usize];
            (graph.timeline.names.text(NameIndex(name)), job.end - job.start)
        }))
    };
    Refusal::NotThere(match change {
        Change::Scale(Target::SyncApi, _) => NotThere::RemovableWait,
        Change::Scale(Target::Kernel(pattern), _) => NotThere::Kernel(pattern.clone(), near(pattern, of_work(true))),
        Change::Scale(Target::Copy(pattern), _) => NotThere::Copy(pattern.clone(), near(pattern, of_work(false))),
        Change::Scale(Target::Api(pattern), _) => {
            let calls = graphs.iter().flat_map(|graph| graph.calls.iter().map(move |call| (*graph, call)));
            let names = by_name(
                calls.map(|(graph, call)| (graph.timeline.names.text(NameIndex(call.name)), call.end - call.begin)),
            );
            NotThere::Call(pattern.clone(), near(pattern, names))
        }
        Change::Scale(Target::Host(pattern), _) => {
            NotThere::Function(pattern.clone(), near(pattern, host::names(graphs)))
        }
        Change::Stretches(..) | Change::HostCode(_) => NotThere::HostCode,
        Change::CloseGaps => NotThere::QueuedWork,
        Change::Calls(..) => NotThere::ChosenCalls,
        Change::Work(..) => NotThere::ChosenWork,
        Change::PinCopies => NotThere::PageableCopies,
        Change::GraphSteps => NotThere::LaunchesInARow,
    })
}
