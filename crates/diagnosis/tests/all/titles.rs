//! What is said of every recording in tests/traces, held by a file that reads like a report (tests/titles.txt), and to how titles are
//! written: one clause, what, how much and where. To write the file again: `WRITE_SNAPSHOTS=1 cargo test -p inferscope-diagnosis --test all titles`.

use diagnosis::rules::RULES;
use diagnosis::{Diagnosis, Options, diagnose};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn traces() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let folders = |under: &Path| -> Vec<PathBuf> {
        let all = std::fs::read_dir(under).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.join("manifest.json").exists()).collect()
    };
    let mut all: Vec<PathBuf> = folders(&root).into_iter().chain(folders(&root.join("suite"))).collect();
    all.sort();
    let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
    all.iter().map(|path| (name(path), path.clone())).collect()
}

fn said(name: &str, diagnosis: &Diagnosis) -> String {
    let mut text = format!("{name}\n");
    for sentence in &diagnosis.answer {
        writeln!(text, "  {sentence}").unwrap();
    }
    for finding in &diagnosis.findings {
        let action = finding.actions.first().map_or("", |action| action.text());
        writeln!(text, "  {} | {} | {action}", finding.code, finding.title).unwrap();
    }
    text + "\n"
}

/// Longer ones do not fit a line of a terminal with their bullet, nor a heading.
const LONGEST: usize = 110;

fn hold(title: &str) {
    assert!(title.chars().count() <= LONGEST, "{} letters: {title}", title.chars().count());
    assert!(!title.ends_with('.') && !title.is_empty(), "{title}");
}

fn plain(text: &str) {
    let banned = include_str!("../plain_words.txt").lines().filter(|line| !line.starts_with('#'));
    for phrase in banned {
        assert!(!text.contains(phrase), "\"{phrase}\" in: {text}");
    }
}

#[test]
fn every_recording_is_said_in_plain_words() {
    let mut all = String::new();
    for (name, path) in traces() {
        let timeline = timeline::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let diagnosis = diagnose(&timeline, &Options::default());
        for finding in &diagnosis.findings {
            hold(&finding.title);
            finding.actions.iter().for_each(|action| plain(action.text()));
            [&finding.title, &finding.verify].into_iter().for_each(|text| plain(text));
            finding.evidence.iter().for_each(|one| plain(&one.text));
        }
        diagnosis.answer.iter().for_each(|sentence| plain(sentence));
        diagnosis.health.iter().for_each(|line| plain(&line.text));
        diagnosis.abstentions.iter().for_each(|one| plain(&one.reason));
        diagnosis
            .slow_steps
            .iter()
            .for_each(|slow| plain(&diagnosis::wording::slow_steps::sentence(&diagnosis.steps, slow)));
        all += &said(&name, &diagnosis);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/titles.txt");
    if std::env::var_os("WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = before.lines().zip(all.lines()).find(|(before, now)| before != now);
    assert!(
        before == all,
        "tests/titles.txt has changed: {differs:?}\nif that is right: WRITE_SNAPSHOTS=1 cargo test -p inferscope-diagnosis --test all titles"
    );
}

/// The examples of the documentation are titles, too.
#[test]
fn the_examples_of_the_documentation_are_plain_titles() {
    for rule in RULES {
        hold(rule.docs().example);
        for text in [rule.docs().example, rule.docs().summary, rule.docs().why, rule.docs().needs] {
            plain(text);
        }
    }
}
