//! What to do about a function that takes much of the steps: that depends on whether it is the driver's call, an operator, native code or Python.

use super::calls::{Calls, Habit};
use super::own_time::OwnTime;
use super::{MIN_CALLEE_SAMPLES, MIN_LONG_CALL};
use crate::action::{Action, Precondition};
use crate::measures::capture;
use crate::measures::element_reads::{self, ElementReads};
use crate::rule::Case;
use analysis::frames::NativeFunction;
use analysis::phrase;
use analysis::place::Place;
use analysis::steps::StepSource;
use timeline::NameIndex;
use timeline::cuda_calls::{ApiClass, CudaCall};
use timeline::gpu::detail;

pub fn actions(
    case: &Case,
    place: &Place,
    native: bool,
    function: Option<&NativeFunction>,
    calls: Calls,
) -> Vec<Action> {
    let name = place.function.as_deref().unwrap_or("");
    let (often, later) = match case.steps.source {
        StepSource::Whole => ("most times", "later calls too"),
        _ => ("in most steps", "later steps too"),
    };
    let operator = name.contains("::") && case.gpu().is_some();
    let call = CudaCall::of(name);
    let native_work = match native {
        false => None,
        true if call.is_api() && call.allocates() => Some(
            "Reuse allocated memory (do not empty caches between requests), and run every shape once before the first request."
                .into(),
        ),
        true if call.is_api() => Some(of_call(case, name, call).into()),
        // What goes to other ranks without the driver waits more than it computes.
        true if operator && calls.habit == Habit::OnHost && !name.starts_with("c10d") => Some(format!(
            "Move its data to the GPU once and compute there, or precompute: it takes this long {often}, launches nothing and computes on the CPU."
        )),
        true if operator && calls.habit == Habit::LongInMost => Some(format!(
            "Keep its data on the GPU, and check what it calls: it takes far longer than a launch {often}, working on the CPU before or between its launches."
        )),
        true if operator && calls.each_ns as f64 >= case.threshold(MIN_LONG_CALL) => Some(format!(
            "Record {later}: a call takes far longer than a launch because it allocates memory, loads code or waits. What only the first one does belongs before the first request."
        )),
        true if operator => {
            let graph = if capture::nothing_waits(case) { "a CUDA graph, " } else { "" };
            Some(format!(
                "Launch fewer operators: {graph}a larger batch, or fusion by a compiler. An operator's CPU cost does not depend on the size of the data."
            ))
        }
        true => {
            let runs = function.map_or(String::new(), |function| format!(" It runs {}.", function.said()));
            Some(format!("Batch more work per call of {}, or use smaller data or a narrower dtype.{runs}", called(name)))
        }
    };
    let mut actions: Vec<Action> = match native_work {
        Some(work) => vec![work.into()],
        // Native code with the GIL: the loops are not Python's.
        None => match function.filter(|function| !is_interpreter(&function.library)) {
            Some(function) => vec![Action::new(format!(
                "Call {} less often or with less data: its time is in {}, not in Python.",
                called(name),
                function.said()
            ))],
            None => of_python(case, place, name),
        },
    };
    if let Some(keeping) = keeping(case, place, native) {
        // What is known to repeat need not be made faster.
        let known = keeping.applies() >= 1.0;
        actions.insert(if known { 0 } else { actions.len() }, keeping);
    }
    actions.extend(count_calls(case, place).map(Action::from));
    actions
}

/// Of a function whose time is Python's: its own loops, or what it calls.
fn of_python(case: &Case, place: &Place, name: &str) -> Vec<Action> {
    let time = OwnTime::of(case, place);
    let vectorise = Action::new(format!(
        "Vectorise {}: replace Python loops with calls over whole arrays or strings.",
        called(name)
    ))
    .needs([time.is_own()]);
    let call = time.called(case.threshold(MIN_CALLEE_SAMPLES)).map(|(callee, said)| {
        Action::new(format!("Call {callee} less often, or with more data per call: {said} of this time is in it."))
            .needs([Precondition::Unknown("calls of it can be left out or batched".into())])
    });
    call.into_iter().chain([vectorise]).collect()
}

/// To keep the result of a function, where it may be the same every time: operators show whether it is given the same.
fn keeping(case: &Case, place: &Place, native: bool) -> Option<Action> {
    let function = place.function.as_deref().filter(|_| could_be_kept(place))?;
    let condition = match inputs_differ(case, place) {
        Some(true) => Precondition::Fails("its inputs differ from step to step".into()),
        Some(false) => Precondition::Holds,
        None => Precondition::Unknown(format!("{function} gives the same result every time")),
    };
    let keep = match native {
        true if case.steps.source != StepSource::Whole => {
            format!("Call {function} once before the steps and cache the result (@functools.cache).")
        }
        true => format!("Call {function} once and cache the result (@functools.cache)."),
        false => format!("Cache the result of {function} (@functools.cache)."),
    };
    Some(Action::new(keep).needs([condition]))
}

/// Of a function that makes a Python number of each element of a tensor.
pub fn of_elements(case: &Case, place: &Place, reads: &ElementReads) -> Vec<String> {
    let name = place.function.as_deref().filter(|name| !element_reads::is_read(name)).unwrap_or("");
    let vectorise = format!(
        "Vectorise {}: {}. Compute on whole tensors, or read all values once with tensor.tolist() and loop over the list.",
        called(name),
        reads.text()
    );
    [Some(vectorise), count_calls(case, place)].into_iter().flatten().collect()
}

fn inputs_differ(case: &Case, place: &Place) -> Option<bool> {
    case.dataflow().inputs_differ(case.timeline, place.file.as_deref()?, place.function.as_deref()?)
}

fn count_calls(case: &Case, place: &Place) -> Option<String> {
    // A file of another tool was not recorded by a command of ours, and calls that were recorded are in the report.
    let ours = case.timeline.info.recorded_by.is_ours() && case.timeline.info.settings.calls != Some(true);
    (ours && is_python(place))
        .then(|| format!("Count its calls: inferscope run --calls --include {} -- ...", module(place)))
}

/// Python itself, whose functions are what Python code costs.
fn is_interpreter(library: &str) -> bool {
    library.starts_with("libpython") || library.starts_with("python")
}

/// Of a line that imports a module inside the steps.
pub fn of_import(place: &Place) -> Vec<String> {
    vec![
        format!("Move the import{} to the top of the file, before the first step.", at_line(place)),
        "Find the slow module: python -X importtime -c \"import NAME\"".into(),
    ]
}

/// What has no name of its own, as `<module>`, is not called by one.
fn called(name: &str) -> &str {
    if name.is_empty() || name.starts_with('<') { "this code" } else { name }
}

fn at_line(place: &Place) -> String {
    place.line.map(|line| format!(" at line {line}")).unwrap_or_default()
}

const CONTEXT: &str = "Initialise CUDA before the first request (cudaFree(0), one run of every shape), and keep the process alive: the first calls create the context and load libraries.";

/// By what a call of the driver does.
fn of_call(case: &Case, name: &str, call: CudaCall) -> &'static str {
    match call.class() {
        ApiClass::Copy if pageable(case, name) => {
            "Copy from and to pinned memory, so that the call returns at once: with pageable memory it moves the bytes through the driver's pinned buffer itself."
        }
        ApiClass::Copy => {
            "Copy less, or asynchronously between the GPU and pinned memory: the CPU blocks in this call."
        }
        ApiClass::Compile => {
            "Run every shape once before the first request, or load all device code at start-up (CUDA_MODULE_LOADING=EAGER)."
        }
        ApiClass::Communication => "Check the other GPUs: the collective waits for the last of them.",
        ApiClass::Sync => "Check what the GPU does: this call waits for it.",
        ApiClass::Allocator => "Keep allocated memory: freeing it makes the driver wait for the GPU.",
        ApiClass::Launch if call.is_launch() && (call.launches_graph() || capture::nothing_waits(case)) => {
            "Launch less often, with more work per launch: a larger batch, a CUDA graph with fewer nodes, fused kernels."
        }
        ApiClass::Launch if call.is_launch() => {
            "Launch less often, with more work per launch: a larger batch, fused kernels."
        }
        ApiClass::Launch => CONTEXT,
    }
}

/// Whether the calls of this name spend most of their time on copies from or to pageable memory.
fn pageable(case: &Case, name: &str) -> bool {
    let slices = &case.timeline.slices;
    let (mut part, mut all) = (0u64, 0u64);
    for copy in case.moved().iter().flat_map(|moved| &moved.all) {
        let Some(call) = copy.piece.launch else { continue };
        if case.timeline.names.text(NameIndex(slices.name[call])) == name {
            all = all.saturating_add(slices.dur[call]);
            part = part.saturating_add(if copy.host_memory() == detail::PAGEABLE { slices.dur[call] } else { 0 });
        }
    }
    part > all / 2
}

fn is_python(place: &Place) -> bool {
    place.file.as_deref().is_some_and(|file| file.ends_with(".py") || file.ends_with(".ipynb"))
}

/// Whether the same call may be made again and again: a function of the program. Not what a model computes of every input, not the program
/// itself, not an operator, nor a library's function.
pub fn could_be_kept(place: &Place) -> bool {
    let last = place.function.as_deref().and_then(|name| name.rsplit('.').next()).unwrap_or("");
    let model = matches!(last, "forward" | "__call__" | "_call_impl" | "_wrapped_call_impl" | "generate");
    is_python(place) && !model && !last.starts_with('<') && !place.file.as_deref().is_some_and(is_library)
}

fn is_library(file: &str) -> bool {
    ["/site-packages/", "/dist-packages/", "/lib/python3"].iter().any(|part| file.contains(part))
}

/// The module of a file, as `--include` takes it.
fn module(place: &Place) -> String {
    let file = place.file.as_deref().map_or("your_module", phrase::short_file);
    file.trim_end_matches(".py").trim_end_matches("/__init__").replace('/', ".")
}
