//! Which operator launched a kernel. In what was looked at, the operator around the launch; in every step that launches the same kernels in the
//! same order on the same thread, the one that launched the kernel in its place. A look may have been at whole steps, at parts of them, or at
//! the same work before the first step: its turns are found again inside steps, too.

use super::runs::{Runs, Sequence};
use crate::operators::Look;
use crate::steps::Steps;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use timeline::{SliceKind, Timeline, TrackIndex, WorkKind};

/// A piece of work, the slice of its operator, and the step that it is in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Launch {
    pub piece: u32,
    pub op: u32,
    pub step: u32,
}

/// By piece of work.
#[derive(Default)]
pub struct Launched {
    all: Vec<Launch>,
    alike: Alike,
}

impl Launched {
    pub fn find(timeline: &Timeline, steps: &Steps, looks: &[Look]) -> Launched {
        let (mut whole, mut turns) = (Known::default(), Known::default());
        for step in &steps.looked_at {
            whole.add(timeline, (step.track, step.start, step.end));
        }
        // Turns of a thread follow each other: together they have each of its slices once. Those of a damaged trace may all be of all its time.
        let mut left = 2 * timeline.slices.len();
        for turn in looks.iter().flat_map(Look::turns) {
            let end = turn.iter().map(|op| op.end).max().unwrap_or(0);
            let span = (turn[0].track, turn[0].start, end);
            let Some(rest) = left.checked_sub(slices(timeline, span).len()) else { break };
            left = rest;
            turns.add(timeline, span);
        }
        let (mut all, alike) = (Vec::new(), Alike::find(looks));
        if whole.0.is_empty() && turns.0.is_empty() {
            return Launched { all, alike };
        }
        let runs: HashMap<TrackIndex, Runs> = turns.0.iter().map(|(track, turns)| (*track, Runs::of(turns))).collect();
        for step in steps.measured() {
            let kernels = kernels(timeline, (step.track, step.start, step.end));
            let names: Vec<u32> = kernels.iter().map(|piece| timeline.gpu.work.name[*piece as usize]).collect();
            let same = whole.0.get(&step.track).and_then(|all| all.iter().find(|one| one.names == names));
            let mut ops = same.map_or_else(|| vec![None; names.len()], |same| same.ops.clone());
            // A step is known from a part of it where the look began or ended inside.
            if let Some(runs) = runs.get(&step.track) {
                ops.iter_mut().zip(runs.operators(&names)).for_each(|(op, other)| *op = op.or(other));
            }
            let known = kernels.iter().zip(ops).filter_map(|(piece, op)| Some((*piece, op?)));
            all.extend(known.map(|(piece, op)| Launch { piece, op, step: step.index }));
        }
        all.sort_unstable();
        all.dedup_by_key(|one| one.piece);
        Launched { all, alike }
    }

    pub fn all(&self) -> &[Launch] {
        &self.all
    }

    /// The work of these operators, given by their slices, and of the same ones in other turns.
    pub fn by(&self, ops: &[usize]) -> Vec<u32> {
        let ops: HashSet<u32> = ops.iter().map(|op| self.alike.first(*op as u32)).collect();
        self.all.iter().filter(|one| ops.contains(&self.alike.first(one.op))).map(|one| one.piece).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// Each sequence once, by thread.
#[derive(Default)]
struct Known(HashMap<TrackIndex, Vec<Sequence>>);

impl Known {
    fn add(&mut self, timeline: &Timeline, span: Span) {
        let kernels = kernels(timeline, span);
        let ops = around(timeline, span, &kernels);
        if ops.iter().any(Option::is_some) {
            let names: Vec<u32> = kernels.iter().map(|piece| timeline.gpu.work.name[*piece as usize]).collect();
            let known = self.0.entry(span.0).or_default();
            if !known.iter().any(|one| one.names == names) {
                known.push(Sequence { names, ops });
            }
        }
    }
}

/// Operators by the one that stands for them: the same operator at the same line, as many calls into its turn. A kernel is carried over with
/// one of them and belongs to all; what a rule says of one turn (a tensor is known to have grown only in the second) holds for the work of any.
#[derive(Default)]
struct Alike(HashMap<u32, u32>);

impl Alike {
    fn find(looks: &[Look]) -> Alike {
        let (mut firsts, mut alike) = (HashMap::new(), HashMap::new());
        for look in looks {
            for turn in look.turns() {
                let mut calls: HashMap<_, u32> = HashMap::new();
                for op in turn.iter().filter(|op| !op.at.is_empty()) {
                    let call = calls.entry((op.name, op.at)).or_default();
                    let slice = op.slice as u32;
                    alike.insert(slice, *firsts.entry((look.track, op.name, op.at, *call)).or_insert(slice));
                    *call += 1;
                }
            }
        }
        Alike(alike)
    }

    fn first(&self, op: u32) -> u32 {
        self.0.get(&op).copied().unwrap_or(op)
    }
}

/// Of a thread, from here to there.
type Span = (TrackIndex, u64, u64);

/// The slices of a thread that start in the span.
fn slices(timeline: &Timeline, (track, from, to): Span) -> Range<usize> {
    let range = timeline.tracks[track.0 as usize].slices.clone();
    let start = &timeline.slices.start[range.clone()];
    let (from, to) = (start.partition_point(|at| *at < from), start.partition_point(|at| *at < to));
    range.start + from..range.start + to
}

/// The kernels that a thread launched in the span, in order.
fn kernels(timeline: &Timeline, span: Span) -> Vec<u32> {
    let (work, slices) = (&timeline.gpu.work, slices(timeline, span));
    let before = |end: usize| move |piece: &u32| work.launch(*piece as usize).is_some_and(|launch| launch < end);
    let linked = work.linked();
    let (from, to) = (linked.partition_point(before(slices.start)), linked.partition_point(before(slices.end)));
    linked[from..to].iter().copied().filter(|piece| work.kind(*piece as usize) == WorkKind::Kernel).collect()
}

/// The operator around the launch of each. Operators of one thread do not overlap.
fn around(timeline: &Timeline, span: Span, kernels: &[u32]) -> Vec<Option<u32>> {
    let all = &timeline.slices;
    let ops: Vec<usize> = slices(timeline, span).filter(|index| all.kind(*index) == SliceKind::Op).collect();
    let around = |piece: &u32| {
        let launch = timeline.gpu.work.launch(*piece as usize)?;
        let at = all.start[launch];
        let op = *ops[..ops.partition_point(|op| all.start[*op] <= at)].last()?;
        (at < all.get(op).end()).then_some(op as u32)
    };
    kernels.iter().map(around).collect()
}

#[cfg(test)]
mod tests {
    use crate::StepAnalysis;
    use timeline::Timeline;

    const STEP: &str = "stream 7
         api cudaLaunchKernel 10us..12us\n kernel convert 13us..20us
         api cudaLaunchKernel 30us..32us\n kernel gemm 33us..80us
         api cudaStreamSynchronize 40us..90us";

    /// `kernel=operator` of the measured steps.
    fn said(text: &str) -> Vec<String> {
        let timeline = Timeline::from_text(text).unwrap();
        let analysis = StepAnalysis::new(&timeline, None);
        let name = |piece: u32| timeline.names.text(timeline.gpu.work.get(piece as usize).name);
        let op = |op: u32| timeline.names.text(timeline.slices.get(op as usize).name);
        analysis.launched().all().iter().map(|one| format!("{}={}", name(one.piece), op(one.op))).collect()
    }

    #[test]
    fn operators_are_known_again_where_the_same_is_launched() {
        let looked = "repeat 1 every 1s\n step r 0..100us\n op aten::to 5us..15us args {\"turn\":[0,0]}\n op aten::mm 25us..35us args {\"turn\":[0,0]}";
        let others = STEP.replace("gemm", "other");
        let text = format!(
            "track main\n {looked}\n {STEP}\n end\n repeat 3 every 200us\n step r 200us..300us\n {}\n end\n repeat 1 every 1s\n step r 1ms..1.1ms\n {}\n end",
            moved(STEP, 200),
            moved(&others, 1000)
        );
        assert_eq!(said(&text), ["convert=aten::to", "gemm=aten::mm"].repeat(3));
    }

    /// A turn of six kernels at `at`, looked at or not.
    fn turn(at: u64, looked: Option<u32>) -> String {
        let kernel = |place: u64, name: &str| {
            let from = at + 10 * place;
            let op = looked.map(|turn| {
                format!("op aten::{name} {from}us..{}us args {{\"at\":\"m.py:3\",\"turn\":[0,{turn}]}}\n", from + 9)
            });
            let launch = format!("api cudaLaunchKernel {}us..{}us\n", from + 2, from + 4);
            format!("{}{launch} kernel {name} {}us..{}us\n", op.unwrap_or_default(), from + 5, from + 8)
        };
        let names = ["norm", "cat", "cat", "gemm", "gelu", "gemm"];
        let kernels: String = names.iter().enumerate().map(|(place, name)| kernel(place as u64, name)).collect();
        format!("stream 7\n {kernels}")
    }

    #[test]
    fn turns_before_the_first_step_are_known_again_inside_steps() {
        let other = "api cudaLaunchKernel 1001us..1002us\n kernel cat 1003us..1004us";
        let text = format!(
            "track main\n {} {} repeat 2 every 300us\n step r 1ms..1.2ms\n stream 7\n {other}\n {} {} end",
            turn(100, Some(0)),
            turn(200, Some(1)),
            turn(1010, None),
            turn(1100, None)
        );
        let said = said(&text);
        assert_eq!((said.len(), &said[..2]), (24, &["norm=aten::norm".to_owned(), "cat=aten::cat".to_owned()][..]));
    }

    #[test]
    fn the_same_place_of_another_turn_is_the_same_work() {
        let steps = "step r 100us..190us\n step r 200us..290us\n";
        let text = format!(
            "track main\n {steps} {} {} repeat 3 every 100us\n step r 1ms..1.09ms\n {} end",
            turn(100, Some(0)),
            turn(200, Some(1)),
            turn(1000, None)
        );
        let timeline = Timeline::from_text(&text).unwrap();
        let analysis = StepAnalysis::new(&timeline, None);
        let looks = crate::operators::looks(&timeline);
        let cats: Vec<usize> = looks[0].turns().map(|turn| turn[1].slice).collect();
        let work: Vec<_> = cats.iter().map(|op| analysis.launched().by(&[*op])).collect();
        assert_eq!((work[0].len(), &work[0]), (3, &work[1]));
        assert_eq!(analysis.launched().by(&cats), work[0]);
    }

    /// The same some microseconds later.
    fn moved(text: &str, by: u64) -> String {
        let word = |word: &str| match word.split_once("us..") {
            Some((start, end)) => {
                let end: u64 = end.trim_end_matches("us").parse().unwrap();
                format!("{}us..{}us", start.parse::<u64>().unwrap() + by, end + by)
            }
            None => word.to_owned(),
        };
        text.lines().map(|line| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ") + "\n").collect()
    }
}
