//! Device work that is missing from the recording: launched work does not begin, and nothing that was recorded runs before it.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::losses::lacks_most;
use crate::rule::Case;
use analysis::idle::Cause;
use analysis::phrase;
use analysis::place::Place;
use timeline::cuda_calls::CudaCall;

use super::{CODE, MIN_SHARE};

const OURS: &str = "Record the whole run: inferscope run --overhead-budget none -- ...; work already running when recording begins is not included.";
const TORCH: &str = "Start and stop torch.profiler with torch.cuda.synchronize(), and give its schedule two warm-up steps, so that no earlier work is left.";
const NSIGHT: &str = "Record the whole run, or start at cudaProfilerStart() after a cudaDeviceSynchronize().";
const NODES: &str = "Start recording before the CUDA graphs are captured: graph nodes seem to be missing. Use a current CUDA (nsys: --cuda-graph-trace=node), or record one run without graphs.";
const OTHERS: &str = "Check who else uses the GPU (another process, a library's stream), and whether a stream waits for the host (cudaLaunchHostFunc): neither is recorded.";

pub fn finding(case: &Case) -> Option<Finding> {
    let device = lacks_most(case).filter(|device| device.held() >= case.threshold(MIN_SHARE))?;
    let share = |ns: u64| ns as f64 / device.window_ns.max(1) as f64;
    let (busy, held) = (share(device.busy_ns), device.held());
    let api =
        device.causes.iter().find(|one| one.cause == Cause::Unknown)?.top.as_ref().and_then(|top| top.api.clone());
    let graph = api.as_deref().is_some_and(|api| CudaCall::of(api).launches_graph());
    let at_most =
        format!("GPU busy at least {} of the time, at most {}", phrase::percent(busy), phrase::percent(busy + held));
    let mut evidence = vec![Evidence::new(at_most).number("busy", busy).number("held", held)];
    if let Some((start, end)) = device.sums.held {
        evidence.push(Evidence::at(format!("longest, {}", phrase::duration(end - start)), None, start, end));
    }
    let why = case.timeline.info.recorded_by.choose(OURS, TORCH, NSIGHT);
    let actions = if graph { [NODES, why] } else { [why, OTHERS] };
    Some(Finding {
        code: CODE,
        title: format!(
            "GPU activity missing for {} of {}: launched work does not start although the GPU shows no work",
            phrase::percent(held),
            case.the_step()
        ),
        place: Place { api, ..Place::default() },
        gain: None,
        severity: Severity::Medium,
        certainty: Certainty::seen(1.0), // That it is measured: what it waits for is left open.
        evidence,
        actions: Action::all(actions),
        verify: "Record again: the GPU's idle time should have causes.".into(),
    })
}
