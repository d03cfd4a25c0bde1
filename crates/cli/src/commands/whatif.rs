//! `inferscope whatif`: replays the recorded steps with something changed, and prints what that would gain. The replay itself
//! is in `analysis`.

use crate::args::DataFormat;
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{open, output};
use analysis::phrase;
use analysis::replay::{self, Answer, Limit, Refusal};
use analysis::steps::{StepSource, Steps};
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope whatif trace \"remove sync-api\"       no waits in the step
  inferscope whatif trace \"scale kernel:flash* 0.5; graph steps\"
  inferscope whatif trace \"scale host:tokenise 0\"
  inferscope whatif trace \"pin copies\" --format json | jq .gain_percent

Changes, joined by `;`:
  remove WHAT         sync-api, kernel:NAME, copy:NAME, api:NAME, host:FUNCTION
  scale WHAT FACTOR   the same, but for sync-api; `*` in a name is any text
  pin copies          pageable copies as fast as the trace's pinned ones
  graph steps         launches in a row become one

Exit code 1: what was recorded gives no answer; 2: a change is not understood;
5: no such trace or step, or nothing in the steps has the name (no such kernel).")]
pub struct Whatif {
    /// The trace's folder, or a file of another tool
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,

    /// What to change
    #[arg(value_name = "CHANGES", required = true)]
    changes: Vec<String>,

    /// The step or scope whose time is replayed [default: the step with most time]
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,

    /// What to write; schema/whatif.schema.json describes the JSON
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub format: DataFormat,
}

/// Names of kernels are long; what was changed is told by the most frequent.
const MOST_NAMES: usize = 3;
const LONGEST_NAME: usize = 60;
const LONGEST_LINE: usize = 120;

pub fn run(settings: &Settings, whatif: &Whatif) -> Result<Ending, Failure> {
    // Words that came without quotes are one expression, too.
    let asked = whatif.changes.join(" ");
    let changes =
        replay::parse(&asked).map_err(|wrong| Failure::usage(format_args!("{asked:?} is not understood, {wrong}")))?;
    let timeline = open::open(settings, Some(&whatif.trace))?;
    let steps = Steps::find(&timeline, whatif.step.as_deref());
    if let Some(missing) = &steps.not_found {
        return Err(Failure::bad_input(format_args!(
            "no step or scope is called {missing:?} in this trace: `inferscope analyze` lists those that there are"
        )));
    }
    let answer = replay::replay(&timeline, &steps, &changes).map_err(|refusal| match refusal {
        Refusal::NotThere(_) => Failure::bad_input(refusal),
        Refusal::Unknown(_) => Failure::error(refusal),
    })?;
    let trace = whatif.trace.display().to_string();
    output::write_to(None, |mut out| match whatif.format {
        DataFormat::Text => write(out, &asked, &steps, &answer),
        DataFormat::Json => report::whatif_json::write(&trace, &asked, &steps, &answer, &mut out),
    })?;
    Ok(Ending::FINE)
}

fn write(out: &mut dyn Write, changes: &str, steps: &Steps, answer: &Answer) -> io::Result<()> {
    let noun = match steps.source {
        StepSource::Whole => "the whole recording",
        _ => &steps.name,
    };
    let check = answer.check;
    writeln!(out, "What if    {}", cut(changes, LONGEST_LINE))?;
    writeln!(out, "Step       {}, {} measured", cut(noun, LONGEST_NAME), phrase::count(check.steps))?;
    writeln!(
        out,
        "Replay     {} replayed, {} recorded (mean): off by {:.1} %, the worst step by {:.1} %",
        phrase::duration(check.replayed_ns),
        phrase::duration(check.recorded_ns),
        check.off * 100.0,
        check.worst * 100.0
    )?;
    writeln!(out, "Now        {} (mean)", phrase::duration(answer.now_ns))?;
    writeln!(out, "Then       {}", phrase::duration(answer.then_ns))?;
    let part = |ns: i64| format!("{} ({})", signed(ns), phrase::percent(ns as f64 / answer.now_ns.max(1) as f64));
    writeln!(
        out,
        "Gain       {} a step; low {}, high {}",
        part(answer.mid_ns),
        part(answer.low_ns),
        part(answer.high_ns)
    )?;
    let mut changed: Vec<_> = answer.changed.iter().collect();
    changed.sort_by_key(|(name, count)| (u64::MAX - **count, *name));
    let names =
        changed.iter().take(MOST_NAMES).map(|(name, count)| format!("{} × {}", phrase::count(**count), short(name)));
    let mut names: Vec<String> = names.collect();
    if changed.len() > MOST_NAMES {
        names.push(format!("{} more", phrase::count((changed.len() - MOST_NAMES) as u64)));
    }
    writeln!(out, "Changed    {}", names.join(", "))?;
    writeln!(out, "Limit now  {}", limit(answer.before.first()))?;
    writeln!(out, "Then       {}", limit(answer.after.first()))?;
    writeln!(out, "\nAssumed")?;
    answer.assumed.iter().try_for_each(|line| writeln!(out, "- {line}"))
}

fn limit(limit: Option<&Limit>) -> String {
    let Some(limit) = limit else { return "unknown".into() };
    let most = if limit.name.is_empty() { String::new() } else { format!(", most of it {}", short(&limit.name)) };
    format!("{}: {} of the step{most}", limit.words(), phrase::percent(limit.share))
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "" };
    format!("{sign}{}", phrase::duration(ns.unsigned_abs()))
}

/// A kernel's name without its return type, its template's and its own parameters.
fn short(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name).replace("(anonymous namespace)::", "");
    cut(name.split(['<', '(']).next().filter(|head| !head.is_empty()).unwrap_or(&name), LONGEST_NAME)
}

/// Names come from programs: nothing in them may reach the terminal as more than text.
fn cut(text: &str, most: usize) -> String {
    let clean: String = text.chars().filter(|letter| !letter.is_control() && !is_direction(*letter)).collect();
    match clean.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

/// Marks that turn the direction of what follows.
fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
