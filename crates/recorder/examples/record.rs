//! The recorder without the command line: `record run CMD…`, `record attach PID [SECONDS]`, `record recover TRACE`.
//! Prints where the trace is, and the notes.

use recorder::{Calls, Settings};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let word = |at: usize| words.get(at).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let settings = Settings {
        output: std::env::var_os("OUTPUT").map(Into::into),
        calls: if std::env::var_os("CALLS").is_some() { Calls::Python } else { Calls::Off },
        rate_hz: number("RATE").unwrap_or(100),
        ..Settings::default()
    };
    let outcome = match word(0).as_str() {
        "run" => recorder::run(&settings, &words[1..]),
        "attach" => {
            let duration = word(2).parse().ok().map(Duration::from_secs);
            recorder::attach(&settings, word(1).parse().unwrap_or(0), duration, || ())
        }
        "recover" => return println!("{:?}", recorder::recover(Path::new(&word(1)))),
        other => return eprintln!("what is {other:?}?"),
    };
    match outcome {
        Ok(outcome) => {
            eprintln!("trace: {:?}, exit: {:?}", outcome.trace, outcome.exit);
            outcome.notes.iter().for_each(|note| eprintln!("note: {note}"));
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(error.exit_code());
        }
    }
}
