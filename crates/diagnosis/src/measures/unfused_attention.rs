//! Attention that is computed as product, softmax, product in kernels of its own: which pieces of work those are. The rule for it says what one fused
//! kernel would gain; rules of other kernels leave them out.

use crate::rule::Case;
use analysis::device::kernel_kind::Class;
use analysis::device::step_kernels::StepKernels;
use std::collections::HashSet;

/// Between the product and the softmax: scaling, a mask, a conversion and their helpers; after it what guards against rows without any key,
/// a conversion, a dropout. It is what such code consists of, and no level to choose.
pub const MAX_KERNELS_BETWEEN: usize = 9;

/// Pieces of work, by what becomes of them.
#[derive(Default)]
pub struct UnfusedAttention {
    pub softmax: Vec<u32>,
    /// With the softmax.
    pub between: Vec<u32>,
    pub products: Vec<u32>,
    /// Conversions and scaling right before the first product.
    pub before: Vec<u32>,
}

impl UnfusedAttention {
    pub fn find(case: &Case, device: &StepKernels) -> UnfusedAttention {
        let mut found = UnfusedAttention::default();
        if !device.rows.iter().any(|row| row.kind.class == Class::Softmax) {
            return found;
        }
        let mut run: Vec<(u32, Class)> = Vec::new();
        let (mut stream, mut window) = (usize::MAX, usize::MAX);
        let gpu = &case.timeline.gpu;
        device.each(case, |at, index| {
            let now = gpu.streams.partition_point(|stream| stream.work.end <= index);
            if (now, at) != (stream, window) {
                found.take(&run);
                run.clear();
                (stream, window) = (now, at);
            }
            run.push((index as u32, device.kind(case, index).class));
        });
        found.take(&run);
        found.products.sort_unstable();
        found.products.dedup();
        found
    }

    /// One stream in one step.
    fn take(&mut self, run: &[(u32, Class)]) {
        let multiplies = |class: Class| matches!(class, Class::Matmul | Class::Gemv);
        let plain = |class: Class| matches!(class, Class::Elementwise | Class::Copy | Class::Reduction);
        let product = |places: Vec<usize>| {
            let place = places.into_iter().find(|place| !plain(run[*place].1))?;
            multiplies(run[place].1).then_some(place)
        };
        for (place, (softmax, _)) in run.iter().enumerate().filter(|(_, one)| one.1 == Class::Softmax) {
            let before = product((place.saturating_sub(MAX_KERNELS_BETWEEN)..place).rev().collect());
            let after = product((place + 1..run.len().min(place + 1 + MAX_KERNELS_BETWEEN)).collect());
            if let (Some(before), Some(after)) = (before, after) {
                self.softmax.push(*softmax);
                self.between.extend(run[before + 1..after].iter().map(|one| one.0));
                self.products.extend([run[before].0, run[after].0]);
                let ahead = run[..before].iter().rev().take(MAX_KERNELS_BETWEEN).take_while(|one| plain(one.1));
                self.before.extend(ahead.map(|one| one.0));
            }
        }
    }

    /// All of it: rules of other kernels leave it to the rule for attention.
    pub fn claimed(&self) -> HashSet<u32> {
        self.between.iter().chain(&self.products).chain(&self.before).copied().collect()
    }
}
