//! Reports of a snapshot of memory: what is held is said, and nothing of times that nobody measured; two are compared by line, as are the lines of two recordings.

use analysis::measure;
use diagnosis::compare::{Side, compare, memory::compare_memory};
use diagnosis::{Options, diagnose};
use report::Style;
use report::comparison::{self, Titles, memory};
use report::reports::{analysis_json, html, markdown, text};
use serde_json::Value;
use timeline::Timeline;

const WEIGHTS: &str = "segment alloc 1us 64M at 1024M\n block alloc 1us 64M at 1024M main>load@model.py:3\n";
const STEPS: &str =
    "repeat 20 every 1ms\n block alloc 2us 8M at 2048M main>forward@model.py:9\n block free 9us 8M at 2048M\n";
const STATE: &str =
    "reserved 64M at 1024M\n holds 64M active main>load@model.py:3\n reserved 20M at 2048M\n holds 20M free";

fn snapshot(text: &str) -> Timeline {
    let mut timeline = Timeline::from_text(text).unwrap();
    timeline.info.recorded_by = timeline::RecordedBy::Snapshot;
    timeline.info.command = "PyTorch memory snapshot: a.pickle".into();
    timeline
}

fn written(timeline: &Timeline) -> [String; 4] {
    let (metrics, diagnosis) = (measure(timeline), diagnose(timeline, &Options::default()));
    let mut out = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    text::write(timeline, &metrics, &diagnosis, 12, &Style::default(), &mut out[0]).unwrap();
    markdown::write(timeline, &metrics, &diagnosis, &mut out[1]).unwrap();
    analysis_json::write(timeline, &metrics, &diagnosis, &mut out[2]).unwrap();
    html::write(timeline, &metrics, &diagnosis, &mut out[3]).unwrap();
    out.map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn what_is_held_is_said_and_nothing_of_time() {
    let timeline = snapshot(&format!("{WEIGHTS} segment alloc 1us 20M at 2048M\n{STEPS} end\n{STATE}"));
    let [text, markdown, json, page] = written(&timeline);
    for said in [&text, &markdown] {
        assert!(said.contains("at the end: 64.0 MiB in use, 20.0 MiB free, 84.0 MiB reserved in 2 segments"), "{said}");
        assert!(said.contains("peak: 72.0 MiB in use") && said.contains("model.py:3"), "{said}");
        assert!(
            said.contains("No problem found") && !said.contains("0 ns") && !said.contains("no stack samples"),
            "{said}"
        );
    }
    assert!(page.contains("</html>"));
    let json: Value = serde_json::from_str(&json).unwrap();
    let memory = &json["memory"][0];
    assert_eq!(
        (memory["peak_in_use_bytes"].as_u64(), memory["in_use_bytes"].as_u64()),
        (Some(72 << 20), Some(64 << 20))
    );
    // Allocated in the recording and kept: without steps nobody knows that it is weights.
    assert_eq!(memory["peak_by_use"][0]["use"], "cache");
    assert_eq!(memory["peak_by_place"][0]["line"], 3);
    assert_eq!(memory["simulated"]["unchanged_peak_bytes"], memory["peak_reserved_bytes"]);
}

#[test]
fn a_snapshot_without_anything_says_so() {
    let [text, markdown, json, _] = written(&snapshot(""));
    assert!(
        text.contains("The snapshot holds no memory.") && markdown.contains("The snapshot holds no memory."),
        "{text}"
    );
    assert!(serde_json::from_str::<Value>(&json).unwrap()["memory"].is_null());
}

#[test]
fn two_are_compared_by_line() {
    let kept = "block alloc 500us 2M at 3 each main>handle@serve.py:31\n";
    let a = snapshot(&format!("{WEIGHTS}{STEPS} end"));
    let b = snapshot(&format!("{WEIGHTS}{STEPS}{kept} end"));
    let (metrics, diagnoses) = ([measure(&a), measure(&b)], [&a, &b].map(|one| diagnose(one, &Options::default())));
    let side = |timeline, at: usize| Side { timeline, metrics: &metrics[at], diagnosis: &diagnoses[at] };
    let comparison = compare_memory(side(&a, 0), side(&b, 1));
    assert_eq!(memory::answer(&comparison), "B has 40.0 MiB more in use than A; handle (serve.py:31) holds +40.0 MiB.");
    let titles = Titles { a: "a.pickle", b: "b.pickle" };
    let mut out = [Vec::new(), Vec::new(), Vec::new()];
    memory::text(&comparison, &titles, 12, &Style::default(), &mut out[0]).unwrap();
    memory::markdown(&comparison, &titles, 12, &mut out[1]).unwrap();
    memory::json(&comparison, &titles, &mut out[2]).unwrap();
    let [text, markdown, json] = out.map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(text.contains("0 to 20  handle (serve.py:31)") && markdown.contains("| 0 to 20 |"), "{text}\n{markdown}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["places"][0]["bytes"][1].as_u64(), json["places"][0]["blocks"][0].as_u64()),
        (Some(40 << 20), Some(0))
    );
}

/// Recordings have processes: what is compared has the same name in both, whatever its pid. Without blocks in both nothing is.
#[test]
fn recordings_are_compared_by_line_at_the_peak() {
    const RANK: &str = "process train.py rank 0\n track main\n repeat 20 every 1ms\n step request 0..900us\n";
    const OTHER: &str = "process train.py rank 1\n track main\n block alloc 1us 9M at 1 main>load@model.py:3";
    let held = |mib: u64| format!("block alloc 1us {mib}M at 1 main>cache@serve.py:31\n block free 2us {mib}M at 1\n");
    let [a, b, none] = [held(4), held(20), String::new()].map(|held| {
        let others = if held.is_empty() { "" } else { OTHER };
        Timeline::from_text(&format!("{RANK} end\n {held}\n {others}")).unwrap()
    });
    let all = [&a, &b, &none];
    let (metrics, diagnoses) = (all.map(measure), all.map(|one| diagnose(one, &Options::default())));
    let side = |at: usize| Side { timeline: all[at], metrics: &metrics[at], diagnosis: &diagnoses[at] };
    let compared = compare(side(0), side(1)).unwrap();
    let titles = Titles { a: "a", b: "b" };
    let mut out = [Vec::new(), Vec::new(), Vec::new()];
    comparison::write(&compared, &titles, &[], 12, &Style::default(), &mut out[0]).unwrap();
    comparison::markdown::write(&compared, &titles, &[], 12, &mut out[1]).unwrap();
    comparison::json::write(&compared, &titles, &[], &mut out[2]).unwrap();
    let [text, markdown, json] = out.map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(text.contains("Memory of GPU 0 of rank 0") && text.contains("Lines that hold more or less at the peak"));
    assert!(text.contains("+16.0 MiB") && text.contains("cache (serve.py:31)"), "{text}");
    assert!(markdown.contains("## Memory of GPU 0 of rank 1") && markdown.contains("+16.0 MiB"), "{markdown}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["memory"]["allocators"][0]["peak_in_use_bytes"], serde_json::json!([4 << 20, 20 << 20]));
    assert_eq!(
        (&json["memory"]["places"][0]["line"], json["memory"]["places"].as_array().unwrap().len()),
        (&31.into(), 1)
    );
    assert!(compare(side(0), side(2)).unwrap().memory.is_none());
}

/// 500 MiB of a context, 300 MiB of the program, 100 MiB of others, as the driver counts it.
const DEVICE: &str =
    "device 0 GPU memory 80G\n track main\n alloc 200ms 314572800 at 1073741824\n alloc 201ms 1024 at 64\n
    counter host gpu_memory_used_bytes 300ms=943718400 900ms=943718400\n
    counter process gpu_process_memory_bytes 300ms=838860800 900ms=838860800";

#[test]
fn every_byte_of_a_device_is_in_a_part_of_every_report() {
    let [text, markdown, json, _] = written(&Timeline::from_text(DEVICE).unwrap());
    for said in [&text, &markdown] {
        assert!(said.contains("Memory in use on GPU 0"), "{said}");
        assert!(said.contains("900 MiB at most, by 2 readings of the driver"), "{said}");
        assert!(said.contains("CUDA context and libraries") && said.contains("500 MiB"), "{said}");
        assert!(said.contains("other processes") && said.contains("allocated outside PyTorch's allocator"), "{said}");
    }
    let json: Value = serde_json::from_str(&json).unwrap();
    let one = &json["memory_attribution"][0];
    let sum: u64 = one["parts"].as_array().unwrap().iter().filter_map(|part| part["bytes"][1].as_u64()).sum();
    assert_eq!((Some(sum), one["abstained"].is_null()), (one["used_bytes"][1].as_u64(), true));
    assert_eq!((one["level"].as_str(), one["samples"].as_u64()), (Some("process"), Some(2)));
}

#[test]
fn what_is_not_attributed_is_said_with_its_reason() {
    let without = DEVICE.lines().take(4).collect::<Vec<_>>().join("\n");
    let [text, markdown, json, _] = written(&Timeline::from_text(&without).unwrap());
    for said in [&text, &markdown] {
        assert!(said.contains("not attributed: what the device has in use was not sampled"), "{said}");
    }
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["memory_attribution"][0]["abstained"].as_str().unwrap().contains("not sampled"));
    assert_eq!(json["memory_attribution"][0]["parts"].as_array().map(Vec::len), Some(0));
}

/// A recording whose small blocks were sampled: by line with an error, by layer and step exactly.
#[test]
fn sampled_blocks_are_said_with_their_error() {
    let mut text = "device 0 GPU\n sampled 512K\n track main\n step request 0..90ms\n layer decoder 1us..80ms\n
        block alloc 1us 64M at 1024M main>load@model.py:3\n"
        .to_owned();
    for at in 0..400 {
        let stack = if at % 10 == 0 { "main>cache@serve.py:7" } else { "" };
        text += &format!("block alloc {}us 64K at {at}M {stack}\n", at + 2);
    }
    let [text, markdown, json, _] = written(&Timeline::from_text(&text).unwrap());
    let json: Value = serde_json::from_str(&json).unwrap();
    let memory = &json["memory"][0];
    let holders: Vec<_> = memory["peak_by_place"].as_array().unwrap().iter().collect();
    let of = |at: usize, key: &str| holders[at][key].as_u64().unwrap();
    assert_eq!((of(0, "line"), of(0, "bytes"), of(0, "error_bytes")), (3, 64 << 20, 0));
    assert_eq!((of(1, "line"), of(1, "bytes"), of(1, "blocks")), (7, 400 * (64 << 10), 400));
    assert!((1 << 20..8 << 20).contains(&of(1, "error_bytes")), "{memory}");
    assert_eq!(memory["peak_by_layer"][0]["layer"], "decoder");
    assert_eq!(memory["stacks"]["read"], 41);
    assert_eq!(memory["stacks"]["mean_sampled_bytes"], 512 << 10);
    for said in [&text, &markdown] {
        assert!(said.contains("25.0 MiB ± ") && said.contains("serve.py:7"), "{said}");
        assert!(said.contains("at the peak, by layer") && said.contains("stacks of blocks: 41 read"), "{said}");
    }
}
