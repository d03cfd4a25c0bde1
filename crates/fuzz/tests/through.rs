//! What is done with a file that opens: everything that a person could ask for, with what must hold whatever was in it.

use diagnosis::compare::{self, Side};
use diagnosis::named::{METRICS, Named};
use diagnosis::{Options, diagnose};
use fuzz::Random;
use report::Style;
use report::exports::collapsed;
use report::reports::{analysis_json, html, markdown, text};
use serde_json::Value;
use std::io;
use std::path::Path;
use timeline::Timeline;

const CHANGES: [&str; 6] = [
    "remove sync-api",
    "scale kernel:* 0.5",
    "pin copies; graph steps",
    "remove copy:*",
    "scale host:* 0; scale api:cuda* 0.1",
    "graph steps",
];

/// Rows in each table of the summary, as the command has it by default.
const ROWS: usize = 12;

/// Opens what is there and goes all the way; a refusal is one sentence.
pub fn open(random: &mut Random, path: &Path) {
    match timeline::open(path) {
        Ok(timeline) => whole(random, timeline, path),
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty() && said.lines().count() == 1, "{said}");
        }
    }
}

fn whole(random: &mut Random, timeline: Timeline, path: &Path) {
    let (timeline, metrics) = (&timeline, &analysis::measure(&timeline));
    let diagnosis = &diagnose(timeline, &Options::default());
    let written = |write: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let mut out = Vec::new();
        write(&mut out).expect("written into memory");
        String::from_utf8(out).expect("UTF-8")
    };
    let told = written(&|out| text::write(timeline, metrics, diagnosis, ROWS, &Style::default(), out));
    assert!(told.lines().count() > 1 && !told.contains("NaN"), "{told}");
    let json = written(&|out| analysis_json::write(timeline, metrics, diagnosis, out));
    numbers(&serde_json::from_str(&json).expect("JSON"));
    match random.below(4) {
        0 => assert!(written(&|out| html::write(timeline, metrics, diagnosis, out)).contains("</html>")),
        1 => assert!(written(&|out| markdown::write(timeline, metrics, diagnosis, out)).lines().count() > 1),
        2 => exports(random, timeline, path),
        _ => {
            let side = || Side { timeline, metrics, diagnosis };
            let _ = compare::compare(side(), side());
            let named = Named::new(timeline, metrics, diagnosis.figures());
            let known = (0..METRICS.len()).filter_map(|metric| named.get(metric).as_ref().ok());
            known.for_each(|measured| assert!(measured.value.is_finite()));
            let changes = replay::parse(random.pick(&CHANGES)).expect("a good expression");
            if let Ok(answer) = replay::replay(timeline, &diagnosis.steps, &changes) {
                assert!(answer.check.off.is_finite(), "{:?}", answer.check);
            }
        }
    }
}

/// What a program may rely on in the analysis.
fn numbers(analysis: &Value) {
    let list = |key: &str| analysis[key].as_array().cloned().unwrap_or_default();
    let percent = |value: &Value| value.as_f64().filter(|value| (-0.01..=100.01).contains(value));
    let parts: Option<Vec<f64>> = list("timeline_breakdown").iter().map(|part| percent(&part["percentage"])).collect();
    let parts = parts.expect("percentages");
    let sum: f64 = parts.iter().sum();
    assert!(parts.is_empty() || sum < 0.001 || (sum - 100.0).abs() < 0.5, "{sum} % of the time");
    for finding in list("findings") {
        let gain = &finding["gain_percent"];
        if !gain.is_null() {
            let [low, mid, high] = ["low", "mid", "high"].map(|key| percent(&gain[key]).expect("a percentage"));
            assert!(low <= mid && mid <= high, "{finding}");
        }
        assert!(percent(&finding["confidence"]).is_some_and(|value| value <= 1.0), "{finding}");
        assert!(finding["actions"].as_array().is_some_and(|actions| !actions.is_empty()), "{finding}");
    }
    assert!(analysis["bottleneck"]["type"].is_string() && analysis["summary"].is_object());
}

fn exports(random: &mut Random, timeline: &Timeline, path: &Path) {
    let mut out = Vec::new();
    match random.below(6) {
        0 => {
            report::exports::chrome::write(timeline, &mut out).expect("written");
            serde_json::from_slice::<Value>(&out).expect("JSON");
        }
        1 => report::exports::perfetto::write(timeline, &mut out).expect("written"),
        2 => {
            report::exports::speedscope::write(timeline, &mut out).expect("written");
            serde_json::from_slice::<Value>(&out).expect("JSON");
        }
        3 => collapsed::write(timeline, collapsed::Options { idle: true, lines: true }, &mut out).expect("written"),
        4 => report::exports::pprof::write(timeline, &mut out).expect("written"),
        _ => {
            report::exports::json::write(timeline, &mut out).expect("written");
            let again = path.with_extension("again.json");
            std::fs::write(&again, &out).expect("written");
            let again = timeline::open(&again).expect("our own file opens");
            // Beyond a century the reader does not believe it.
            let believed = timeline.end - timeline.start < 1 << 61;
            assert!(!believed || again.slices.len() == timeline.slices.len(), "{} slices again", again.slices.len());
        }
    }
}
