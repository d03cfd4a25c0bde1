//! The reports with verdicts, Markdown and analysis JSON, as they look for a service with a problem, a recording that is not
//! well, one without steps and one with nothing in it; and with names that try to break out of both.

mod analysis_json;
mod asked;
mod comparison;
mod markdown;
mod timelines;

use crate::snapshot;
use timeline::Timeline;

/// Both reports of a timeline.
fn reports(timeline: &Timeline) -> (String, String) {
    let metrics = analysis::measure(timeline);
    let diagnosis = diagnosis::diagnose(timeline, &diagnosis::Options::default());
    let (mut markdown, mut json) = (Vec::new(), Vec::new());
    report::reports::markdown::write(timeline, &metrics, &diagnosis, &mut markdown).unwrap();
    report::reports::analysis_json::write(timeline, &metrics, &diagnosis, &mut json).unwrap();
    (String::from_utf8(markdown).unwrap(), String::from_utf8(json).unwrap())
}

#[test]
fn the_reports_look_as_they_did() {
    for (name, timeline) in timelines::all().iter().filter(|(name, _)| !matches!(*name, "hostile" | "gpu")) {
        let (markdown, json) = reports(timeline);
        for (file, text) in [(format!("{name}.md"), markdown), (format!("{name}.json"), json)] {
            snapshot::same(&format!("verdicts/snapshots/{file}"), &text);
        }
    }
}

#[test]
fn a_model_on_the_cpu_has_its_operators_and_layers_in_the_terminal() {
    let all = timelines::all();
    let timeline = &all.iter().find(|(name, _)| *name == "encoder").unwrap().1;
    let metrics = analysis::measure(timeline);
    let diagnosis = diagnosis::diagnose(timeline, &diagnosis::Options::default());
    let mut text = Vec::new();
    let style = report::Style { colour: false, unicode: true, width: 110 };
    report::reports::text::write(timeline, &metrics, &diagnosis, 12, &style, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for said in [
        "Operators on the CPU  mean of 2 steps with recorded operators, 70 % of the median step",
        "50 %   6.00 ms      2      6.3  addmm [192] [768, 64] [64, 192] float32  layers.*.qkv",
        "Layers by own CPU time  mean of 2 calls of the model (1 excluded: the first, or with operators recorded)",
        "27 %  3.00 ms  3.00 ms      1  layers.0.qkv",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn writing_to_a_full_disk_is_an_error_and_nothing_worse() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let timeline = timelines::parse(timelines::SERVICE);
    let metrics = analysis::measure(&timeline);
    let diagnosis = diagnosis::diagnose(&timeline, &diagnosis::Options::default());
    for room in [0, 100, 1000, 4000] {
        let said = report::reports::markdown::write(&timeline, &metrics, &diagnosis, &mut Full(room)).unwrap_err();
        assert_eq!(said.kind(), std::io::ErrorKind::StorageFull);
        let said = report::reports::analysis_json::write(&timeline, &metrics, &diagnosis, &mut Full(room)).unwrap_err();
        assert_eq!(said.kind(), std::io::ErrorKind::StorageFull);
    }
}
