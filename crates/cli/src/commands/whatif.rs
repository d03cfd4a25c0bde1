//! `inferscope whatif`: replays the recorded steps with something changed, and prints what that would gain. The replay itself
//! is in `replay`, how it looks in `report`.

use crate::args::{DataFormat, Reading};
use crate::config::{Layer, Settings};
use crate::confine::Output;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{open, output, step_name, terminal};
use analysis::steps::Steps;
use clap::Args;
use diagnosis::wording::replay::refusal;
use replay::{self, Refusal};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope whatif trace \"remove sync-api\"       no waits in the step
  inferscope whatif trace \"scale kernel:flash* 0.5; graph steps\"
  inferscope whatif trace \"scale host:tokenise 0\"
  inferscope whatif trace \"pin copies\" --format json | jq .gain_percent

Changes, joined by `;`:
  remove WHAT         sync-api, kernel:NAME, copy:NAME, api:NAME, host:FUNCTION
  scale WHAT FACTOR   same targets except sync-api; `*` in a name is any text
  pin copies          pageable copies as fast as the trace's pinned ones
  graph steps         launches in a row become one

Exit code 1: the recording cannot answer; 2: a change cannot be parsed; 5: no such
trace or step, or nothing in the steps has the name (no such kernel).")]
pub struct Whatif {
    /// A trace folder, or a file of another profiler
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,

    /// What to change
    #[arg(value_name = "CHANGES", required = true)]
    changes: Vec<String>,

    /// The step or scope to replay [default: chosen automatically; `inferscope analyze` says why]
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,

    /// Output format; schema/whatif.schema.json describes the JSON
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub format: DataFormat,

    #[command(flatten)]
    reading: Reading,
}

impl Whatif {
    pub fn layer(&self) -> Layer {
        self.reading.layer()
    }
}

pub fn run(settings: &Settings, whatif: &Whatif) -> Result<Ending, Failure> {
    // Words that came without quotes are one expression, too.
    let asked = whatif.changes.join(" ");
    let changes =
        replay::parse(&asked).map_err(|wrong| Failure::usage(format_args!("cannot parse {asked:?}, {wrong}")))?;
    let [mut source] = open::confined(settings, [Some(&whatif.trace)], Output::None)?;
    let timeline = source.read(settings)?;
    let steps = Steps::find(&timeline, whatif.step.as_deref());
    if let Some(missing) = &steps.not_found {
        return Err(step_name::not_found(&timeline, missing, source.path.display()));
    }
    let answer = replay::replay(&timeline, &steps, &changes).map_err(|why| {
        let text = refusal(&why);
        match why {
            Refusal::NotThere(_) => Failure::bad_input(text),
            Refusal::Unknown(_) => Failure::error(text),
        }
    })?;
    let trace = whatif.trace.display().to_string();
    let style = terminal::stdout_style(&settings.color);
    output::write_to(None, |mut out| match whatif.format {
        DataFormat::Text => report::whatif::write(&asked, &steps, &answer, &style, &mut out),
        DataFormat::Json => report::whatif::json::write(&trace, &asked, &steps, &answer, &mut out),
    })?;
    Ok(Ending::FINE)
}
