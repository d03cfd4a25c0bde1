//! Whether a function reads tensors element by element: by the recorded calls of C functions in it (`--calls=c`), or by the operators that were looked at.

use crate::measures::recorded;
use crate::rule::Case;
use analysis::dataflow::{self, Rounds};
use analysis::phrase;
use analysis::place::Place;
use analysis::steps::StepSource;
use timeline::{NameIndex, SliceKind};

/// Methods of tensors that make a Python number of one element.
const READ_METHODS: [&str; 5] = ["item", "__float__", "__int__", "__bool__", "__index__"];
/// Code that belongs to the function around it.
const INNER_FUNCTIONS: [&str; 5] = ["<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"];

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ElementReads {
    /// In a step, or in the recording where it has no steps.
    pub count: u64,
    /// There may be more: the look at operators ended in the loop.
    pub is_cut: bool,
    pub per_step: bool,
}

impl ElementReads {
    /// "4,096 Tensor.item() calls per step".
    pub fn text(&self) -> String {
        let (least, per) = (if self.is_cut { "at least " } else { "" }, if self.per_step { " per step" } else { "" });
        format!("{least}{} Tensor.item() calls{per}", phrase::count(self.count))
    }
}

/// Whether this is such a method of a tensor: "torch.Tensor.item", "torch._C.TensorBase.item".
pub fn is_read(name: &str) -> bool {
    let Some((class, method)) = name.rsplit_once('.') else { return false };
    READ_METHODS.contains(&method) && matches!(class.rsplit('.').next(), Some("Tensor" | "TensorBase"))
}

/// Of a function of the program: at least so many in a call of it. Recorded calls are exact; operators show it without them.
pub fn of(case: &Case, place: &Place, min_reads: f64) -> Option<ElementReads> {
    by_calls(case, place, min_reads).or_else(|| by_operators(case, place))
}

/// Of a loop, as the operators of a step show it.
pub fn of_loop(one: &Rounds) -> ElementReads {
    let count = one.ops.most() * one.host_reads.count as u64 / one.body.len().max(1) as u64;
    ElementReads { count, is_cut: one.is_cut, per_step: true }
}

/// By recorded calls of C functions. None: they were not recorded, or there are too few.
pub fn by_calls(case: &Case, place: &Place, min_reads: f64) -> Option<ElementReads> {
    let names = &case.timeline.names;
    let each = (0..names.len() as u32).map(NameIndex);
    let reads: Vec<bool> = each.clone().map(|name| is_read(names.text(name))).collect();
    let itself = is_read(place.function.as_deref().unwrap_or(""));
    if !reads.contains(&true) || (place.file.is_none() && !itself) {
        return None;
    }
    let own: Vec<bool> = each.map(|name| same(place, &names.get(name).file, names.text(name))).collect();
    let slices = &case.timeline.slices;
    let (mut count, mut called) = (0u64, 0u64);
    for (track, windows) in recorded::call_stretches(case) {
        // Open calls of Python functions, each with whether it is this one.
        let mut open: Vec<(u64, bool)> = Vec::new();
        for index in case.timeline.tracks[track.0 as usize].slices.clone() {
            let (start, name) = (slices.start[index], slices.name[index] as usize);
            let kind = slices.kind(index);
            if !matches!(kind, SliceKind::Call | SliceKind::CCall) {
                continue;
            }
            while open.last().is_some_and(|(end, _)| *end <= start) {
                open.pop();
            }
            let at = windows.partition_point(|window| window.end <= start);
            let inside = windows.get(at).is_some_and(|window| window.start <= start);
            if kind == SliceKind::CCall {
                let by = itself || open.last().is_some_and(|(_, own)| *own);
                count += u64::from(inside && by && reads[name]);
                continue;
            }
            let inner = INNER_FUNCTIONS.iter().any(|one| names.text(NameIndex(name as u32)).ends_with(one));
            let is_own = own[name] || (inner && open.last().is_some_and(|(_, own)| *own));
            called += u64::from(inside && own[name]);
            open.push((slices.get(index).end(), is_own));
        }
    }
    let per_step = case.steps.source != StepSource::Whole;
    let steps = if per_step { case.windows.all().len().max(1) as u64 } else { 1 };
    let of = if itself { steps } else { called.max(1) };
    (count as f64 >= min_reads * of as f64).then_some(ElementReads {
        count: count.div_ceil(steps),
        is_cut: false,
        per_step,
    })
}

fn by_operators(case: &Case, place: &Place) -> Option<ElementReads> {
    let inside = |at: &&str| {
        let said = dataflow::place(at);
        same(place, said.file.as_deref().unwrap_or(""), said.function.as_deref().unwrap_or(""))
    };
    let fits = |one: &&dataflow::Rounds| {
        one.host_reads.count > 0 && one.host_reads.depend != Some(true) && one.lines.iter().any(inside)
    };
    case.rounds().iter().find(fits).map(of_loop)
}

/// Samples, calls and operators name functions with or without their class.
fn same(place: &Place, file: &str, function: &str) -> bool {
    let last = |name: &str| name.rsplit('.').next().unwrap_or("").to_owned();
    place.file.as_deref() == Some(file) && last(place.function.as_deref().unwrap_or("")) == last(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_methods() {
        for name in ["torch.Tensor.item", "torch._C.TensorBase.item", "Tensor.__float__"] {
            assert!(is_read(name), "{name}");
        }
        for name in ["item", "dict.items", "torch.Tensor.items", "numpy.ndarray.item", "torch.Tensor.tolist", ""] {
            assert!(!is_read(name), "{name}");
        }
    }
}
