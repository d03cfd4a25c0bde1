//! Where time went by recorded calls: how often each function was called, how long it took, and how long without the
//! calls it made. Nesting comes from the times on a track.

use timeline::{NameIndex, SliceKind, Timeline};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallMetrics {
    pub count: u64,
    /// Not ended when the recording did; their time counts up to then.
    pub open: u64,
    /// Most time of their own first.
    pub functions: Vec<CallFunction>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallFunction {
    pub name: NameIndex,
    pub c_function: bool,
    pub count: u64,
    /// From begin to end. A call inside a call of the same function is not counted twice.
    pub total: u64,
    /// Without the recorded calls inside it.
    pub own: u64,
}

/// A call on the stack of its track.
struct Open {
    name: u32,
    end: u64,
    dur: u64,
    inside: u64,
}

struct Sums {
    functions: Vec<CallFunction>,
    /// Calls of each function on the stack.
    depth: Vec<u32>,
}

pub fn measure(timeline: &Timeline) -> Option<CallMetrics> {
    let slices = &timeline.slices;
    let blank = |name| CallFunction { name: NameIndex(name), c_function: false, count: 0, total: 0, own: 0 };
    let mut sums =
        Sums { functions: (0..timeline.names.len() as u32).map(blank).collect(), depth: vec![0; timeline.names.len()] };
    let (mut count, mut open) = (0, 0);
    let mut stack: Vec<Open> = Vec::new();
    for track in &timeline.tracks {
        for index in track.slices.clone() {
            let slice = slices.get(index);
            if !matches!(slice.kind, SliceKind::Call | SliceKind::CCall) {
                continue;
            }
            count += 1;
            open += u64::from(slice.open);
            while stack.last().is_some_and(|top| top.end <= slice.start) {
                sums.leave(&mut stack);
            }
            if let Some(top) = stack.last_mut() {
                // A call that outlives its caller (clock error, damage) takes no more than the caller has.
                top.inside = top.inside.saturating_add(slice.end().min(top.end) - slice.start);
            }
            let name = slice.name.0 as usize;
            sums.functions[name].c_function |= slice.kind == SliceKind::CCall;
            sums.depth[name] += 1;
            stack.push(Open { name: slice.name.0, end: slice.end(), dur: slice.dur, inside: 0 });
        }
        while !stack.is_empty() {
            sums.leave(&mut stack);
        }
    }
    let mut functions: Vec<_> = sums.functions.into_iter().filter(|function| function.count > 0).collect();
    functions.sort_by_key(|function| (u64::MAX - function.own, u64::MAX - function.total, function.name));
    (count > 0).then_some(CallMetrics { count, open, functions })
}

impl Sums {
    fn leave(&mut self, stack: &mut Vec<Open>) {
        let Some(call) = stack.pop() else { return };
        let name = call.name as usize;
        let function = &mut self.functions[name];
        function.count += 1;
        function.own = function.own.saturating_add(call.dur.saturating_sub(call.inside));
        self.depth[name] -= 1;
        if self.depth[name] == 0 {
            function.total = function.total.saturating_add(call.dur);
        }
    }
}
