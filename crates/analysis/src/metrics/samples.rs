//! Where time went by stack samples: functions and lines, on top of the stack (own) and anywhere on it (total). Only
//! samples of running threads count; idle ones are counted apart. A recursive function counts once a sample.

use std::collections::HashMap;
use timeline::{NameIndex, StackIndex, Timeline};

#[derive(Clone, PartialEq, Debug)]
pub struct SampleMetrics {
    pub taken: u64,
    pub active: u64,
    pub idle: u64,
    /// Active samples whose thread held the interpreter's lock.
    pub gil: u64,
    /// Active samples whose stack is missing from the trace.
    pub unknown: u64,
    /// Between two samples of a thread, as set. None when the trace does not say.
    pub interval_ns: Option<u64>,
    /// Most own samples first.
    pub functions: Vec<SampledFunction>,
    pub lines: Vec<SampledLine>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampledFunction {
    pub name: NameIndex,
    pub own: u64,
    pub total: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampledLine {
    pub name: NameIndex,
    pub line: u32,
    pub own: u64,
    pub total: u64,
}

pub fn measure(timeline: &Timeline) -> Option<SampleMetrics> {
    let samples = &timeline.samples;
    if samples.is_empty() {
        return None;
    }
    let mut own = vec![0u64; timeline.stacks.len()];
    // Native functions count for the line of Python that called them.
    let python = crate::frames::python_frames(timeline);
    let (mut active, mut gil) = (0, 0);
    for index in 0..samples.len() {
        let sample = samples.get(index);
        if sample.active {
            active += 1;
            gil += u64::from(sample.gil);
            own[python[sample.stack.0 as usize].0 as usize] += 1;
        }
    }
    let taken = samples.len() as u64;
    let rate = timeline.info.settings.rate_hz.filter(|rate| *rate > 0.0);
    let mut metrics = SampleMetrics {
        taken,
        active,
        idle: taken - active,
        gil,
        unknown: own[0],
        interval_ns: rate.map(|rate| (1e9 / rate) as u64),
        functions: Vec::new(),
        lines: Vec::new(),
    };
    Tree::new(timeline, own).add_up(&mut metrics);
    Some(metrics)
}

const NONE: u32 = 0;

/// The tree of frames with, for each, its samples and its first child and next sibling.
struct Tree<'a> {
    timeline: &'a Timeline,
    own: Vec<u64>,
    total: Vec<u64>,
    child: Vec<u32>,
    sibling: Vec<u32>,
}

impl<'a> Tree<'a> {
    fn new(timeline: &'a Timeline, own: Vec<u64>) -> Tree<'a> {
        let size = own.len();
        let mut tree = Tree { timeline, total: own.clone(), own, child: vec![NONE; size], sibling: vec![NONE; size] };
        // A parent stands before its children, so one pass from the end adds every subtree up.
        for index in (1..size).rev() {
            let parent = timeline.stacks.frame(StackIndex(index as u32)).parent.0 as usize;
            tree.sibling[index] = tree.child[parent];
            tree.child[parent] = index as u32;
            if parent > 0 {
                tree.total[parent] += tree.total[index];
            }
        }
        tree
    }

    /// Walks the tree once. A function's total grows where it appears for the first time on a path.
    fn add_up(&self, metrics: &mut SampleMetrics) {
        let mut functions = Places::default();
        let mut lines = Places::default();
        let mut path: Vec<(u32, usize, usize)> = Vec::new();
        let mut next = self.child[0];
        loop {
            if next != NONE && self.total[next as usize] == 0 {
                next = self.sibling[next as usize];
                continue;
            }
            if next == NONE {
                let Some((index, function, line)) = path.pop() else { break };
                functions.leave(function);
                lines.leave(line);
                next = self.sibling[index as usize];
                continue;
            }
            let frame = self.timeline.stacks.frame(StackIndex(next));
            let (own, total) = (self.own[next as usize], self.total[next as usize]);
            let function = functions.enter(frame.name, own, total);
            let line = lines.enter((frame.name, frame.line), own, total);
            path.push((next, function, line));
            next = self.child[next as usize];
        }
        metrics.functions =
            functions.all.into_iter().map(|(name, own, total, _)| SampledFunction { name, own, total }).collect();
        metrics.lines =
            lines.all.into_iter().map(|((name, line), own, total, _)| SampledLine { name, line, own, total }).collect();
        metrics.functions.sort_by_key(|f| (u64::MAX - f.own, u64::MAX - f.total, f.name));
        metrics.lines.sort_by_key(|l| (u64::MAX - l.own, u64::MAX - l.total, l.name, l.line));
    }
}

/// Sums by key, with how often each key is on the path.
struct Places<K> {
    known: HashMap<K, usize>,
    all: Vec<(K, u64, u64, u32)>,
}

impl<K> Default for Places<K> {
    fn default() -> Places<K> {
        Places { known: HashMap::new(), all: Vec::new() }
    }
}

impl<K: Copy + Eq + std::hash::Hash> Places<K> {
    fn enter(&mut self, key: K, own: u64, total: u64) -> usize {
        let place = *self.known.entry(key).or_insert(self.all.len());
        if place == self.all.len() {
            self.all.push((key, 0, 0, 0));
        }
        let sums = &mut self.all[place];
        sums.1 += own;
        sums.2 += if sums.3 == 0 { total } else { 0 };
        sums.3 += 1;
        place
    }

    fn leave(&mut self, place: usize) {
        self.all[place].3 -= 1;
    }
}
