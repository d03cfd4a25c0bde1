//! The reports of timelines with devices: how each looks for the same small timeline, that links lead from calls to their work,
//! and that a page does not grow with the events. A timeline without devices is told of none.

mod exports;
mod timelines;

use crate::snapshot;
use analysis::Metrics;
use diagnosis::Diagnosis;
use timeline::Timeline;

fn analysed(timeline: &Timeline) -> (Metrics, Diagnosis) {
    (analysis::measure(timeline), diagnosis::diagnose(timeline, &diagnosis::Options::default()))
}

fn page(timeline: &Timeline) -> String {
    let (metrics, diagnosis) = analysed(timeline);
    let mut bytes = Vec::new();
    report::reports::html::write(timeline, &metrics, &diagnosis, &mut bytes).unwrap();
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
    snapshot::same(&format!("gpu/snapshots/{file}"), text);
}

#[test]
fn the_reports_look_as_they_did() {
    let timeline = timelines::small();
    let (metrics, diagnosis) = analysed(&timeline);
    let style = report::Style::default();
    let (mut text, mut markdown, mut json) = (Vec::new(), Vec::new(), Vec::new());
    report::reports::text::write(&timeline, &metrics, &diagnosis, 10, &style, &mut text).unwrap();
    report::reports::markdown::write(&timeline, &metrics, &diagnosis, &mut markdown).unwrap();
    report::reports::analysis_json::write(&timeline, &metrics, &diagnosis, &mut json).unwrap();
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
    report::reports::text::write(
        &timeline,
        &metrics,
        &diagnosis,
        10,
        &report::Style { width: 200, ..Default::default() },
        &mut text,
    )
    .unwrap();
    report::reports::markdown::write(&timeline, &metrics, &diagnosis, &mut markdown).unwrap();
    report::reports::analysis_json::write(&timeline, &metrics, &diagnosis, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let page = payload(&timeline);
    let said = "Slow steps (2 of 60, +12.0 ms on 8.00 ms) spent 12.0 ms more in garbage collection at serve.py:41.";
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
    report::reports::text::write(&timeline, &metrics, &diagnosis, 10, &style, &mut text).unwrap();
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
    report::reports::text::write(&timeline, &metrics, &diagnosis, 10, &report::Style::default(), &mut text).unwrap();
    report::reports::markdown::write(&timeline, &metrics, &diagnosis, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap().to_lowercase();
    assert!(!text.contains("gpu") && !text.contains("kernel"), "{text}");
}

/// tests/browser does the same with a million.
#[test]
fn a_page_does_not_grow_with_the_events() {
    let [few, many] = [300, 1200].map(|steps| page(&timelines::model(steps, 24)).len());
    assert!(many < 2 * few && many < 4_000_000, "{few} and {many} bytes");
}

/// Both over the whole run; tests/browser looks at what is drawn of them.
#[test]
fn a_page_of_very_many_steps_says_how_many_it_shows() {
    let page = payload(&timelines::many_steps(40_000));
    assert_eq!(
        (&page["steps"]["all"], &page["gpu"]["devices"][0]["per_step"]["all"]),
        (&40_000.into(), &40_000.into())
    );
    let health = page["health"].as_array().unwrap();
    let said = health.iter().filter(|line| line["label"] == "This page:").filter_map(|line| line["text"].as_str());
    assert_eq!(
        said.collect::<Vec<_>>(),
        ["15,000 of 40,000 steps are drawn, the longest of neighbours; every number is of all of them"]
    );
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

/// Two ranks with a device each: half of a step of 1 ms is work.
const TWO: &str = "
    process rank0.py python 3.12
    track main
    repeat 30 every 1100us
      step request 0..1ms
      api cudaLaunchKernel 10us..15us
      stream 7
      kernel gemm 20us..520us
      api cudaStreamSynchronize 30us..525us
      sync stream 30us..525us
    end
    process rank1.py python 3.12
    track main
    repeat 30 every 1100us
      step request 0..1ms
      api cudaLaunchKernel 10us..15us
      stream 7
      kernel gemm 20us..520us
      api cudaStreamSynchronize 30us..525us
      sync stream 30us..525us
    end";

/// What a device does in a step is told of the steps of its own process, in all reports.
#[test]
fn a_step_of_one_rank_is_not_shared_out_over_all_ranks() {
    let timeline = Timeline::from_text(TWO).unwrap();
    let (metrics, diagnosis) = analysed(&timeline);
    assert_eq!((diagnosis.steps.count(), diagnosis.gpu.as_ref().unwrap().devices.len()), (60, 2));
    let (mut text, mut markdown, mut json) = (Vec::new(), Vec::new(), Vec::new());
    report::reports::text::write(&timeline, &metrics, &diagnosis, 10, &report::Style::default(), &mut text).unwrap();
    report::reports::markdown::write(&timeline, &metrics, &diagnosis, &mut markdown).unwrap();
    report::reports::analysis_json::write(&timeline, &metrics, &diagnosis, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let rows = json["idle_breakdown"].as_array().unwrap();
    for (place, device) in json["gpu"].as_array().unwrap().iter().enumerate() {
        let own = || rows.iter().filter(|row| row["pid"] == device["pid"]);
        let busy = own().find(|row| row["category"] == "busy").unwrap();
        assert_eq!((&busy["duration_us"], &device["busy_us"]), (&500.0.into(), &500.0.into()));
        let all: f64 = own().filter_map(|row| row["duration_us"].as_f64()).sum();
        assert!((all - 1000.0).abs() < 1.0, "busy and idle are the step: {all}");
        let page = &payload(&timeline)["gpu"]["devices"][place]["idle"][0];
        let longest = report_time(page["ns"].as_u64().unwrap());
        for report in [&text, &markdown] {
            let report = std::str::from_utf8(report).unwrap();
            assert_eq!(report.matches(&longest).count().min(2), 2, "{longest} of both devices: {report}");
        }
    }
}

/// Below a millisecond, as reports write it.
fn report_time(ns: u64) -> String {
    format!("{:.0} µs", ns as f64 / 1e3)
}

/// Thirteen blocks launch one kernel, each as often as the others; unlike layers of each launch another.
#[test]
fn a_kernel_of_every_block_is_not_said_to_be_of_the_first() {
    let mut text = "track main\n".to_owned();
    for place in 0..3 * 13 * 3 {
        let (at, block) = (20 * place, place / 3 % 13);
        let (layer, kernel) = [("attention.qkv", "gemmSN"), ("norm", "add"), ("mlp", "add")][place % 3];
        text += &format!("layer layers.{block}.{layer} {at}us..{}us\n", at + 18);
        text += &format!("api cudaLaunchKernel {}us..{}us\n", at + 2, at + 4);
        let (stream, end) = if kernel == "add" { (8, at + 7) } else { (7, at + 45) };
        text += &format!("stream {stream}\n kernel {kernel} {}us..{end}us\n", at + 5);
    }
    let timeline = Timeline::from_text(&text).unwrap();
    let (metrics, diagnosis) = analysed(&timeline);
    let (mut said, mut markdown, mut json) = (Vec::new(), Vec::new(), Vec::new());
    let style = report::Style { width: 160, ..Default::default() };
    report::reports::text::write(&timeline, &metrics, &diagnosis, 10, &style, &mut said).unwrap();
    report::reports::markdown::write(&timeline, &metrics, &diagnosis, &mut markdown).unwrap();
    report::reports::analysis_json::write(&timeline, &metrics, &diagnosis, &mut json).unwrap();
    let (said, markdown) = (String::from_utf8(said).unwrap(), String::from_utf8(markdown).unwrap());
    assert!(said.contains("gemmSN  layers.*.attention.qkv"), "{said}");
    assert!(markdown.contains("| `layers.*.attention.qkv` |"), "{markdown}");
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let layer = |place: usize| &json["gpu_work"]["kernels"][place]["layer"];
    assert_eq!((layer(0), layer(1)), (&"layers.*.attention.qkv".into(), &serde_json::Value::Null));
    let page = payload(&timeline);
    let layer = |place: usize| &page["gpu"]["kernels"][place]["layer"];
    assert_eq!((layer(0), layer(1)), (&"layers.*.attention.qkv".into(), &"26 layers".into()));
    assert!(said.contains("add  26 layers"), "{said}");
    // The finding on it names what it can.
    let found = diagnosis.findings.iter().find(|finding| finding.code == "kernel-hotspot");
    let module = found.and_then(|finding| finding.place.module.as_deref());
    assert_eq!(module, Some("layers.*.attention.qkv"), "{:?}", diagnosis.findings);
    // Which way the kernels got the name is in every report.
    assert!(said.contains("layers.0.attention.qkv  launched inside"), "{said}");
}

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
    report::reports::analysis_json::write(&timeline, &metrics, &diagnosis, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let busy = |place: usize| json["gpu"][place]["busy_percent_of_step"].as_f64().unwrap();
    assert_eq!([busy(0), busy(1), busy(2)], [25.0, 50.0, 12.5]);
    // Work is linked inside its process: the same correlation elsewhere is another call.
    let mut chrome = Vec::new();
    report::exports::chrome::write(&timeline, &mut chrome).unwrap();
    let chrome: serde_json::Value = serde_json::from_slice(&chrome).unwrap();
    let events = chrome["traceEvents"].as_array().unwrap();
    let begins: Vec<_> = events.iter().filter(|event| event["ph"] == "s").map(|event| event["id"].as_u64()).collect();
    let mut once = begins.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), begins.len(), "{begins:?}");
}
