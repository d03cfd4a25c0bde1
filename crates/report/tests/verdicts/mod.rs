//! The reports with verdicts, Markdown and analysis JSON, as they look for a service with a problem, a recording that is not
//! well, one without steps and one with nothing in it; and with names that try to break out of both.

mod analysis_json;
mod asked;
mod comparison;
mod markdown;
mod timelines;

use std::path::PathBuf;
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
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts/snapshots");
    for (name, timeline) in timelines::all().iter().filter(|(name, _)| !matches!(*name, "hostile" | "gpu")) {
        let (markdown, json) = reports(timeline);
        for (file, text) in [(format!("{name}.md"), markdown), (format!("{name}.json"), json)] {
            let path = folder.join(&file);
            if std::env::var_os("WRITE_SNAPSHOTS").is_some() {
                std::fs::write(&path, &text).unwrap();
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
