//! Whether the launches of a step can become one CUDA graph, by what was recorded: nothing waits between them, nothing between them copies pageable memory,
//! they are the same from step to step, and no graph launches them already.

use crate::action::Precondition;
use crate::measures::calls_in_steps::{self, Calls};
use crate::rule::{Case, Edit};
use analysis::device::gpu::Graphs;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use timeline::cuda_calls::CudaCall;
use timeline::gpu::detail;

/// More than this part of the steps, or of their kernels: what holds for those holds for the program.
const MAJORITY: f64 = 0.5;
/// Fewer steps do not show whether launches repeat.
const MIN_STEPS: usize = 4;

/// For the rules that a graph of the step answers.
pub const EDIT: Edit = Edit {
    what: "torch.compile(model, mode=\"reduce-overhead\"), or capture the step in a CUDA graph",
    whatif: Some("graph steps"),
};

/// What capturing the launches of `device` needs.
pub fn of_steps(case: &Case, device: &StepKernels) -> Vec<Precondition> {
    vec![captured(case, device), waits(case), pageable(case), repeats(case, device)]
}

/// Of those, what is true of the whole recording and takes no look at its kernels: for rules that name no device.
pub fn without_waits(case: &Case) -> Vec<Precondition> {
    vec![waits(case), pageable(case)]
}

/// Whether nothing that a graph cannot hold stands between the launches of a step, as far as it was recorded.
pub fn nothing_waits(case: &Case) -> bool {
    without_waits(case).iter().all(|one| *one == Precondition::Holds)
}

fn captured(case: &Case, device: &StepKernels) -> Precondition {
    let graphs = Graphs::new(case.timeline);
    let (mut all, mut those) = (0u64, 0u64);
    if graphs.any() {
        device.each(case, |_, index| {
            all += 1;
            those += u64::from(graphs.has(index));
        });
    }
    match those as f64 > MAJORITY * all as f64 {
        true => Precondition::Fails(format!("{} of its kernels run in CUDA graphs already", share(those, all))),
        false => Precondition::Holds,
    }
}

fn waits(case: &Case) -> Precondition {
    let waits = calls_in_steps::find(case, CudaCall::waits, |_| true);
    let starts: Vec<u64> = waits.all.iter().map(|call| case.timeline.slices.start[*call as usize]).collect();
    judged(case, &starts, "waits for the GPU")
}

fn pageable(case: &Case) -> Precondition {
    let copies = case.moved().iter().flat_map(|moved| &moved.all);
    let pageable = copies.filter(|copy| copy.host_memory() == detail::PAGEABLE);
    let starts: Vec<u64> = pageable.filter_map(|copy| Some(case.timeline.slices.start[copy.piece.launch?])).collect();
    judged(case, &starts, "copies pageable memory")
}

/// Calls that a capture cannot hold, by their starts: those between two launches of one step.
fn judged(case: &Case, calls: &[u64], does: &str) -> Precondition {
    if calls.is_empty() {
        return Precondition::Holds;
    }
    let launches = launches(case);
    let between = |from: u64, to: u64| {
        launches.partition_point(|start| *start < to) > launches.partition_point(|start| *start < from)
    };
    let windows = case.windows.all();
    let mut hit = vec![0u64; windows.len()];
    for call in calls {
        for (window, hit) in windows.iter().zip(&mut hit).filter(|(one, _)| one.start <= *call && *call < one.end) {
            *hit += u64::from(between(window.start, *call) && between(call + 1, window.end));
        }
    }
    let (steps, times) = (hit.iter().filter(|hit| **hit > 0).count(), hit.iter().sum::<u64>());
    let each = times as f64 / steps.max(1) as f64;
    match steps as f64 / windows.len().max(1) as f64 {
        0.0 => Precondition::Holds,
        part if part > MAJORITY => {
            Precondition::Fails(format!("the step {does} {} between its launches", calls_in_steps::times(each)))
        }
        _ => Precondition::Unknown(format!(
            "the {} of {} steps that do so can go without: one {does} between its launches",
            phrase::count(steps as u64),
            phrase::count(windows.len() as u64)
        )),
    }
}

/// When kernels were launched in the steps.
fn launches(case: &Case) -> Vec<u64> {
    let Calls { all, .. } = calls_in_steps::find(case, CudaCall::launches_kernel, |_| true);
    let mut starts: Vec<u64> = all.iter().map(|call| case.timeline.slices.start[*call as usize]).collect();
    starts.sort_unstable();
    starts
}

/// What going on without a value that is read back needs: it does not decide what is launched. Where most steps launch the kernels that another step
/// launched, whatever their sizes, it decides nothing that was recorded.
pub fn goes_on_alike(case: &Case) -> Precondition {
    let Some((device, _)) = case.most_kernels(|_| true) else { return Precondition::Holds };
    match device.windows.len() >= MIN_STEPS && again(case, device, false) > MAJORITY {
        true => Precondition::Holds,
        false => Precondition::Unknown("what is launched next does not depend on the value".into()),
    }
}

/// Whether steps launch what another step launched, too: the same kernels in the same order, with the same shapes.
fn repeats(case: &Case, device: &StepKernels) -> Precondition {
    let (named, shaped) = (again(case, device, false), again(case, device, true));
    let count = device.windows.len();
    match () {
        () if count < MIN_STEPS => Precondition::Unknown("every step launches the same kernels".into()),
        () if shaped > MAJORITY => Precondition::Holds,
        () if named > MAJORITY => Precondition::Fails("the shapes of its launches change from step to step".into()),
        () => Precondition::Fails("its launches differ from step to step".into()),
    }
}

/// The part of the steps whose launches another step has as well.
fn again(case: &Case, device: &StepKernels, shapes: bool) -> f64 {
    let work = &case.timeline.gpu.work;
    let mut steps: Vec<DefaultHasher> = vec![DefaultHasher::new(); device.windows.len()];
    let mut launched = vec![false; device.windows.len()];
    device.each(case, |window, index| {
        launched[window] = true;
        work.name[index].hash(&mut steps[window]);
        let shape = case.timeline.gpu.shape(index).filter(|_| shapes);
        shape.map(|shape| (shape.grid, shape.block)).hash(&mut steps[window]);
    });
    let mut seen: HashMap<u64, u64> = HashMap::new();
    for (step, _) in steps.iter().zip(&launched).filter(|(_, launched)| **launched) {
        *seen.entry(step.finish()).or_default() += 1;
    }
    let all: u64 = seen.values().sum();
    let those: u64 = seen.values().filter(|count| **count > 1).sum();
    those as f64 / all.max(1) as f64
}

fn share(part: u64, all: u64) -> String {
    phrase::percent(part as f64 / all.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    /// Ten steps of ten launches; `between` stands between the fifth and the sixth.
    fn steps(between: &str) -> String {
        let mut text = String::from("track main\n repeat 10 every 1ms\n step token 0..400us\n stream 7\n");
        for number in 0..10 {
            let at = number * 20;
            text += &format!("api cudaLaunchKernel {at}us..{}us\n kernel add {}us..{}us\n", at + 4, at + 5, at + 8);
            text += if number == 4 { between } else { "" };
        }
        text + "end"
    }

    fn failing(text: &str) -> Vec<Precondition> {
        let timeline = Timeline::from_text(text).unwrap();
        let case = Case::new(&timeline, None);
        let all = of_steps(&case, &case.kernels()[0]);
        all.into_iter().filter(|one| *one != Precondition::Holds).collect()
    }

    fn fails(why: &str) -> Vec<Precondition> {
        vec![Precondition::Fails(why.into())]
    }

    #[test]
    fn the_same_launches_in_every_step_with_nothing_between_can_be_captured() {
        assert_eq!(failing(&steps("")), []);
        // What waits for the result at the end is after all launches.
        assert_eq!(failing(&steps("").replace("end", "api cudaStreamSynchronize 300us..310us\n end")), []);
    }

    #[test]
    fn a_wait_between_two_launches_cannot() {
        let wait = "api cudaStreamSynchronize 90us..95us\n";
        assert_eq!(failing(&steps(wait)), fails("the step waits for the GPU once between its launches"));
        let free = |text: &str| nothing_waits(&Case::new(&Timeline::from_text(text).unwrap(), None));
        assert!(free(&steps("")) && !free(&steps(wait)));
        let one = steps("") + "\n api cudaStreamSynchronize 90us..95us";
        let unknown = failing(&one);
        assert!(
            matches!(&unknown[..], [Precondition::Unknown(what)] if what.starts_with("the 1 of 10 steps")),
            "{unknown:?}"
        );
    }

    #[test]
    fn a_copy_of_pageable_memory_between_two_launches_cannot() {
        let copy = "api cudaMemcpyAsync 90us..95us\n copy h2d 96us..98us 100000 pageable\n";
        assert_eq!(failing(&steps(copy)), fails("the step copies pageable memory once between its launches"));
        assert_eq!(failing(&steps(&copy.replace("pageable", "pinned"))), []);
    }

    #[test]
    fn launches_that_differ_from_step_to_step_cannot() {
        let mut text = String::from("track main\n stream 7\n");
        for step in 0..8 {
            let start = 1000 * step;
            text += &format!("step token {start}us..{}us\n", start + 400);
            for number in 0..step + 2 {
                let at = start + number * 20;
                text += &format!("api cudaLaunchKernel {at}us..{}us\n kernel add {}us..{}us\n", at + 4, at + 5, at + 8);
            }
        }
        assert_eq!(failing(&text), fails("its launches differ from step to step"));
        let free = |text: &str| goes_on_alike(&Case::new(&Timeline::from_text(text).unwrap(), None));
        assert!(matches!(free(&text), Precondition::Unknown(_)));
        assert_eq!(free(&steps("")), Precondition::Holds);
        let few: String = text.split_inclusive('\n').take(2 + 4 * 2 + 6).collect();
        assert!(matches!(&failing(&few)[..], [Precondition::Unknown(_)]), "{:?}", failing(&few));
    }

    #[test]
    fn what_is_captured_already_is_not_captured_again() {
        let text = "track main\n repeat 10 every 1ms\n step token 0..400us\n stream 7\n api cudaGraphLaunch 0..4us\n \
                    kernel a 10us..20us graph 3\n kernel b 21us..30us graph 3\n end";
        assert_eq!(failing(text)[0], Precondition::Fails("100 % of its kernels run in CUDA graphs already".into()));
    }
}
