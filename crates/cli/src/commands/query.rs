//! `inferscope query`: questions to memory telemetry, in the folder of a sink or in files of JSON.

use crate::config::Settings;
use crate::confine::Needs;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{output, terminal};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use telemetry::query::{By, Filter, Ranks, Summaries, Summary, is_oom};
use telemetry::sink::{self, EXTENSION};
use telemetry::{Event, EventType};
use trace::plain_file;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope query                         what ./inferscope-telemetry holds
  inferscope query summary logs --by rank
  inferscope query events logs --type warning --type critical --format csv
  inferscope query ooms telemetry.jsonl

Reads folders that `inferscope track` wrote, and JSON telemetry of versions 1
to 4: one event a line, an array, or an object with `events`.")]
pub struct Query {
    /// What to show
    #[arg(value_name = "WHAT", default_value = "summary")]
    what: What,

    /// A telemetry folder or file
    #[arg(value_name = "PATH", default_value = crate::commands::track::FOLDER)]
    path: PathBuf,

    /// Summarise by this
    #[arg(long, value_name = "KEY", default_value = "session")]
    by: Key,

    /// Only events of this type (repeatable)
    #[arg(long = "type", value_name = "TYPE", value_parser = event_type)]
    kinds: Vec<EventType>,

    /// Only this rank (repeatable)
    #[arg(long = "rank", value_name = "N")]
    ranks: Vec<u32>,

    /// Only this session (repeatable)
    #[arg(long = "session", value_name = "NAME")]
    sessions: Vec<String>,

    /// Only this device (repeatable); -1 is host memory
    #[arg(long = "device", value_name = "N", allow_negative_numbers = true)]
    devices: Vec<i64>,

    /// Only events of the last so many seconds before the newest
    #[arg(long, value_name = "SECONDS", value_parser = crate::args::seconds)]
    last: Option<std::time::Duration>,

    /// Most events to show, the newest
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum What {
    /// What the events come to
    Summary,
    /// One line for each session
    Sessions,
    /// The events themselves
    Events,
    /// Warnings, critical alerts and errors
    Alerts,
    /// Times when memory ran out
    Ooms,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Key {
    Session,
    Rank,
    Device,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
}

fn event_type(name: &str) -> Result<EventType, String> {
    EventType::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = EventType::ALL.into_iter().map(EventType::name).collect();
        format!("must be one of {}", known.join(", "))
    })
}

pub fn run(settings: &Settings, query: &Query) -> Result<Ending, Failure> {
    // Anybody may have made the files.
    let mut needs = Needs::default();
    needs.read(&query.path);
    let confined = needs.confine();
    settings.debug(|| format!("confined by Landlock: {confined}"));
    let mut filter = Filter {
        kinds: query.kinds.clone(),
        ranks: query.ranks.clone(),
        sessions: query.sessions.clone(),
        devices: query.devices.clone(),
        ..Filter::default()
    };
    if let Some(last) = query.last {
        let mut newest = 0;
        read(&query.path, &mut |event| newest = event.time_ns.max(newest))?;
        filter.from_ns = Some(newest.saturating_sub(last.as_nanos() as u64));
    }
    match query.what {
        What::Summary | What::Sessions => summarise(settings, query, &filter),
        What::Events => list(settings, query, &filter, |_| true),
        What::Alerts => list(settings, query, &filter, |event| event.kind.is_alert()),
        What::Ooms => list(settings, query, &filter, is_oom),
    }
}

fn summarise(settings: &Settings, query: &Query, filter: &Filter) -> Result<Ending, Failure> {
    let by = match (query.what, query.by) {
        (What::Sessions, _) | (_, Key::Session) => By::Session,
        (_, Key::Rank) => By::Rank,
        (_, Key::Device) => By::Device,
    };
    let (mut summaries, mut ranks) = (Summaries::by(by), Ranks::default());
    read(&query.path, &mut |event| {
        ranks.add(&event);
        if filter.takes(&event) {
            summaries.add(&event);
        }
    })?;
    let found = summaries.finish();
    let doubts = report::telemetry::doubts(&found, &ranks.missing());
    if found.is_empty() {
        return Err(Failure::bad_input(format_args!("{} has no event that fits", query.path.display())));
    }
    if query.format != Format::Text {
        doubts.iter().for_each(|doubt| settings.say(doubt));
    }
    let style = terminal::stdout_style(&settings.color);
    output::write_to(None, |mut out| match query.format {
        Format::Text => {
            report::telemetry::summaries(&found, &style, &mut out)?;
            doubts.iter().try_for_each(|doubt| writeln!(out, "{}", style.plain(doubt)))
        }
        Format::Json => {
            let all: Vec<Value> = found.iter().map(|(name, summary)| object(name, summary)).collect();
            writeln!(out, "{:#}", json!(all))
        }
        Format::Csv => {
            writeln!(out, "name,events,alerts,ooms,first_ns,last_ns,peak_allocated,peak_reserved,peak_used")?;
            found.iter().try_for_each(|(name, summary)| {
                let Summary { events, alerts, ooms, first_ns, last_ns, .. } = summary;
                let peaks = [summary.peak_allocated, summary.peak_reserved, summary.peak_used];
                let peaks = peaks.map(|peak| peak.map_or(String::new(), |peak| peak.to_string())).join(",");
                writeln!(out, "{},{events},{alerts},{ooms},{first_ns},{last_ns},{peaks}", telemetry::csv::quoted(name))
            })
        }
    })?;
    Ok(Ending::FINE)
}

/// Alerts and errors that are shown at once; `query alerts` shows more.
const MOST_ALERTS: usize = 20;

/// Whether a folder holds telemetry, and no trace, or a file is of one.
pub fn is_telemetry(path: &Path) -> bool {
    if is_of_a_sink(path) {
        return path.is_file();
    }

    path.is_dir()
        && !path.join(trace::tables::MANIFEST).exists()
        && sink::files(path).is_ok_and(|files| !files.is_empty())
}

fn is_of_a_sink(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION)
}

/// Whether a file is telemetry as JSON. Its beginning is read: rights that are not needed for that are to be given up before.
pub fn is_telemetry_json(path: &Path) -> bool {
    plain_file::open_named(path).is_ok_and(|file| telemetry::json::is_telemetry(BufReader::new(file)))
}

/// All that a telemetry folder says at once, for `inferscope analyze`: what its sessions come to, the newest alerts, and when memory ran out.
pub fn overview(settings: &Settings, path: &Path, as_json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut summaries, mut ranks) = (Summaries::by(By::Session), Ranks::default());
    let mut alerts = std::collections::VecDeque::new();
    read(path, &mut |event| {
        ranks.add(&event);
        summaries.add(&event);
        if event.kind.is_alert() {
            alerts.push_back(event);
        }
        if alerts.len() > MOST_ALERTS {
            alerts.pop_front();
        }
    })?;
    let found = summaries.finish();
    let alerts: Vec<Event> = alerts.into();
    let doubts = report::telemetry::doubts(&found, &ranks.missing());
    let written = if as_json {
        let sessions: Vec<Value> = found.iter().map(|(name, summary)| object(name, summary)).collect();
        let alerts: Vec<Value> = alerts.iter().map(|event| Value::Object(telemetry::json::object(event))).collect();
        writeln!(out, "{:#}", json!({ "sessions": sessions, "alerts": alerts, "doubts": doubts }))
    } else {
        let style = terminal::stdout_style(&settings.color);
        report::telemetry::overview(&path.display().to_string(), &found, &alerts, &doubts, &style, out)
    };
    written.map_err(|error| Failure::writing("stdout", &error))
}

fn object(name: &str, summary: &Summary) -> Value {
    json!({
        "name": name, "events": summary.events, "alerts": summary.alerts, "ooms": summary.ooms, "first_ns": summary.first_ns,
        "last_ns": summary.last_ns, "peak_allocated_bytes": summary.peak_allocated, "peak_reserved_bytes": summary.peak_reserved,
        "peak_used_bytes": summary.peak_used, "peak_share_used": summary.peak_share, "out_of_order": summary.out_of_order,
    })
}

fn list(
    settings: &Settings,
    query: &Query,
    filter: &Filter,
    wanted: impl Fn(&Event) -> bool,
) -> Result<Ending, Failure> {
    let mut found = std::collections::VecDeque::new();
    let mut left_out = 0;
    read(&query.path, &mut |event| {
        if filter.takes(&event) && wanted(&event) {
            if found.len() == query.limit.max(1) {
                found.pop_front();
                left_out += 1;
            }
            found.push_back(event);
        }
    })?;
    let found: Vec<Event> = found.into();
    if left_out > 0 {
        settings.say(format_args!("{left_out} older events are not shown; --limit shows more"));
    }
    let style = terminal::stdout_style(&settings.color);
    output::write_to(None, |mut out| match query.format {
        Format::Text if found.is_empty() => writeln!(out, "no such events"),
        Format::Text => report::telemetry::events(&found, &style, &mut out),
        Format::Json => found.iter().try_for_each(|event| telemetry::json::line(event, &mut *out)),
        Format::Csv => {
            telemetry::csv::header(&mut *out)?;
            found.iter().try_for_each(|event| telemetry::csv::row(event, &mut *out))
        }
    })?;
    Ok(Ending::FINE)
}

/// Every event of a folder or file.
pub fn read(path: &Path, take: &mut dyn FnMut(Event)) -> Result<(), Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::bad_input(format_args!("{}: {why}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| {
        failed(&error)
            .with_hint("`inferscope track` writes telemetry to ./inferscope-telemetry, or where --output says")
    })?;
    let mut damage = Vec::new();
    if metadata.is_dir() {
        damage = sink::read_folder(path, take).map_err(|error| failed(&error))?;
        if sink::files(path).is_ok_and(|files| files.is_empty()) {
            return Err(failed(&format_args!("no telemetry in this folder (*.{EXTENSION})")));
        }
    } else if is_of_a_sink(path) {
        plain_file::open_named(path).map_err(|error| failed(&error))?;
        damage.extend(sink::read(path, take).map_err(|error| failed(&error))?);
    } else {
        let file = plain_file::open_named(path).map_err(|error| failed(&error))?;
        read_json(BufReader::new(file), path.display(), take)?;
    }
    for one in damage {
        terminal::say(format_args!("{} is damaged at byte {}: {}", one.file.display(), one.offset, one.what));
    }
    Ok(())
}

/// Every event of JSON that comes from `name`.
pub fn read_json(input: impl BufRead, name: impl Display, take: &mut dyn FnMut(Event)) -> Result<(), Failure> {
    let read = telemetry::json::read(input, take);
    let read = read.map_err(|error| Failure::bad_input(format_args!("{name}: {error}")))?;
    if read.cut_short {
        terminal::say(format_args!("{name}: the last event is incomplete and left out"));
    }
    Ok(())
}
