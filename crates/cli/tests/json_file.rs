//! A file of InferScope JSON, or of another profiler, is a trace like any other to `analyze` and `export`.

use crate::support::Place;

#[test]
fn an_export_can_be_analyzed_and_exported_again() {
    let place = Place::with_trace("json-file");
    place.run(["export", "trace", "--format", "json", "--output", "trace.json"]).fine();
    let told = place.run(["analyze", "trace.json"]).fine();
    for text in ["python serve.py", "request", "serve.py:14"] {
        assert!(told.out.contains(text), "{text}: {}", told.out);
    }
    place.run(["export", "trace.json", "--format", "json", "--output", "again.json"]).fine();
    let read = |name: &str| std::fs::read_to_string(place.at(name)).unwrap();
    assert_eq!(read("trace.json"), read("again.json"));
}

#[test]
fn a_cut_file_is_shown_and_said_and_another_format_refused() {
    let place = Place::with_trace("json-cut");
    place.run(["export", "trace", "--format", "json", "--output", "trace.json"]).fine();
    let whole = std::fs::read(place.at("trace.json")).unwrap();
    place.write("cut.json", &whole[..whole.len() / 2]);
    let told = place.run(["analyze", "cut.json"]).fine();
    assert!(told.out.contains("The file ends too early"), "{}", told.out);
    place.write("other.json", r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[]}"#);
    let error = place.run(["analyze", "other.json"]).refused(5);
    assert!(error.contains("torch.profiler") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_file_of_torch_profiler_is_analysed_and_so_is_a_folder_of_them() {
    let place = Place::with_trace("json-torch");
    let event = |category: &str, name: &str, at: u32, dur: u32, args: &str| {
        format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":7,"tid":7,"ts":{at},"dur":{dur},"args":{args}}}"#
        )
    };
    let step = |number: u32| {
        let at = 1000 * number;
        [
            event("user_annotation", &format!("ProfilerStep#{number}"), at, 900, "{}"),
            event("cuda_runtime", "cudaLaunchKernel", at + 500, 10, &format!(r#"{{"correlation":{number}}}"#)),
            event("kernel", "gemm", at + 520, 90, &format!(r#"{{"device":0,"stream":7,"correlation":{number}}}"#)),
        ]
    };
    let events: Vec<String> = (1..9).flat_map(step).collect();
    place.write("torch.json", format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(",")));
    let told = place.run(["analyze", "torch.json"]).fine();
    // 90 of 900 microseconds.
    for text in ["torch.profiler: torch.json", "ProfilerStep", "10.0 %", "gemm"] {
        assert!(told.out.contains(text), "{text}: {}", told.out);
    }
    std::fs::create_dir(place.at("ranks")).unwrap();
    std::fs::rename(place.at("torch.json"), place.at("ranks/rank0.json")).unwrap();
    let told = place.run(["analyze", "ranks"]).fine();
    assert!(told.out.contains("torch.profiler: 1 files of ranks") && told.out.contains("gemm"), "{}", told.out);
}
