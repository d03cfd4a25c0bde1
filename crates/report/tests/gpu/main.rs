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

/// The sentence, the table and the numbers are in every report.
#[test]
fn slow_steps_are_explained_everywhere() {
    let timeline = timelines::tail();
    let (metrics, diagnosis) = analysed(&timeline);
    let (mut text, mut markdown, mut json) = (Vec::new(), Vec::new(), Vec::new());
    report::text::write(
        &timeline,
        &metrics,
        &diagnosis,
        10,
        &report::Style { width: 200, ..Default::default() },
        &mut text,
    )
    .unwrap();
    report::markdown::write(&timeline, &metrics, &diagnosis, &mut markdown).unwrap();
    report::analysis_json::write(&timeline, &metrics, &diagnosis, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let page = payload(&timeline);
    let said = "The slow steps (2 of 60, +12.0 ms on 8.00 ms) spent 12.0 ms more in garbage collection at serve.py:41.";
    assert!(String::from_utf8(text).unwrap().contains(said));
    let markdown = String::from_utf8(markdown).unwrap();
    assert!(markdown.contains(&said.replace("serve.py:41", "`serve.py:41`")), "{markdown}");
    assert!(
        markdown.contains("| +12.0 ms | 12.0 ms | 0 ns | garbage collection | `build` `serve.py:41` |"),
        "{markdown}"
    );
    assert_eq!((&json["slow_steps"]["sentence"], &page["slow"]["sentence"]), (&said.into(), &said.into()));
    assert_eq!(json["slow_steps"]["differences"][0]["more_us"], 12_000.0);
    assert_eq!((&json["slow_steps"]["count"], &page["slow"]["limit"]), (&2.into(), &20_000_000.into()));
    // The picture of the median step is the same in both, and the whole of it.
    assert_eq!(json["waterfall"]["lanes"][0]["totals"][0]["category"], "host_python");
    assert_eq!(
        (&json["waterfall"]["lanes"][0]["totals"][0]["percentage"], &page["picture"]["dur"]),
        (&100.0.into(), &8_000_000.into())
    );
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

/// Two processes that share the numbers of devices and streams and the correlations of calls.
const RANKS: &str = "
    process rank0.py python 3.12
    device 0 NVIDIA_A
    device 1 NVIDIA_B
    track main
    repeat 3 every 10ms
      step train 0..8ms
      api cudaLaunchKernel 1ms..1010us
      stream 7 device 0
      kernel gemm 2ms..4ms
      api cudaLaunchKernel 1100us..1110us
      stream 7 device 1 context 2
      kernel gemm 3ms..7ms
      copy p2p 3ms..4ms 1000000
    end
    process rank1.py python 3.12
    device 0 NVIDIA_B
    track main
    repeat 3 every 10ms
      step train 0..8ms
      api cudaLaunchKernel 1ms..1010us
      stream 7
      kernel gemm 2ms..3ms
    end
    api cudaLaunchKernel 29ms..29010us corr 1
    kernel gemm 29100us..29200us";

#[test]
fn every_device_of_every_process_is_told_of() {
    let timeline = Timeline::from_text(RANKS).unwrap();
    let page = payload(&timeline);
    let titles = |list: &str| page[list].as_array().unwrap().iter().map(|one| one["title"].clone()).collect::<Vec<_>>();
    let groups = titles("groups");
    for title in ["GPU 0 · NVIDIA A of rank0.py", "GPU 1 · NVIDIA B of rank0.py", "GPU 0 · NVIDIA B of rank1.py"] {
        assert!(groups.iter().any(|group| group.as_str().unwrap().starts_with(title)), "{title}: {groups:?}");
    }
    assert_eq!(page["devices"].as_array().unwrap().len(), 3);
    let (metrics, diagnosis) = analysed(&timeline);
    let mut json = Vec::new();
    report::analysis_json::write(&timeline, &metrics, &diagnosis, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let busy = |place: usize| json["gpu"][place]["busy_percent_of_step"].as_f64().unwrap();
    assert_eq!([busy(0), busy(1), busy(2)], [25.0, 50.0, 12.5]);
    // Work is linked inside its process: the same correlation elsewhere is another call.
    let mut chrome = Vec::new();
    report::chrome::write(&timeline, &mut chrome).unwrap();
    let chrome: serde_json::Value = serde_json::from_slice(&chrome).unwrap();
    let events = chrome["traceEvents"].as_array().unwrap();
    let begins: Vec<_> = events.iter().filter(|event| event["ph"] == "s").map(|event| event["id"].as_u64()).collect();
    let mut once = begins.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), begins.len(), "{begins:?}");
}
