//! What to do about a function that takes much of the steps: that depends on whether it is the driver's call, an operator, native code or Python.

use super::calls::{Calls, Habit, LONG_NS};
use crate::finding::Place;
use crate::idle::{ApiClass, class_of};
use crate::phrase;
use crate::rule::Case;

pub fn actions(case: &Case, place: &Place, native: bool, calls: Calls) -> Vec<String> {
    let line = place.line.map_or_else(|| "The call".to_owned(), |line| format!("Line {line}"));
    let name = place.function.as_deref().unwrap_or("");
    let operator = name.contains("::") && case.gpu().is_some();
    let work = match native {
        true if is_call(name) && class_of(name) == ApiClass::Allocator && name.contains("lloc") => {
            "It takes memory from the driver: keep what was taken (no emptying of caches between requests), and run every shape once before the first."
                .into()
        }
        true if is_call(name) => {
            "It is the driver's own time: the first calls of a process make its context and load libraries. Make them before the first request (cudaFree(0), one run of every shape), and keep the process."
                .into()
        }
        // What goes to other ranks without the driver waits more than it computes.
        true if operator && calls.habit == Habit::OnHost && !name.starts_with("c10d") => {
            "It takes this long in most steps and launches nothing: it computes on the host. Move its data to the device once and compute there, or do it before the step."
                .into()
        }
        true if operator && calls.habit == Habit::LongInMost => {
            "A call of it takes far longer than any launch, in most steps: it works on the host before or between its launches. Keep its data on the device, and see what it calls."
                .into()
        }
        true if operator && calls.each_ns >= LONG_NS => {
            "A call of it takes far longer than any launch: it takes memory, loads code or waits inside. Record later steps too: what only the first one does belongs before the first request."
                .into()
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
        format!("If {function} gives the same result every time, call it once before the steps and keep the result (@functools.cache does).")
    });
    // A file of another tool was not recorded by a command of ours.
    let count = (case.timeline.info.recorder.is_empty() && is_python(place))
        .then(|| format!("To see how often it is called: inferscope run --calls --include {} -- ...", module(place)));
    let (first, second) = if native { (Some(work), again) } else { (again, Some(work)) };
    [first, second, count].into_iter().flatten().collect()
}

/// A call of CUDA's or HIP's.
fn is_call(name: &str) -> bool {
    ["cuda", "hip"].iter().any(|start| name.starts_with(start))
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
