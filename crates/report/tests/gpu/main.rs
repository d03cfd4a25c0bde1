//! The reports of timelines with devices: how each looks for the same small timeline, that links lead from calls to their work,
//! and that a page does not grow with the events. A timeline without devices is told of none.

mod exports;
mod timelines;

use analysis::{Diagnosis, Metrics};
use std::path::PathBuf;
use timeline::Timeline;

fn analysed(timeline: &Timeline) -> (Metrics, Diagnosis) {
    (analysis::measure(timeline), analysis::diagnose(timeline, &analysis::Options::default()))
}

fn page(timeline: &Timeline) -> String {
    let (metrics, diagnosis) = analysed(timeline);
    let mut bytes = Vec::new();
    report::html::write(timeline, &metrics, &diagnosis, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// What the page is given, without how it is packed.
fn payload(timeline: &Timeline) -> serde_json::Value {
    let page = page(timeline);
    let (_, rest) = page.split_once(r#"id="payload">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[track_caller]
fn same(file: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/snapshots").join(file);
    if std::env::var_os("WRITE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = before.lines().zip(text.lines()).position(|(before, now)| before != now);
    let line = differs.unwrap_or(before.lines().count().min(text.lines().count()));
    assert!(
        before == text,
        "{file} has changed from line {}:\n- {}\n+ {}\nif that is right: WRITE_SNAPSHOTS=1 cargo test -p inferscope-report",
        line + 1,
        before.lines().nth(line).unwrap_or("(the end)"),
        text.lines().nth(line).unwrap_or("(the end)"),
    );
}

#[test]
fn the_reports_look_as_they_did() {
    let timeline = timelines::small();
    let (metrics, diagnosis) = analysed(&timeline);
    let style = report::Style::default();
    let (mut text, mut markdown, mut json) = (Vec::new(), Vec::new(), Vec::new());
    report::text::write(&timeline, &metrics, &diagnosis, 10, &style, &mut text).unwrap();
    report::markdown::write(&timeline, &metrics, &diagnosis, &mut markdown).unwrap();
    report::analysis_json::write(&timeline, &metrics, &diagnosis, &mut json).unwrap();
    for (file, bytes) in [("small.txt", text), ("small.md", markdown), ("small.json", json)] {
        same(file, &String::from_utf8(bytes).unwrap());
    }
    same("small.page.json", &format!("{:#}\n", payload(&timeline)));
}

#[test]
fn ascii_is_ascii_and_narrow_is_narrow() {
    let timeline = timelines::small();
    let (metrics, diagnosis) = analysed(&timeline);
    let style = report::Style { colour: false, unicode: false, width: 80 };
    let mut text = Vec::new();
    report::text::write(&timeline, &metrics, &diagnosis, 10, &style, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.is_ascii(), "{text}");
    let widest = text.lines().map(str::len).max().unwrap();
    assert!(widest <= 100, "{widest}:\n{text}");
}

#[test]
fn a_timeline_without_devices_is_told_of_none() {
    let timeline = Timeline::from_text("track main\n repeat 4 every 10ms\n step request 0..8ms\n end").unwrap();
    let page = payload(&timeline);
    assert!(page["gpu"].is_null() && page["devices"].as_array().unwrap().is_empty());
    let (metrics, diagnosis) = analysed(&timeline);
    let mut text = Vec::new();
    report::text::write(&timeline, &metrics, &diagnosis, 10, &report::Style::default(), &mut text).unwrap();
    report::markdown::write(&timeline, &metrics, &diagnosis, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap().to_lowercase();
    assert!(!text.contains("gpu") && !text.contains("kernel"), "{text}");
}

/// tests/browser does the same with a million.
#[test]
fn a_page_does_not_grow_with_the_events() {
    let [few, many] = [300, 1200].map(|steps| page(&timelines::model(steps, 24)).len());
    assert!(many < 2 * few && many < 4_000_000, "{few} and {many} bytes");
}
