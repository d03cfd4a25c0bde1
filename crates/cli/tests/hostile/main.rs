//! Every reading command on hostile folders and files, made from seeds: none panics, hangs or changes anything but the output that
//! was named, and each refusal is a sentence. For longer: `make hostile`; `HOSTILE_SEED=N HOSTILE_CASES=1` makes one of the
//! random cases again.

mod files;
mod folders;
mod place;
#[path = "../support/mod.rs"]
mod support;
mod tree;

use fuzz::Random;
use place::Place;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// A reader waits for nobody: what takes this long on a busy machine does not end by itself.
const LONGEST: &str = "120";

/// A refusal, after what there is to say of the trace.
const MOST_LINES: usize = 12;

fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect("a number"))
}

/// The reading commands, by turns.
fn command(number: usize) -> Vec<&'static str> {
    const COMMANDS: [&[&str]; 16] = [
        &["analyze", "trace"],
        &["analyze", "trace", "--output", "out/report.html"],
        &["export", "trace", "--format", "json"],
        &["export", "trace", "--format", "parquet", "--output", "out/tables"],
        &["diff", "trace", "good"],
        &["diff", "good", "trace", "--output", "out/diff.md"],
        &["check", "trace", "--max-step-ms", "5"],
        &["whatif", "trace", "remove sync-api"],
        &["analyze", "trace/rank-0", "--format", "json"],
        &["top", "trace", "--once", "--window", "3600"],
        &["top", "trace", "--once", "--json"],
        &["export", "trace", "--format", "perfetto", "--output", "out/trace.pftrace"],
        &["analyze", "--format", "markdown", "trace/"],
        &["query", "summary", "trace"],
        &["query", "events", "trace", "--format", "csv", "--last", "5"],
        &["diagnose", "trace", "--output", "out/diagnosis"],
    ];
    COMMANDS[number % COMMANDS.len()].to_vec()
}

fn run(place: &Place, arguments: &[&str]) -> support::Told {
    let output = Command::new("timeout")
        .args(["--kill-after=1", LONGEST, env!("CARGO_BIN_EXE_inferscope")])
        .args(arguments)
        // Telemetry is read as a stream.
        .args(["--max-unpacked-mb", "2", "--max-memory-mb", "2000"].iter().filter(|_| arguments[0] != "query"))
        .current_dir(place.at(""))
        .env_clear()
        .envs([("LANG", "C.UTF-8"), ("PATH", "/usr/bin:/bin")])
        .envs([("HOME", place.at("home")), ("TMPDIR", place.at("tmp"))])
        .output();
    support::Told::new(output.expect("the command"))
}

/// Runs a case; what is wrong with it is told with what it was.
fn case(place: &Place, number: usize, what: &str) -> Result<(), String> {
    let looked = || {
        let shared = tree::shared(&place.mark);
        let own = ["victim", "home", "tmp", "good", "trace"].map(|name| place.at(name));
        let roots: Vec<&Path> = own.iter().chain(&shared).map(AsRef::as_ref).collect();
        let mut tree = tree::look(&roots);
        // A copy comes and goes in it: its time changes, and nothing may stay.
        tree.remove(&place.at("tmp"));
        tree
    };
    let arguments = command(number);
    let before = looked();
    let told = run(place, &arguments);
    let after = looked();
    let wrong = |why: String| Err(format!("{what}; {arguments:?}: {why}\n{}", told.err));
    match told.code {
        Some(0 | 1 | 2 | 4 | 5) => {}
        Some(124 | 137) => return wrong("does not end".into()),
        code => return wrong(format!("ended with {code:?}")),
    }
    let sentences = told.err.lines().all(|line| line.starts_with("inferscope: "));
    if told.code != Some(0) && (told.err.is_empty() || !sentences || told.err.lines().count() > MOST_LINES) {
        return wrong("a refusal is a sentence".into());
    }
    let mut changes = tree::changes(&before, &after);
    // A trace of our own, whole and of this boot, may be completed: in its folder and that of its segments, nowhere else.
    if told.err.contains("records recovered from shared memory") && !told.err.contains("in a copy") {
        let own =
            [place.trace(), place.shared_folder()].map(|path| format!("{path:?}").trim_end_matches('"').to_owned());
        changes.retain(|change| !own.iter().any(|own| change.starts_with(own)));
    }
    if changes.is_empty() { Ok(()) } else { wrong(format!("changed:\n{}", changes.join("\n"))) }
}

/// All cases, on two threads; `make` makes one.
fn all(count: usize, make: impl Fn(&Place, usize) -> String + Sync) {
    let (next, faults) = (Mutex::new(0..count), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (next, faults, make) = (&next, &faults, &make);
            scope.spawn(move || {
                let place = Place::new();
                while let Some(number) = { next.lock().unwrap().next() } {
                    place.clear();
                    let what = make(&place, number);
                    if let Err(fault) = case(&place, number, &format!("case {number}: {what}")) {
                        faults.lock().unwrap().push(fault);
                    }
                }
                place.clear();
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    let some: Vec<&String> = faults.iter().take(10).collect();
    assert!(
        faults.is_empty(),
        "{} of {count} cases:\n{}",
        faults.len(),
        some.iter().map(|f| f.as_str()).collect::<Vec<_>>().join("\n\n")
    );
}

#[test]
fn every_known_name_as_everything_that_it_should_not_be() {
    all(folders::ONE_WRONG, folders::one_wrong);
}

#[test]
fn manifests_that_lead_elsewhere() {
    all(folders::OTHER_PLACES, folders::other_place);
}

#[test]
fn several_things_wrong_at_once() {
    let (first, cases) = (asked("HOSTILE_SEED", 0), asked("HOSTILE_CASES", 500) as usize);
    all(cases, |place, number| {
        let seed = first + number as u64;
        format!("HOSTILE_SEED={seed} HOSTILE_CASES=1: {}", folders::several_wrong(place, &mut Random::new(seed)))
    });
}

#[test]
fn files_that_are_damaged_or_become_too_large() {
    let (first, cases) = (asked("HOSTILE_SEED", 0), asked("HOSTILE_CASES", 240) as usize);
    all(cases, |place, number| {
        let seed = first + number as u64;
        files::file(place, &mut Random::new(seed), seed as usize).to_owned()
    });
}

#[test]
fn an_archive_that_becomes_too_large_names_the_option() {
    let place = Place::new();
    for number in 0..3 {
        place.clear();
        let said = files::file(&place, &mut Random::new(0), number);
        let error = run(&place, &["analyze", "trace"]).refused(5);
        assert!(error.contains(files::TOO_LARGE), "{said}: {error}");
    }
}
