//! Looks at the machine the way a recording would: what the kernel allows, how much room there is, which GPUs and Pythons there are,
//! and what reading each source costs.

mod cupti;
mod gpu;
mod machine;
mod python;

use crate::config::Settings;

/// One thing that was looked at.
pub struct Line {
    pub mark: Mark,
    pub what: String,
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    Yes,
    No,
    Note,
}

impl Line {
    fn new(mark: Mark, what: impl Into<String>, text: impl Into<String>) -> Line {
        Line { mark, what: what.into(), text: text.into() }
    }

    fn of(result: Result<String, String>, what: &str) -> Line {
        match result {
            Ok(text) => Line::new(Mark::Yes, what, text),
            Err(text) => Line::new(Mark::No, what, text),
        }
    }
}

/// Titles and what stands under them.
pub fn examine(settings: &Settings) -> Vec<(&'static str, Vec<Line>)> {
    vec![
        ("What can be recorded", machine::recordable()),
        ("GPUs", gpu::gpus()),
        ("This machine", machine::machine(recorder::shared_memory(&settings.recording))),
        ("Pythons on PATH", python::pythons()),
        ("Cost of one reading (of this process)", costs()),
    ]
}

fn costs() -> Vec<Line> {
    let cost = |source: recorder::SourceCost| match source.available {
        true => Line::new(Mark::Yes, source.file, format!("{}: {}", report::duration(source.cost_ns), source.what)),
        false => Line::new(Mark::No, source.file, format!("{}: {}", source.reason, source.what)),
    };
    recorder::source_costs(std::process::id()).into_iter().map(cost).collect()
}
