//! The operators of a step by their own time, from the few steps in which operators were recorded: which operator, on what shapes, from
//! which line, in which module. These steps are slower for it and in no other figure; an operator's own time has nothing of that in it, for
//! it is taken around the operator alone. Calls alike take about the same time: one in which the thread lost its core counts as the longest
//! of the others.

mod family;
mod shapes;
mod turns;

pub use family::Family;

use crate::dataflow::place;
use crate::device::gpu::KernelLayer;
use crate::device::ops::{What, cost_of};
use crate::operators::{Look, Op, signature};
use crate::place::Place;
use crate::stats::percentile;
use crate::steps::{StepSource, Steps};
use std::collections::BTreeMap;
use timeline::{NameIndex, Timeline};

#[derive(Clone, PartialEq, Debug)]
pub struct StepOperators {
    /// Most own time first.
    pub rows: Vec<OperatorRow>,
    /// The steps, or the turns of the loop, that these are the mean of.
    pub turns: u64,
    /// They are whole steps. Else turns of a loop, of which a step may have any number.
    pub are_steps: bool,
    /// Where the looks ended before the step did: only its first operators are known.
    pub is_cut: bool,
    /// The own time of all operators in one.
    pub ns: u64,
    /// The median step in which no operator was recorded. None: there are no steps to compare with.
    pub step_ns: Option<u64>,
}

/// Calls of an operator with the same shapes and types from the same line.
#[derive(Clone, PartialEq, Debug)]
pub struct OperatorRow {
    pub name: NameIndex,
    pub family: Family,
    /// Of its tensors, as they were given: "[768, 256] [256, 1024]". Empty: not recorded.
    pub shapes: String,
    /// Of its result: "float32". Empty: not recorded.
    pub dtype: &'static str,
    /// The nearest line that is not PyTorch's.
    pub place: Place,
    /// The modules around it. None: none, or not known.
    pub module: Option<KernelLayer>,
    /// In a step, on average.
    pub calls: f64,
    pub ns: u64,
    /// Of the own time of all operators, 0 to 1.
    pub share: f64,
    /// Floating-point operations of one call, where its shapes say so.
    pub flops: Option<f64>,
}

impl OperatorRow {
    /// Without the namespace that nearly all have.
    pub fn plain_name<'a>(&self, timeline: &'a Timeline) -> &'a str {
        let name = timeline.names.text(self.name);
        name.strip_prefix("aten::").unwrap_or(name)
    }

    /// Of one call.
    pub fn mean_ns(&self) -> u64 {
        (self.ns as f64 / self.calls.max(f64::MIN_POSITIVE)) as u64
    }

    /// 10⁹ floating-point operations a second. None: its shapes do not say it.
    pub fn gflops(&self) -> Option<f64> {
        self.flops.filter(|_| self.ns > 0).map(|flops| flops * self.calls / self.ns as f64)
    }
}

impl StepOperators {
    /// None: no operator was recorded.
    pub fn find(timeline: &Timeline, steps: &Steps, looks: &[Look]) -> Option<StepOperators> {
        let turns = turns::find(steps, looks);
        let number = turns.all.len() as u64;
        let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
        for ops in &turns.all {
            for (op, own_ns) in own_times(ops) {
                let text = op.args(timeline);
                let key = Key { name: op.name, dims: shapes::dims(text), types: shapes::types(text), at: op.at };
                groups.entry(key).or_default().add(op, own_ns);
            }
        }
        if number == 0 || groups.is_empty() {
            return None;
        }
        let all = groups.values_mut().map(Group::settle).fold(0, u64::saturating_add);
        let row = |(key, group): (Key, Group)| group.row(timeline, &key, number, all);
        let mut rows: Vec<OperatorRow> = groups.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.ns.cmp(&a.ns).then(b.calls.total_cmp(&a.calls)));
        let known = turns.are_steps && steps.source != StepSource::Whole && steps.p50() > 0;
        // Where every step was looked at, these are the steps.
        let step_ns = Some(steps.p50()).filter(|_| known && !steps.looked_at.is_empty());
        Some(StepOperators {
            rows,
            turns: number,
            are_steps: turns.are_steps,
            is_cut: turns.is_cut,
            ns: all / number,
            step_ns,
        })
    }

    /// What a row takes of a step, 0 to 1. None: there are no steps, or their operators are not all known. Where the operators took longer than the
    /// median step, because something else ran meanwhile, all of them together are the step.
    pub fn of_step(&self, row: &OperatorRow) -> Option<f64> {
        let step = self.step_ns.filter(|_| !self.is_cut)?;
        Some(row.ns as f64 / step.max(self.ns).max(1) as f64)
    }

    /// All operators together.
    pub fn all_of_step(&self) -> Option<f64> {
        let step = self.step_ns.filter(|_| !self.is_cut)?;
        Some(self.ns as f64 / step.max(self.ns).max(1) as f64)
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    name: NameIndex,
    dims: &'a str,
    types: &'a str,
    at: &'a str,
}

#[derive(Default)]
struct Group<'a> {
    calls: u64,
    /// Of each call.
    times: Vec<u64>,
    ns: u64,
    modules: BTreeMap<&'a str, u64>,
    /// The arguments of one of them.
    slice: usize,
}

impl<'a> Group<'a> {
    fn add(&mut self, op: &Op<'a>, own_ns: u64) {
        self.calls += 1;
        self.times.push(own_ns);
        self.slice = op.slice;
        if !op.module.is_empty() {
            *self.modules.entry(op.module).or_default() += 1;
        }
    }

    /// The time of all calls, none beyond the outer fence of the others: three times the distance of the quartiles above the upper one (Tukey).
    fn settle(&mut self) -> u64 {
        self.times.sort_unstable();
        let most = match self.times.len() >= ENOUGH_CALLS {
            true => {
                let (lower, upper) = (percentile(&self.times, 25), percentile(&self.times, 75));
                upper.saturating_add(upper.saturating_sub(lower).saturating_mul(3))
            }
            false => u64::MAX,
        };
        self.ns = self.times.iter().map(|time| *time.min(&most)).fold(0, u64::saturating_add);
        self.times = Vec::new();
        self.ns
    }

    fn row(self, timeline: &Timeline, key: &Key, turns: u64, all: u64) -> OperatorRow {
        let text = timeline.slices.args(self.slice).unwrap_or("");
        let name = timeline.names.text(key.name);
        let cost = computes(name).and_then(|what| cost_of(what, name, signature(text)));
        OperatorRow {
            name: key.name,
            family: Family::of(name),
            shapes: shapes::said(text),
            dtype: shapes::dtype(text),
            place: place(key.at),
            module: KernelLayer::of(self.modules, self.calls),
            calls: self.calls as f64 / turns as f64,
            ns: self.ns / turns,
            share: self.ns as f64 / all.max(1) as f64,
            flops: cost.map(|(cost, _)| cost.flops),
        }
    }
}

/// With fewer, one of them moves the quartiles.
const ENOUGH_CALLS: usize = 4;

/// What counts in floating-point operations. In inference mode PyTorch runs some operators whole that it else takes apart.
fn computes(name: &str) -> Option<What> {
    match name {
        "aten::scaled_dot_product_attention" => Some(What::Attention),
        "aten::matmul" => Some(What::Matmul),
        _ => What::of(name).filter(|what| *what != What::Stream),
    }
}

/// Operators of one thread, each with the time that no operator inside it takes.
fn own_times<'b, 'a>(ops: &'b [Op<'a>]) -> Vec<(&'b Op<'a>, u64)> {
    let mut own: Vec<(&Op, u64)> = Vec::with_capacity(ops.len());
    // Those that are open: where each ends, and its place.
    let mut open: Vec<(u64, usize)> = Vec::new();
    let mut ordered: Vec<&Op> = ops.iter().collect();
    ordered.sort_by_key(|op| (op.start, u64::MAX - op.end));
    for op in ordered {
        while open.last().is_some_and(|(end, _)| *end <= op.start) {
            open.pop();
        }
        if let Some((_, around)) = open.last() {
            own[*around].1 = own[*around].1.saturating_sub(op.ns());
        }
        open.push((op.end, own.len()));
        own.push((op, op.ns()));
    }
    own
}

#[cfg(test)]
mod tests;
