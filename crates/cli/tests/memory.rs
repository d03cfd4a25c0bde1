//! Memory that cannot be had while a trace is read: a sentence that says what to do and an exit code, never a signal, and no
//! half-written file.

use crate::support::{Place, Told};
use std::process::Command;

/// Needs some 20 MB to be read.
fn large(place: &Place) {
    let event = |at: u32| format!(r#"{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":{at},"dur":1}}"#);
    let events: Vec<String> = (0..100_000).map(|at| event(2 * at)).collect();
    place.write("trace.json", format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(",\n")));
}

#[test]
fn a_limit_that_is_too_low_is_named() {
    let place = Place::new("memory");
    large(&place);
    for arguments in [
        ["analyze", "trace.json", "--max-memory-mb", "12", "--output", "report.html"],
        ["export", "trace.json", "--max-memory-mb", "12", "--format", "json"],
    ] {
        let error = place.run(arguments).refused(1);
        assert!(
            error.contains("not enough memory") && error.contains("12.0 MiB") && error.contains("--max-memory-mb"),
            "{error}"
        );
    }
    let left: Vec<_> = crate::support::files(&place.at(""));
    assert_eq!(left, [place.at("trace.json")], "nothing half-written stays");
    place.run(["analyze", "trace.json", "--max-memory-mb", "500"]).fine();
}

#[test]
fn a_shell_that_limits_memory_gets_a_sentence_too() {
    let place = Place::new("ulimit");
    large(&place);
    let program = env!("CARGO_BIN_EXE_inferscope");
    // Where the program itself just fits differs from build to build: from there on, every step ends well or with the sentence.
    let limited = |kilobytes: u64, arguments: &str| {
        let line = format!("ulimit -v {kilobytes} && exec {program} {arguments}");
        Command::new("sh").args(["-c", &line]).current_dir(place.at("")).output().expect("a shell")
    };
    let fits =
        (0..100).map(|step| 16_000 + 4_000 * step).find(|kilobytes| limited(*kilobytes, "--version").status.success());
    let fits = fits.expect("the program starts within 400 MB");
    let mut sentences = 0;
    for step in 2..12 {
        let told = Told::new(limited(fits + 4_000 * step, "analyze trace.json"));
        match told.code {
            Some(0) => {}
            _ => {
                assert_eq!(told.code, Some(1), "{step}: {:?} {}", told.status, told.err);
                assert!(told.err.contains("not enough memory") && told.err.contains("ulimit -v"), "{}", told.err);
                sentences += 1;
            }
        }
    }
    assert!(sentences > 0, "the trace fits into less than it did");
}
