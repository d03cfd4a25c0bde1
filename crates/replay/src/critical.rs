//! What the steps of a replay hang on: the way back from each step's end to its begin along what was waited for, by kind and
//! name.

use super::graph::Graph;
use super::plan::Plan;
use super::run::{Moment, Point, Replayed};
use std::collections::HashMap;
use timeline::{NameIndex, WorkKind};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum On {
    /// The host's own code, between CUDA calls.
    Host,
    /// A CUDA call, with its return from a wait.
    Call,
    /// From a launch call to the start of its work.
    Latency,
    /// Between two works of a stream.
    Gap,
    Kernel,
    Copy,
    /// Work that started long after its launch, and nothing recorded says why.
    Unknown,
}

/// Part of the critical path of the steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Limit {
    pub on: On,
    /// The one that has most of it; empty for host code, latencies and gaps.
    pub name: String,
    /// Of the steps' time, 0 to 1.
    pub share: f64,
    /// The steps have CUDA calls, so that host code lies between them.
    pub among_calls: bool,
}

pub type Tally = HashMap<(On, u32), i64>;

/// Adds the measured steps of a graph.
pub fn tally(graph: &Graph, plan: &Plan, replayed: &Replayed, tally: &mut Tally) {
    // Steps that overlap share their ways; a damaged trace must not cost the square of its steps.
    let mut left = 4 * graph.events.len();
    for (index, _) in graph.steps.iter().enumerate().filter(|(_, step)| step.measured) {
        let (from, end) = (replayed.step_begin[index].at, replayed.step_end[index]);
        let mut walk = Walk { graph, plan, replayed, from, at: end.at, tally };
        let (mut point, mut moment) = (Point::StepEnd(index as u32), end);
        while walk.at > from && moment.by != Point::None && left > 0 {
            (point, moment) = walk.back(point, moment);
            left -= 1;
        }
    }
}

struct Walk<'a> {
    graph: &'a Graph<'a>,
    plan: &'a Plan,
    replayed: &'a Replayed,
    from: i64,
    at: i64,
    tally: &'a mut Tally,
}

impl Walk<'_> {
    /// To what a point hung on.
    fn back(&mut self, point: Point, moment: Moment) -> (Point, Moment) {
        let to = moment.by;
        let call = |index: u32| (On::Call, self.graph.calls[index as usize].name);
        let key = match (point, to) {
            (Point::End(index), _) => call(index),
            (Point::Job(_), Point::Job(_)) => (On::Gap, 0),
            (Point::Job(_), _) => (On::Latency, 0),
            _ => (On::Host, 0),
        };
        let replayed = self.replayed;
        let launched = if let Point::Begin(index) = to { replayed.begin[index as usize].at } else { self.at };
        let key = match key.0 {
            On::Latency if self.at - launched > self.graph.floors.explained() => (On::Unknown, 0),
            _ => key,
        };
        match to {
            Point::None => (to, Moment::default()),
            Point::Begin(index) => self.step_to(key, to, replayed.begin[index as usize]),
            Point::End(index) => self.step_to(key, to, replayed.end[index as usize]),
            Point::StepBegin(index) => self.step_to(key, to, replayed.step_begin[index as usize]),
            Point::StepEnd(index) => self.step_to(key, to, replayed.step_end[index as usize]),
            Point::Job(index) => {
                let (start, dur) = (replayed.job[index as usize], self.plan.dur[index as usize]);
                self.spend(key, start.at + dur);
                let work = self.graph.jobs[index as usize].work as usize;
                let on =
                    if self.graph.timeline.gpu.work.kind(work) == WorkKind::Kernel { On::Kernel } else { On::Copy };
                self.step_to((on, self.graph.timeline.gpu.work.name[work]), to, start)
            }
        }
    }

    fn step_to(&mut self, key: (On, u32), point: Point, moment: Moment) -> (Point, Moment) {
        self.spend(key, moment.at);
        (point, moment)
    }

    fn spend(&mut self, key: (On, u32), until: i64) {
        let until = until.clamp(self.from, self.at.max(self.from));
        if self.at > until {
            *self.tally.entry(key).or_default() += self.at - until;
            self.at = until;
        }
    }
}

/// Most first.
pub fn limits(tally: &Tally, timeline: &timeline::Timeline, among_calls: bool) -> Vec<Limit> {
    let total: i64 = tally.values().sum();
    let mut by_kind: HashMap<On, (i64, i64, u32)> = HashMap::new();
    let mut all: Vec<_> = tally.iter().collect();
    all.sort_unstable();
    for ((on, name), time) in all {
        let (sum, most, named) = by_kind.entry(*on).or_default();
        *sum += time;
        if *time > *most {
            (*most, *named) = (*time, *name);
        }
    }
    let limit = |(on, (sum, _, name)): (On, (i64, i64, u32))| {
        let named = matches!(on, On::Call | On::Kernel | On::Copy);
        let name = if named { timeline.names.text(NameIndex(name)).to_owned() } else { String::new() };
        Limit { on, name, share: sum as f64 / total.max(1) as f64, among_calls }
    };
    let mut limits: Vec<Limit> = by_kind.into_iter().map(limit).collect();
    limits.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.on.cmp(&b.on)));
    limits
}
