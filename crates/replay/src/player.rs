//! Replays the steps of a timeline with changes, as often as somebody asks: the graph is built once, and so is the replay
//! that everything is compared with.

use crate::answer::{Answer, Changed, Check, MOST_OFF, NotThere, Refusal, Unknown};
use crate::apply;
use crate::assume::Assume;
use crate::assumption::Assumption;
use crate::critical::{self, Tally};
use crate::expression::Change;
use crate::gain::Gain;
use crate::graph::Graph;
use crate::plan::Plan;
use crate::recording::RecordingCost;
use crate::run::{self, Replayed};
use analysis::device::gpu::call_cost;
use analysis::host::full_queue::FullQueue;
use analysis::steps::Steps;
use analysis::steps::chosen::Chosen;
use std::collections::BTreeMap;
use timeline::{ProcessIndex, Timeline};

const STRETCHES: usize = 10;

pub struct Player<'a> {
    timeline: &'a Timeline,
    /// One per process that has steps, with its replay as it was, but for what recording added.
    graphs: Vec<(Graph<'a>, Replayed)>,
    /// Which steps of each graph the replay explains.
    explained: Vec<Vec<bool>>,
    check: Check,
    /// What recording added. None: not measured.
    recording: Option<RecordingCost>,
}

/// What all steps gain, in nanoseconds of the median step.
struct Gained {
    low_ns: i64,
    mid_ns: i64,
    high_ns: i64,
    changed: BTreeMap<Changed, u64>,
    notes: Vec<Assumption>,
    /// Low and high also span the error of samples.
    sampled: bool,
}

impl<'a> Player<'a> {
    pub fn new(
        timeline: &'a Timeline,
        steps: &Steps,
        chosen: &Chosen,
        queue: &FullQueue,
    ) -> Result<Player<'a>, Refusal> {
        let process = |track: timeline::TrackIndex| timeline.tracks[track.0 as usize].process;
        let measured = steps.measured().filter(|step| chosen.has_step(step));
        let mut processes: Vec<ProcessIndex> = measured.map(|step| process(step.track)).collect();
        processes.sort_unstable();
        processes.dedup();
        if processes.is_empty() {
            return Err(Refusal::NotThere(NotThere::StepTime));
        }
        let graph = |process| Graph::new(timeline, steps, chosen, queue, process);
        let graphs: Vec<Graph> = processes.into_iter().map(graph).collect();
        let mut jobs = graphs.iter().flat_map(|graph| &graph.jobs).peekable();
        if jobs.peek().is_some() && jobs.all(|job| job.call == 0) {
            let why = match timeline.gpu.clock.early {
                0 => Unknown::Launches(timeline.info.recorded_by),
                _ => Unknown::Clock,
            };
            return Err(Refusal::Unknown(why));
        }
        let (check, explained) = Check::of(&graphs)?;
        let call = call_cost::measure(timeline, steps);
        let cost = call.map_or(0, |call| RecordingCost { call, share: 0.0 }.ns());
        let unrecorded = |graph: Graph<'a>| {
            let replayed = run::run(&graph, &Plan::unrecorded(&graph, cost), Assume::Usual);
            (graph, replayed)
        };
        let graphs: Vec<(Graph, Replayed)> = graphs.into_iter().map(unrecorded).collect();
        let recording =
            call.filter(|_| cost > 0).map(|call| RecordingCost { call, share: shorter(&graphs, &explained) });
        Ok(Player { timeline, graphs, explained, check, recording })
    }

    pub fn recording(&self) -> Option<RecordingCost> {
        self.recording
    }

    /// As it was recorded, without what recording added.
    fn plan(&self, graph: &Graph) -> Plan {
        Plan::unrecorded(graph, self.recording.map_or(0, |recording| recording.ns()))
    }

    pub fn check(&self) -> Check {
        self.check
    }

    /// What the steps would gain.
    pub fn gain(&self, changes: &[Change]) -> Result<Gain, Refusal> {
        let gained = self.play(changes, |_, _, _| ())?;
        // What makes a step slower gains nothing.
        let percent = |ns: i64| (ns as f64 * 100.0 / self.check.recorded_ns.max(1) as f64).clamp(0.0, 100.0);
        Ok(Gain::replayed(percent(gained.low_ns), percent(gained.mid_ns), percent(gained.high_ns)))
    }

    /// The same with all that a person wants to know.
    pub fn ask(&self, changes: &[Change]) -> Result<Answer, Refusal> {
        let (mut before, mut after) = (Tally::new(), Tally::new());
        for (graph, as_it_was) in &self.graphs {
            critical::tally(graph, &self.plan(graph), as_it_was, &mut before);
        }
        let gained = self.play(changes, |graph, plan, replayed| critical::tally(graph, plan, replayed, &mut after))?;
        let now_ns = self.check.recorded_ns;
        let mut assumed: Vec<Assumption> = Vec::new();
        let among_calls = self.graphs.iter().any(|(graph, _)| !graph.calls.is_empty());
        let of_changes = changes.iter().filter_map(|change| apply::assumed(change, among_calls));
        for one in of_changes.chain(gained.notes) {
            // Two functions, or processes, are changed under one assumption.
            if !assumed.contains(&one) {
                assumed.push(one);
            }
        }
        if self.check.held > MOST_OFF {
            assumed.push(Assumption::LateAsRecorded);
        }
        let works = self.graphs.iter().any(|(graph, _)| !graph.jobs.is_empty());
        assumed.push(if works { Assumption::RestWithWork } else { Assumption::RestAsRecorded });
        assumed.push(if self.check.steps > 1 { Assumption::SpreadOverSteps } else { Assumption::OneStep });
        if gained.sampled {
            assumed.push(Assumption::SamplingError);
        }
        assumed.extend(self.recording.map(Assumption::WithoutRecording));
        Ok(Answer {
            check: self.check,
            now_ns,
            then_ns: u64::try_from(now_ns as i64 - gained.mid_ns).unwrap_or(0),
            low_ns: gained.low_ns,
            mid_ns: gained.mid_ns,
            high_ns: gained.high_ns,
            changed: gained.changed,
            before: critical::limits(&before, self.timeline, among_calls),
            after: critical::limits(&after, self.timeline, among_calls),
            assumed,
        })
    }

    /// `see` is shown the usual replay of each process.
    fn play(&self, changes: &[Change], mut see: impl FnMut(&Graph, &Plan, &Replayed)) -> Result<Gained, Refusal> {
        if !self.check.tells() {
            return Err(Refusal::Unknown(Unknown::Missed(self.check)));
        }
        let mut changed: Vec<BTreeMap<Changed, u64>> = vec![BTreeMap::new(); changes.len()];
        // Each step as it was and as it would be.
        let mut gains: [Vec<(i64, i64)>; 3] = Default::default();
        let mut notes: Vec<Assumption> = Vec::new();
        let mut sampled = Sampled::default();
        for ((graph, as_it_was), explained) in self.graphs.iter().zip(&self.explained) {
            for assume in [Assume::Best, Assume::Usual, Assume::Worst] {
                let mut plan = self.plan(graph);
                for (change, sum) in changes.iter().zip(&mut changed) {
                    let done = apply::apply(graph, &mut plan, change, assume)?;
                    if assume == Assume::Usual {
                        done.add_to(sum, self.timeline);
                    }
                }
                let replayed = run::run(graph, &plan, assume);
                let steps = (0..graph.steps.len()).filter(|step| explained[*step]);
                gains[assume as usize].extend(steps.map(|step| (as_it_was.step(step), replayed.step(step))));
                if assume == Assume::Usual {
                    see(graph, &plan, &replayed);
                    notes.append(&mut plan.notes);
                    sampled.add(&plan.sampled);
                }
            }
        }
        if let Some((change, _)) = changes.iter().zip(&changed).find(|(_, changed)| changed.is_empty()) {
            let graphs: Vec<&Graph> = self.graphs.iter().map(|(graph, _)| graph).collect();
            return Err(apply::nothing(&graphs, change));
        }
        let scaled = |fraction: f64| (fraction * self.check.recorded_ns as f64).round() as i64;
        let at = |assume: Assume, percent: usize| {
            let fractions = spread(&gains[assume as usize]);
            scaled(fractions.get(fractions.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0.0))
        };
        // Of all steps together: where they are of two kinds, no single one stands for them.
        let mid_ns = scaled(together(&gains[Assume::Usual as usize]));
        let changed = changed.into_iter().flatten().fold(BTreeMap::new(), |mut all, (name, count)| {
            all.entry(name).and_modify(|most: &mut u64| *most = count.max(*most)).or_insert(count);
            all
        });
        let (low_ns, high_ns) = (at(Assume::Worst, 10).min(mid_ns), at(Assume::Best, 90).max(mid_ns));
        let (least, most) = sampled.bounds(mid_ns);
        let most = most.min(self.check.recorded_ns as i64);
        let (low_ns, high_ns) = (low_ns.min(least), high_ns.max(most));
        Ok(Gained { low_ns, mid_ns, high_ns, changed, notes, sampled: sampled.any() })
    }
}

/// By what part the steps are shorter in their replays than they were recorded.
fn shorter(graphs: &[(Graph, Replayed)], explained: &[Vec<bool>]) -> f64 {
    let steps = graphs.iter().zip(explained).flat_map(|((graph, replayed), explained)| {
        let those = graph.steps.iter().enumerate().filter(|(place, _)| explained[*place]);
        those.map(|(place, step)| (step.end - step.start, replayed.step(place)))
    });
    together(&steps.collect::<Vec<_>>()).max(0.0)
}

/// Per change that rests on samples: how many show it, of how many; of all processes together.
#[derive(Default)]
struct Sampled(Vec<(u64, u64)>);

impl Sampled {
    fn add(&mut self, changes: &[(u64, u64)]) {
        self.0.resize(self.0.len().max(changes.len()), (0, 0));
        self.0.iter_mut().zip(changes).for_each(|(sum, one)| *sum = (sum.0 + one.0, sum.1 + one.1));
    }

    fn any(&self) -> bool {
        self.0.iter().any(|(hits, _)| *hits > 0)
    }

    /// What a gain may be at least and at most, when its samples are a draw of those that might have been taken. Of several
    /// changes, that of the least sure.
    fn bounds(&self, gain: i64) -> (i64, i64) {
        let gains = self.0.iter().filter(|(hits, _)| *hits > 0).flat_map(|(hits, all)| {
            let share = analysis::stats::share::wilson(*hits as f64 / *all as f64, *all as f64);
            [share.low, share.high].map(|end| (gain as f64 * end / share.mid).round() as i64)
        });
        gains.fold((gain, gain), |(least, most), one| (least.min(one), most.max(one)))
    }
}

/// What steps gain together, as a fraction.
fn together(steps: &[(i64, i64)]) -> f64 {
    let (was, is) =
        steps.iter().fold((0i64, 0i64), |sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
    1.0 - is as f64 / was.max(1) as f64
}

/// How much that differs over the recording, smallest first. In stretches, for what is known from samples is true of many steps
/// and not of one.
fn spread(steps: &[(i64, i64)]) -> Vec<f64> {
    let length = (steps.len() / STRETCHES).max(1);
    let mut fractions: Vec<f64> = steps.chunks(length).map(together).collect();
    fractions.sort_by(f64::total_cmp);
    fractions
}
