//! Operators of the steps whose arguments say what they cost: matrix products, convolutions, attention and what streams through memory, with
//! the kernels that they launched. torch.profiler with `record_shapes=True` writes such arguments for every operator, and our own recorder for those
//! of the steps that it looks at, which `launched` carries over to all others; without them there are none.

mod args;
mod cost;
mod launched;
mod runs;

pub use cost::{Cost, What, of as cost_of};
pub use launched::{Launch, Launched};

use crate::device::kernel_kind::{Kind, Math};
use crate::device::peaks::Peaks;
use crate::device::step_kernels::StepKernels;
use crate::host::StepContext;
use crate::operators;
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, WorkKind};

#[derive(Default)]
pub struct Ops {
    /// Most time first: calls of one operator with the same arguments.
    pub groups: Vec<Group>,
    /// The sum of the times of all kernels in the steps, with an operator that is known here or without.
    pub kernel_ns: u64,
}

pub struct Group {
    pub name: NameIndex,
    pub cost: Cost,
    /// As they were recorded, for a sentence: "[512] [141, 512] [512, 512]".
    pub shapes: String,
    pub calls: u64,
    /// Of all its kernels.
    pub ns: u64,
    /// The kernels' indexes, and the name of the one that takes most.
    pub work: Vec<u32>,
    pub kernel: NameIndex,
    /// The last call that was added: its slice, and the step that it was carried over to.
    last: Option<(usize, u32)>,
}

impl Group {
    /// The least time that the device would need for all calls, and whether arithmetic sets it. None: its peak is not known.
    pub fn floor_ns(&self, peaks: &Peaks) -> Option<(f64, bool)> {
        let math = self.cost.flops / (peaks.math(self.cost.math)? * 1e3);
        let memory = self.cost.bytes / peaks.bandwidth;
        Some((math.max(memory) * self.calls as f64, math > memory))
    }
}

impl Ops {
    pub fn find(context: &StepContext, kernels: &[StepKernels], launched: &Launched) -> Ops {
        let (timeline, mut ops) = (context.timeline, Ops::default());
        let names = &timeline.names;
        let what: Vec<Option<What>> =
            (0..names.len() as u32).map(|name| What::of(names.text(NameIndex(name)))).collect();
        if kernels.is_empty() || what.iter().all(Option::is_none) {
            return ops;
        }
        let mut inside = vec![false; timeline.gpu.work.len()];
        for device in kernels {
            device.each(context, |_, index| inside[index] = true);
        }
        ops.kernel_ns = kernels.iter().flat_map(|device| &device.rows).map(|row| row.ns).fold(0, u64::saturating_add);
        let mut groups = Groups::default();
        let (slices, work) = (&timeline.slices, &timeline.gpu.work);
        let mut linked = work.linked().iter().map(|index| *index as usize).peekable();
        for track in &timeline.tracks {
            // Open operators, the innermost last.
            let mut open: Vec<(u64, usize)> = Vec::new();
            for index in track.slices.clone() {
                let start = slices.start[index];
                match slices.kind(index) {
                    SliceKind::CCall if what.get(slices.name[index] as usize).is_some_and(Option::is_some) => {
                        open.retain(|(end, _)| *end > start);
                        open.push((start.saturating_add(slices.dur[index]), index));
                    }
                    SliceKind::ApiCall => {
                        while let Some(piece) =
                            linked.next_if(|piece| work.launch(*piece).is_some_and(|launch| launch <= index))
                        {
                            let op = open.iter().rev().find(|(end, _)| *end > start);
                            if let (Some((_, op)), true, true) =
                                (op, inside[piece], work.kind(piece) == WorkKind::Kernel)
                            {
                                groups.add(context, &what, (*op, 0), piece);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        for one in launched.all() {
            let (piece, op) = (one.piece as usize, one.op as usize);
            if inside[piece] && what.get(slices.name[op] as usize).is_some_and(Option::is_some) {
                groups.add(context, &what, (op, one.step), piece);
            }
        }
        ops.groups = groups.finish(context);
        ops
    }

    /// The part of the kernels' time that the operators known here have.
    pub fn covered(&self) -> f64 {
        self.groups.iter().map(|group| group.ns).fold(0, u64::saturating_add) as f64 / self.kernel_ns.max(1) as f64
    }
}

/// Groups while they are filled, by operator and by the text of its arguments up to what is different in every call.
#[derive(Default)]
struct Groups<'a> {
    known: HashMap<(u32, &'a str), Option<usize>>,
    all: Vec<Group>,
}

impl<'a> Groups<'a> {
    fn add(&mut self, context: &StepContext<'a>, what: &[Option<What>], call: (usize, u32), piece: usize) {
        let op = call.0;
        let (slices, work) = (&context.timeline.slices, &context.timeline.gpu.work);
        let (name, text) = (slices.name[op], slices.args(op).unwrap_or(""));
        let text = operators::signature(text);
        let all = &mut self.all;
        let place = *self.known.entry((name, text)).or_insert_with(|| {
            let (cost, shapes) = cost::of(what[name as usize]?, context.timeline.names.text(NameIndex(name)), text)?;
            let kernel = NameIndex(work.name[piece]);
            all.push(Group {
                name: NameIndex(name),
                cost,
                shapes,
                calls: 0,
                ns: 0,
                work: Vec::new(),
                kernel,
                last: None,
            });
            Some(all.len() - 1)
        });
        let Some(group) = place.map(|place| &mut self.all[place]) else { return };
        group.calls += u64::from(group.last != Some(call));
        group.last = Some(call);
        group.ns = group.ns.saturating_add(work.dur[piece]);
        group.work.push(piece as u32);
    }

    fn finish(mut self, context: &StepContext) -> Vec<Group> {
        let work = &context.timeline.gpu.work;
        for group in &mut self.all {
            let mut sums: HashMap<u32, u64> = HashMap::new();
            group
                .work
                .iter()
                .for_each(|index| *sums.entry(work.name[*index as usize]).or_default() += work.dur[*index as usize]);
            let most = sums.into_iter().max_by_key(|(name, ns)| (*ns, u32::MAX - name));
            group.kernel = NameIndex(most.map_or(0, |(name, _)| name));
            // Tensors of FP32 are multiplied in FP32 or in TF32: the kernel says which.
            let kind = Kind::of(context.timeline.names.text(group.kernel));
            if group.cost.math == Math::F32 && kind.math == Some(Math::Tf32) {
                group.cost.math = Math::Tf32;
            }
        }
        self.all.sort_by_key(|group| (u64::MAX - group.ns, group.name));
        self.all
    }
}
