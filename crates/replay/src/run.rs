//! Replays a graph under a plan: when each call, work and step would have begun and ended. Everything that nothing changed
//! comes out as it was recorded: what holds a thing back keeps its recorded distance, what did not keeps its usual one.

use super::graph::floors::Usual;
use super::graph::{Graph, Job, StepNode, What};
use super::plan::Plan;
use crate::assume::Assume;
use timeline::WorkKind;

/// A thread that was silent while others of its process made this many calls was waiting for them: autograd's thread and the
/// one that called it, an engine and its worker. A loader that copies now and then makes fewer.
const HANDOVER: u64 = 8;

/// A point of the replay, for the way back: what was critical for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Point {
    #[default]
    None,
    Begin(u32),
    End(u32),
    Job(u32),
    StepBegin(u32),
    StepEnd(u32),
}

/// A time, and what it hung on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    pub at: i64,
    pub by: Point,
}

pub struct Replayed {
    pub begin: Vec<Moment>,
    pub end: Vec<Moment>,
    /// Start of each job; its end is `dur` later.
    pub job: Vec<Moment>,
    pub step_begin: Vec<Moment>,
    pub step_end: Vec<Moment>,
}

impl Replayed {
    pub fn step(&self, index: usize) -> i64 {
        (self.step_end[index].at - self.step_begin[index].at).max(0)
    }
}

/// Where a thread is: the recorded and the replayed time of its last point, and how many calls its process had made.
#[derive(Clone, Copy, Default)]
struct Thread {
    recorded: i64,
    now: i64,
    point: Point,
    calls: u64,
}

struct Run<'a> {
    graph: &'a Graph<'a>,
    plan: &'a Plan,
    assume: Assume,
    strict: bool,
    threads: Vec<Thread>,
    /// The call of the process that ended last.
    last: Thread,
    out: Replayed,
    done: Vec<bool>,
}

pub fn run(graph: &Graph, plan: &Plan, assume: Assume) -> Replayed {
    replay(graph, plan, assume, false)
}

/// With no more than what is usual from a launch, or from the work before, to the start of work, and with the holes that the
/// device shows: a step that comes out as recorded is explained by what the graph knows, one that does not waited for something else.
pub fn explain(graph: &Graph) -> Replayed {
    replay(graph, &Plan::unchanged(graph), Assume::Usual, true)
}

fn replay(graph: &Graph, plan: &Plan, assume: Assume, strict: bool) -> Replayed {
    let (calls, jobs, steps) = (graph.calls.len(), graph.jobs.len(), graph.steps.len());
    let none = Moment::default;
    let out = Replayed {
        begin: vec![none(); calls],
        end: vec![none(); calls],
        job: vec![none(); jobs],
        step_begin: vec![none(); steps],
        step_end: vec![none(); steps],
    };
    let threads = vec![Thread::default(); graph.tracks.len()];
    let last = Thread::default();
    let mut run = Run { graph, plan, assume, strict, threads, last, out, done: vec![false; jobs] };
    for (_, what, index) in &graph.events {
        let place = *index as usize;
        match what {
            What::CallBegin => {
                let call = graph.calls[place];
                let begin = run.host(call.track, call.begin);
                run.out.begin[place] = begin;
                run.reach(call.track, call.begin, begin.at, Point::Begin(*index));
            }
            What::CallEnd => run.call_end(*index),
            What::StepBegin => {
                let step = graph.steps[place];
                let begin = run.host(step.track, step.start);
                run.out.step_begin[place] = begin;
                run.reach(step.track, step.start, begin.at, Point::StepBegin(*index));
            }
            What::StepEnd => run.step_end(*index, &graph.steps[place]),
            What::Job => run.job(*index),
        }
    }
    run.out
}

impl Run<'_> {
    fn reach(&mut self, track: u32, recorded: i64, now: i64, point: Point) {
        let calls = self.last.calls;
        self.threads[track as usize] = Thread { recorded, now, point, calls };
    }

    /// When a thread comes to a recorded moment: after its last point, or that of the thread it waited for, and the host code
    /// between.
    fn host(&self, track: u32, recorded: i64) -> Moment {
        let own = self.threads[track as usize];
        let handed = self.last.calls - own.calls >= HANDOVER && self.last.recorded > own.recorded;
        let from = if handed { self.last } else { own };
        let between = self.plan.host(track, from.recorded, recorded);
        Moment { at: from.now + between, by: from.point }
    }

    fn call_end(&mut self, index: u32) {
        let (call, begin) = (self.graph.calls[index as usize], self.out.begin[index as usize].at);
        let dur = call.end - call.begin;
        let own = |cost: i64| Moment { at: begin + cost, by: Point::Begin(index) };
        let job = (call.wait as usize).checked_sub(1).filter(|job| self.done[*job]);
        let end = match (self.plan.cost[index as usize], job) {
            (Some(_), _) | (None, None) => own(self.plan.call(index as usize, dur)),
            (None, Some(job)) => {
                let (recorded, now) = (self.graph.jobs[job].end, self.end_of(job));
                let floors = &self.graph.floors;
                let (least, returns) = match recorded > call.begin {
                    true => (floors.shortest(call.name).min(dur), call.end - recorded),
                    false => (dur, floors.returns(call.name, self.assume).min(call.end - recorded)),
                };
                later(
                    own((least - self.plan.recording).max(0)),
                    Moment { at: now + returns, by: Point::Job(job as u32) },
                )
            }
        };
        self.out.end[index as usize] = end;
        self.last.calls += 1;
        self.reach(call.track, call.end, end.at, Point::End(index));
        if call.end >= self.last.recorded {
            self.last = self.threads[call.track as usize];
        }
    }

    /// Its launch was recorded, and it is not a copy that the host has to stage first: that is the host's own time.
    fn plain(&self, job: &Job) -> bool {
        job.call != 0 && self.graph.timeline.gpu.work.kind(job.work as usize) == WorkKind::Kernel
    }

    fn end_of(&self, job: usize) -> i64 {
        self.out.job[job].at + self.plan.dur[job]
    }

    /// A step ends with its host code, and no further behind its work than it was.
    fn step_end(&mut self, index: u32, step: &StepNode) {
        let mut end = self.host(step.track, step.end);
        if let Some(last) = (step.last as usize).checked_sub(1).filter(|job| self.done[*job]) {
            let behind = (self.graph.jobs[last].end - step.end).max(0);
            end = later(end, Moment { at: self.end_of(last) - behind, by: Point::Job(last as u32) });
        }
        self.out.step_end[index as usize] = end;
        self.reach(step.track, step.end, end.at, Point::StepEnd(index));
    }

    fn job(&mut self, index: u32) {
        let (graph, job) = (self.graph, self.graph.jobs[index as usize]);
        self.done[index as usize] = true;
        let earlier = |place: u32| (place as usize).checked_sub(1).filter(|place| self.done[*place]);
        let (before, after) = (earlier(job.before), earlier(job.after));
        if self.plan.gone[index as usize] {
            let stream = before.map(|before| Moment { at: self.end_of(before), by: Point::Job(before as u32) });
            let last = Moment { at: self.last.now, by: self.last.point };
            self.out.job[index as usize] = stream.unwrap_or(last);
            return;
        }
        // Each edge: when it was ready in the recording, when it is now, what it usually takes from there to the start.
        let mut edges: [Option<(i64, i64, Usual, Point)>; 3] = [None; 3];
        if let Some(place) = (job.call as usize).checked_sub(1) {
            let (call, begin) = (graph.calls[place], self.out.begin[place].at);
            let latency = graph.floors.latency(call.name);
            // Calls whose work starts by their end wait for nothing: the end is known from the begin.
            let cost = self.plan.call(place, call.end - call.begin);
            let (mut recorded, now) = (latency.anchor(call.begin, call.end), latency.anchor(begin, begin + cost));
            if let Some(soon) = self.plan.latency.get(&index) {
                recorded = recorded.max(job.start - soon);
            }
            edges[0] = Some((recorded, now, latency.usual, Point::Begin(place as u32)));
        } else if !job.earlier || before.is_none() {
            // Its launch was not recorded: it moves with the host, unless that launched it long before.
            let shift = self.last.now - self.last.recorded;
            edges[0] = Some((job.start, job.start + shift, Usual::default(), self.last.point));
        }
        for (edge, other) in edges[1..].iter_mut().zip([before, after]) {
            *edge = other.map(|other| {
                let gap = graph.floors.gap(graph, &job);
                (graph.jobs[other].end, self.end_of(other), gap, Point::Job(other as u32))
            });
        }
        // The edge that was ready last in the recording is the one that the work waited for.
        let ready = |place: usize, recorded: i64, usual: Usual| match place {
            0 => recorded + usual.at(Assume::Usual).min(job.start - recorded),
            _ => recorded,
        };
        let all = edges.iter().enumerate().filter_map(|(place, edge)| edge.map(|edge| (place, edge)));
        let binding = all.clone().max_by_key(|(place, edge)| ready(*place, edge.0, edge.2)).map(|(place, _)| place);
        let mut start: Option<Moment> = None;
        for (place, (recorded, now, usual, by)) in all {
            let distance = job.start - recorded;
            let distance = match Some(place) == binding {
                true if self.strict && (place != 0 || self.plain(&job)) => distance.min(usual.most + job.held),
                true if place != 0 => distance.min(self.plan.gap.unwrap_or(i64::MAX)),
                true => distance,
                false => distance.min(usual.at(self.assume)),
            };
            let moment = Moment { at: now + distance, by };
            start = Some(start.map_or(moment, |start| later(start, moment)));
        }
        self.out.job[index as usize] = start.unwrap_or_default();
    }
}

fn later(a: Moment, b: Moment) -> Moment {
    if b.at > a.at { b } else { a }
}
