//! A file of InferScope JSON is a trace like any other to `analyze` and `export`.

mod support;

use support::Place;

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
