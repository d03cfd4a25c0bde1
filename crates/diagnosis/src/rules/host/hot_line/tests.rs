//! What `hot-line` says of small timelines.

use super::advice::could_be_kept;
use super::*;
use crate::testing::{abstains, found, silent};

/// The pieces of one function (a lambda here) are one, and library code counts for the line that called it.
#[test]
fn names_the_function_of_the_program_and_its_hottest_line() {
    let found = found(
        &HotLine,
        "
        track main
        repeat 40 every 50ms
          step request 0..40ms
          sample 2ms active gil serve>encode:20>build:57><lambda>:57
          sample 12ms active gil serve>encode:20>build:58
          sample 22ms active gil serve>forward:80>matmul@/usr/lib/python3.12/site-packages/np.py:9
          sample 32ms active gil serve>decode:90
        end",
    );
    // Two lines have it together.
    assert_eq!(found[0].title, "build takes 50 % of the step (app.py)");
    assert_eq!(found[2].title, "decode takes 25 % of the step (app.py:90)");
    assert_eq!(
        found.iter().map(|f| f.place.function.clone().unwrap()).collect::<Vec<_>>(),
        ["build", "forward", "decode"]
    );
    let kept = |finding: &Finding| finding.actions.iter().any(|action| action.contains("functools"));
    assert_eq!(found.iter().map(kept).collect::<Vec<_>>(), [true, false, true]);
    let gain = found[0].gain.unwrap();
    assert!(gain.low > 40.0 && gain.high < 60.0 && found[0].confidence() > 0.99);
    assert!(found[0].evidence.iter().any(|one| one.track.is_some() && one.start.is_some()));
}

/// Half of a function at one line and half at another: the next recording may have it the other way round.
#[test]
fn a_line_is_named_only_where_it_clearly_leads() {
    let steps = |lines: [u32; 4]| {
        let samples: String = lines
            .iter()
            .enumerate()
            .map(|(at, line)| format!("sample {}ms active gil serve>build:{line}\n", 2 + 5 * at))
            .collect();
        format!(
            "track main\n repeat 40 every 50ms\n step r 0..40ms\n {samples} samples 22ms..40ms every 5ms active gil serve>decode:90\n end"
        )
    };
    let leads = &found(&HotLine, &steps([57, 57, 57, 58]))[0];
    assert!(leads.title.contains("(hottest line app.py:57, ") && leads.place.line == Some(57), "{leads:?}");
    let flips = &found(&HotLine, &steps([57, 58, 57, 58]))[0];
    assert!(flips.title.ends_with("(app.py)") && flips.place.line.is_none(), "{flips:?}");
    assert!(flips.evidence.iter().any(|one| one.text == "build (app.py:58): 80 samples"), "{flips:?}");
}

const IMPORT: &str = "_find_and_load@/usr/lib/python3.12/importlib/_bootstrap.py:1360>\
    <module>@/usr/lib/python3.12/site-packages/numpy/__init__.py:114";

/// A script without steps begins with its imports: no loop of the program, nor what it is slow at.
#[test]
fn imports_of_a_script_without_steps_are_not_its_code() {
    let text = format!(
        "track main\n samples 0..600ms every 10ms active gil <module>:1>{IMPORT}\n\
         samples 600ms..1s every 10ms active gil <module>:12>normalise:8"
    );
    let said = found(&HotLine, &text);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].title, "normalise takes 100 % of the recording after start-up (app.py:8)");
    // What a module of the program does while it is imported is the program's own.
    let own = text.replace("<module>@/usr/lib/python3.12/site-packages/numpy/__init__.py:114", "<module>@tables.py:3");
    assert!(found(&HotLine, &own)[0].title.starts_with("<module> takes"));
}

#[test]
fn an_import_inside_the_steps_is_sent_to_the_top_of_the_file() {
    let text = format!(
        "track main\n repeat 10 every 50ms\n step r 0..50ms\n samples 0..30ms every 1ms active gil serve:4>handle:9>{IMPORT}\n\
         samples 30ms..50ms every 1ms active gil serve:4>reply:2\n end"
    );
    let said = found(&HotLine, &text);
    assert_eq!(said[0].title, "handle takes 60 % of the step (app.py:9)");
    assert_eq!(said[0].actions[0], "Move the import at line 9 to the top of the file, before the first step.");
    assert!(!said[0].actions.iter().any(|action| action.contains("loop") || action.contains("functools")));
}

/// The steps are those that the program marks: without any, there is no "before the steps".
#[test]
fn without_steps_none_is_spoken_of() {
    let said = found(
        &HotLine,
        "track main\n samples 0..600ms every 10ms active gil <module>:6>work:4\n samples 600ms..1s every 10ms <module>:7",
    );
    assert_eq!(said[0].actions[0], "Vectorise work: replace Python loops with calls over whole arrays or strings.");
    assert_eq!(said[0].actions[1], "Cache the result of work (@functools.cache).");
    assert!(said[0].evidence.iter().any(|one| one.text.starts_with("nearly everything the program runs")), "{said:?}");
    assert!(!said[0].actions.iter().any(|action| action.contains("step")), "{:?}", said[0].actions);
}

/// The calls of a copy are not the making of a context.
#[test]
fn a_call_of_the_driver_is_advised_by_what_it_does() {
    let first = |call: &str, work: &str| {
        let text =
            format!("track main\n repeat 4 every 20ms\n step r 0..10ms\n api {call} 0..6ms\n stream 7\n {work}\n end");
        let said = found(&HotLine, &text);
        assert!(said[0].title.starts_with(call), "{}", said[0].title);
        said[0].actions[0].clone()
    };
    let copies = first("cudaMemcpyAsync", "copy h2d 1ms..7ms 60000000 pageable");
    assert!(copies.contains("pageable memory") && !copies.contains("context"), "{copies}");
    let launches = first("cudaGraphLaunch", "kernel k 6100us..7ms");
    assert!(launches.contains("launch") && !launches.contains("context"), "{launches}");
    assert!(first("cudaGetDeviceCount", "kernel k 6100us..7ms").contains("context"));
    assert!(first("cuModuleLoadData", "kernel k 6100us..7ms").contains("load all device code"));
}

#[test]
fn recorded_calls_serve_where_there_are_no_samples() {
    let found = found(
        &HotLine,
        "
        track main
        repeat 10 every 50ms
          step request 0..40ms
          call serve@svc.py:3 0..40ms
          call build@svc.py:44 0..30ms
          call sort@svc.py:60 0..10ms
        end",
    );
    assert_eq!(found[0].title, "build takes 50 % of the step (svc.py:44)");
    assert_eq!(found.len(), 3);
    // Ten steps show it.
    assert!((found[0].confidence() - 11.0 / 12.0).abs() < 1e-9, "{}", found[0].confidence());
}

/// An operator that is called often is cheap to launch fewer times; one call that takes milliseconds does something else.
#[test]
fn what_an_operator_costs_the_host_is_the_number_of_its_calls() {
    let step = |calls: &str| {
        format!(
            "track main\n step r 0..10ms\n {calls}\n api cudaLaunchKernel 9ms..9.01ms\n stream 7\n kernel k 9.1ms..9.2ms"
        )
    };
    let many: String = (0..40).map(|at| format!("ccall aten::addmm {}us..{}us\n", at * 100, at * 100 + 50)).collect();
    let often = found(&HotLine, &step(&many));
    assert!(often[0].evidence[0].text.ends_with("40 calls, 50.0 µs each"), "{:?}", often[0].evidence);
    assert!(often[0].actions[0].contains("Launch fewer"));
    let takes = found(&HotLine, &step("ccall aten::empty 0..6ms\n api cudaMalloc 1us..5999us"));
    assert!(
        takes[0].title.starts_with("cudaMalloc") && takes[0].actions[0].contains("Reuse allocated memory"),
        "{takes:?}"
    );
    let once = found(&HotLine, &step("ccall aten::empty 0..6ms"));
    assert!(once[0].actions[0].contains("longer than a launch"), "{:?}", once[0].actions);
}

/// The calls of the thread that the step waits for are counted as their time is.
#[test]
fn calls_of_the_thread_that_the_step_waits_for_are_counted() {
    let text =
        "track main\n step r 0..20ms\n ccall aten::linear 0..2ms\n ccall aten::item 18ms..20ms\n track autograd\n";
    let calls: String =
        (0..50).map(|at| format!("ccall MmBackward0 {}us..{}us\n", 3000 + at * 300, 3290 + at * 300)).collect();
    let found = found(&HotLine, &format!("{text}{calls}"));
    assert!(found[0].title.starts_with("MmBackward0 takes"), "{}", found[0].title);
    assert!(found[0].evidence[0].text.ends_with("50 calls, 290 µs each"), "{:?}", found[0].evidence);
}

/// Long in every step and without a launch is work, not a first call.
#[test]
fn an_operator_that_computes_on_the_host_is_told_from_a_first_call() {
    let first = |calls: &str| {
        let step = format!(
            "track main\n repeat 10 every 20ms\n step r 0..20ms\n {calls}\n ccall aten::linear 16ms..16.1ms\n \
             api cudaLaunchKernel 16ms..16.01ms\n stream 7\n kernel k 17ms..18ms\n end"
        );
        found(&HotLine, &step)[0].actions[0].clone()
    };
    let sorts = "ccall aten::sort 0..5ms\n ccall aten::sort 5ms..10ms";
    assert!(first(sorts).contains("computes on the CPU"), "{}", first(sorts));
    let launches = "ccall aten::sort 0..10ms\n api cudaLaunchKernel 9ms..9.01ms\n kernel s 9.1ms..9.2ms";
    assert!(first(launches).contains("in most steps"), "{}", first(launches));
    // In one of six steps: what that one did.
    let mut rare = String::from("track main\n stream 7\n");
    for (step, us) in [20, 20, 20, 18_000, 20, 20].into_iter().enumerate() {
        let at = step * 20_000;
        rare += &format!("step r {at}us..{}us\n ccall aten::sort {at}us..{}us\n", at + 20_000, at + us);
        rare += &format!(
            "api cudaLaunchKernel {}us..{}us\n kernel k {}us..{}us\n",
            at + 18_500,
            at + 18_510,
            at + 18_600,
            at + 18_700
        );
    }
    let rare = found(&HotLine, &rare);
    assert!(rare[0].actions[0].contains("allocates memory, loads code"), "{:?}", rare[0]);
}

/// Every layer has a `forward`: those of one file are not one function.
#[test]
fn recorded_calls_of_one_name_are_told_apart_by_where_they_are_defined() {
    let found = found(
        &HotLine,
        "
        track main
        repeat 10 every 50ms
          step request 0..40ms
          call forward@model.py:3 0..40ms
          call forward@model.py:44 0..15ms
          call forward@model.py:60 15ms..30ms
        end",
    );
    assert_eq!(found[0].title, "forward takes 38 % of the step (model.py:44)");
    assert_eq!(found.len(), 3);
}

#[test]
fn silent_when_nothing_stands_out_and_when_the_step_only_waits() {
    silent(
        &HotLine,
        "
        track main
        repeat 30 every 20ms
          step request 0..20ms
          sample 2ms active gil serve>a:1
          sample 4ms active gil serve>b:1
          sample 6ms active gil serve>c:1
          sample 8ms active gil serve>d:1
          sample 10ms active gil serve>e:1
          sample 12ms active gil serve>f:1
          sample 14ms active gil serve>g:1
          sample 16ms active gil serve>h:1
          sample 18ms active gil serve>i:1
          sample 18.5ms active gil serve>j:1
          sample 19ms active gil serve>k:1
        end",
    );
    silent(
        &HotLine,
        "
        track main
        step request 0..1s
        samples 0..1s every 10ms serve>get:5",
    );
}

#[test]
fn only_functions_of_the_program_are_advised_to_be_kept() {
    let place = |function: &str, file: &str| Place {
        function: Some(function.into()),
        file: Some(file.into()).filter(|file: &String| !file.is_empty()),
        ..Place::default()
    };
    assert!(could_be_kept(&place("Vocabulary.build", "/srv/app.py")));
    for (function, file) in [
        ("Block.forward", "/srv/model.py"),
        ("<module>", "/srv/app.py"),
        ("aten::linear", ""),
        ("dumps", "/usr/lib/python3.12/json/__init__.py"),
    ] {
        assert!(!could_be_kept(&place(function, file)), "{function}");
    }
}

#[test]
fn abstains_without_enough_samples() {
    abstains(&HotLine, "track main\n step request 0..1s", "stacks not sampled");
    abstains(&HotLine, "track main\n step request 0..1s\n sample 5ms active gil f:1", "only 1");
}

const STEP: &str = "track main\n repeat 40 every 50ms\n step r 0..40ms\n";

/// What a line spends its time in is said, with its library.
#[test]
fn the_native_function_is_named() {
    let text = format!(
        "{STEP} samples 0..30ms every 2ms active serve:4>pack:9>zlib_compress@/p/zlib.cpython-312-x86_64-linux-gnu.so>deflate@/lib/libz.so.1\n\
         samples 30ms..40ms every 2ms active gil serve:4>reply:2\n end"
    );
    let said = &found(&HotLine, &text)[0];
    assert_eq!(said.place.function.as_deref(), Some("pack"));
    let native = "native function: libz: deflate (100 % of these samples)";
    assert!(said.evidence.iter().any(|one| one.text == native), "{said:?}");
    assert!(said.actions[0].contains("It runs libz: deflate."), "{said:?}");
}

/// Native code that keeps the GIL is not a Python loop to be vectorised; the interpreter's own functions are.
#[test]
fn native_code_with_the_gil_is_not_told_from_python_by_the_gil_alone() {
    let of = |library: &str| {
        let text = format!(
            "{STEP} samples 0..30ms every 2ms active gil serve:4>decode:9>scan@{library}\n\
             samples 30ms..40ms every 2ms active gil serve:4>reply:2\n end"
        );
        found(&HotLine, &text)[0].actions[0].clone()
    };
    assert!(of("/p/_json.cpython-312-x86_64-linux-gnu.so").contains("its time is in _json: scan"));
    assert!(of("/usr/lib/libpython3.12.so.1.0").starts_with("Vectorise decode"));
}

/// A function that makes a number of each element is a loop to be vectorised, whether samples or calls show its time.
#[test]
fn element_reads_are_counted_and_vectorised() {
    let items: String =
        (0..64).map(|at| format!("ccall torch.Tensor.item {}us..{}us\n", 1000 + 100 * at, 1080 + 100 * at)).collect();
    let samples = "samples 0..30ms every 2ms active gil serve@app.py:4>decode@app.py:9\n samples 30ms..40ms every 2ms active gil serve@app.py:4>reply@app.py:2\n";
    let recorded = format!("{STEP} {samples} call decode@app.py:9 0..30ms\n {items} end");
    let of = |text: &str| {
        found(&HotLine, text).remove(0).actions.iter().map(|one| one.text().to_owned()).collect::<Vec<_>>()
    };
    assert!(of(&recorded)[0].starts_with("Vectorise decode: 64 Tensor.item() calls per step."), "{:?}", of(&recorded));
    assert!(of(&recorded).iter().all(|action| !action.contains("functools")));
    // Without samples, too: then the method itself leads.
    let by_calls = recorded.replace(samples, "");
    assert!(of(&by_calls)[0].contains("64 Tensor.item() calls per step."), "{:?}", of(&by_calls));
    // Its callers do not make them, and seven are no loop.
    let other = recorded
        .replace("call decode@app.py:9 0..30ms", "call decode@app.py:9 0..30ms\n call reply@app.py:2 900us..30ms");
    assert!(of(&other)[0].starts_with("Vectorise decode: replace Python loops"));
    let few: String = items.split_inclusive('\n').take(7).collect();
    assert!(of(&recorded.replace(&items, &few))[0].starts_with("Vectorise decode: replace Python loops"));
}

/// The second look has other inputs in each turn: what it computes cannot be kept.
#[test]
fn caching_is_advised_only_where_inputs_do_not_differ() {
    let turns = |inputs: [u32; 2]| {
        let op = |turn: usize| {
            format!(
                "op aten::exp {}ms..{}ms args {{\"in\":[{}],\"out\":[{}],\"device\":\"cpu\",\"at\":\"app.py:9~decode\",\"turn\":[0,{turn}]}}\n",
                3000 + 50 * turn,
                3001 + 50 * turn,
                inputs[turn],
                90 + turn
            )
        };
        format!(
            "{STEP} samples 0..30ms every 2ms active gil serve@app.py:4>decode@app.py:9\n samples 30ms..40ms every 2ms active gil serve@app.py:4>reply@app.py:2\n end\n step r 3s..3.04s\n step r 3.05s..3.09s\n {}{}",
            op(0),
            op(1)
        )
    };
    let kept = |text: &str| {
        let actions = found(&HotLine, text).remove(0).actions;
        let at = actions.iter().position(|action| action.contains("functools")).unwrap();
        (at, actions[at].applies())
    };
    // First where the inputs are the same, and not at all where they differ.
    assert_eq!([[1, 1], [1, 2]].map(|inputs| kept(&turns(inputs))), [(0, 1.0), (1, 0.0)]);
    let unknown = format!(
        "{STEP} samples 0..30ms every 2ms active gil serve@app.py:4>decode@app.py:9\n samples 30ms..40ms every 2ms active gil serve@app.py:4>reply@app.py:2\n end"
    );
    assert_eq!(kept(&unknown), (1, 0.5));
}

/// A function that only calls what takes the time has no loops to vectorise: what it calls is named.
#[test]
fn vectorising_is_advised_where_the_time_is_in_its_own_lines() {
    let of = |above: &str| {
        let text = format!(
            "{STEP} samples 0..30ms every 2ms active gil serve@app.py:4>decode@app.py:9{above}\n \
             samples 30ms..40ms every 2ms active gil serve@app.py:4>reply@app.py:2\n end"
        );
        found(&HotLine, &text).remove(0).actions
    };
    let own = of("");
    assert!(own[0].starts_with("Vectorise decode") && own[0].applies() == 1.0, "{own:?}");
    assert_eq!(of("><listcomp>@app.py:10")[0], own[0]);
    let library = "/usr/lib/python3.12/site-packages/shop";
    let called = of(&format!(">predict@{library}/tree.py:7>walk@{library}/tree.py:30"));
    let first = "Call predict (tree.py) less often, or with more data per call: 100 % of this time is in it.";
    assert!(called[0] == first && called[0].applies() == 0.5, "{called:?}");
    assert_eq!(called[1].fails(), Some("100 % of its time is in what it calls"));
}
