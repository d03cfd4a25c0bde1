//! What to do about a function that takes much of the steps: that depends on whether it is the driver's call, an operator, native code or Python.

use super::calls::{Calls, Habit, LONG_NS};
use crate::rule::Case;
use analysis::phrase;
use analysis::place::Place;
use analysis::steps::StepSource;
use timeline::NameIndex;
use timeline::cuda_calls::{ApiClass, CudaCall};
use timeline::gpu::detail;

pub fn actions(case: &Case, place: &Place, native: bool, calls: Calls) -> Vec<String> {
    let line = place.line.map_or_else(|| "The call".to_owned(), |line| format!("Line {line}"));
    let name = place.function.as_deref().unwrap_or("");
    let (often, later) = match case.steps.source {
        StepSource::Whole => ("most times", "later calls too"),
        _ => ("in most steps", "later steps too"),
    };
    let operator = name.contains("::") && case.gpu().is_some();
    let call = CudaCall::of(name);
    let work = match native {
        true if call.is_api() && call.allocates() => {
            "It takes memory from the driver: keep what was taken (no emptying of caches between requests), and run every shape once before the first."
                .into()
        }
        true if call.is_api() => of_call(case, name, call).into(),
        // What goes to other ranks without the driver waits more than it computes.
        true if operator && calls.habit == Habit::OnHost && !name.starts_with("c10d") => {
            format!("It takes this long {often} and launches nothing: it computes on the host. Move its data to the device once and compute there, or do it beforehand.")
        }
        true if operator && calls.habit == Habit::LongInMost => {
            format!("A call of it takes far longer than any launch, {often}: it works on the host before or between its launches. Keep its data on the device, and see what it calls.")
        }
        true if operator && calls.each_ns >= LONG_NS => {
            format!("A call of it takes far longer than any launch: it takes memory, loads code or waits inside. Record {later}: what only the first one does belongs before the first request.")
        }
        true if operator => {
            "What an operator takes on the host is the same for any size of data: launch fewer of them, as a CUDA graph, in a larger batch, or fused by a compiler."
                .into()
        }
        true => format!(
            "{line} runs native code: give it more work at once (one call for the whole batch), or smaller or narrower data."
        ),
        false => {
            format!("{line} runs Python: do its work in one call over the whole array or string instead of a loop.")
        }
    };
    let again = place.function.as_deref().filter(|_| could_be_kept(place)).map(|function| {
        let before = if case.steps.source == StepSource::Whole { "" } else { " before the steps" };
        format!("If {function} gives the same result every time, call it once{before} and keep the result (@functools.cache does).")
    });
    // A file of another tool was not recorded by a command of ours, and calls that were recorded are in the report.
    let ours = case.timeline.info.recorder.is_empty() && case.timeline.info.settings.calls != Some(true);
    let count = (ours && is_python(place))
        .then(|| format!("To see how often it is called: inferscope run --calls --include {} -- ...", module(place)));
    let (first, second) = if native { (Some(work), again) } else { (again, Some(work)) };
    [first, second, count].into_iter().flatten().collect()
}

/// Of a line that imports a module inside the steps.
pub fn of_import(place: &Place) -> Vec<String> {
    let line = place.line.map_or_else(|| "It".to_owned(), |line| format!("Line {line}"));
    vec![
        format!("{line} imports a module: do that once, before the first step, at the top of the file."),
        "To see which module takes the time: python -X importtime -c \"import NAME\"".into(),
    ]
}

const CONTEXT: &str = "It is the driver's own time: the first calls of a process make its context and load libraries. Make them before the first request (cudaFree(0), one run of every shape), and keep the process.";

/// By what a call of the driver does.
fn of_call(case: &Case, name: &str, call: CudaCall) -> &'static str {
    match call.class() {
        ApiClass::Copy if pageable(case, name) => {
            "It copies from or to pageable memory: the call itself brings the bytes through a pinned buffer of the driver's. Copy from and to pinned memory, and the call returns at once."
        }
        ApiClass::Copy => {
            "It copies, and the host stands in the call meanwhile: copy less, or asynchronously between the device and pinned memory."
        }
        ApiClass::Compile => {
            "It loads device code: run every shape once before the first request, or load all at the start (CUDA_MODULE_LOADING=EAGER)."
        }
        ApiClass::Communication => "It asks other devices for something: the collective waits for the last of them.",
        ApiClass::Sync => "It waits for the device: what that does meanwhile sets the pace.",
        ApiClass::Allocator => "It gives memory back to the driver, which waits for the device: keep what was taken.",
        ApiClass::Launch if call.is_launch() => {
            "It gives work to the device, and takes the host this long: launch less often, with more work in each launch (a larger batch, a CUDA graph with fewer nodes, fused kernels)."
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
