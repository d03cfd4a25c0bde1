//! The limits of a recording: a line for each, or JSON. The metrics are measured in `analysis`, and the command's exit code
//! follows from what is said here.

use crate::comparison::json::state_name;
use crate::comparison::state;
use crate::style::{Ink, Style};
use analysis::steps::{StepSource, Steps};
use diagnosis::compare::gate::GateState;
use diagnosis::named::{METRICS, Measured, Metric};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Grows by one after the point when something is added, before it when something changes its meaning or goes.
pub const VERSION: &str = "1.2";

/// A limit, and what was measured of it.
pub struct Judged {
    pub flag: &'static str,
    /// Its place in [`METRICS`].
    pub metric: usize,
    /// The value may not be below the limit; else it may not be above.
    pub least: bool,
    pub limit: f64,
    /// Or why there is no value.
    pub measured: Result<Measured, String>,
}

impl Judged {
    pub fn metric(&self) -> &'static Metric {
        &METRICS[self.metric]
    }

    pub fn state(&self) -> GateState {
        match &self.measured {
            Err(_) => GateState::Undecided,
            Ok(measured) if self.least && measured.value >= self.limit => GateState::Holds,
            Ok(measured) if !self.least && measured.value <= self.limit => GateState::Holds,
            Ok(_) => GateState::Failed,
        }
    }

    /// The limit as it was asked for.
    pub fn asked(&self) -> String {
        format!("{} {}", self.flag, self.metric().unit.say(self.limit))
    }

    pub fn said(&self) -> String {
        match &self.measured {
            Ok(measured) => format!("{} is {}", self.metric().name, self.metric().unit.say(measured.value)),
            Err(why) => why.clone(),
        }
    }
}

impl Judged {
    /// A limit that nothing was measured for, as one line.
    pub fn without_data(&self) -> String {
        format!("{}: no data ({})", self.asked(), self.said())
    }
}

pub fn write(limits: &[Judged], style: &Style, out: &mut impl Write) -> io::Result<()> {
    for limit in limits {
        if limit.state() == GateState::Undecided {
            writeln!(out, "{}", style.ink(Ink::Warn, &style.plain(&limit.without_data())))?;
            continue;
        }
        let ink = if limit.state() == GateState::Holds { Ink::Good } else { Ink::Warn };
        let word = style.ink(ink, state(limit.state()));
        writeln!(out, "{word} {}: {}", style.plain(&limit.asked()), style.plain(&limit.said()))?;
    }
    Ok(())
}

pub fn write_json(trace: &str, steps: &Steps, limits: &[Judged], out: &mut impl Write) -> io::Result<()> {
    let any = |state| limits.iter().any(|limit| limit.state() == state);
    let whole = match (any(GateState::Failed), any(GateState::Undecided)) {
        (true, _) => GateState::Failed,
        (false, true) => GateState::Undecided,
        (false, false) => GateState::Holds,
    };
    let document = json!({
        "check_version": VERSION,
        "trace": trace,
        "state": state_name(whole),
        "steps": steps_json(steps),
        "limits": limits.iter().map(limit).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn limit(limit: &Judged) -> Value {
    let measured = limit.measured.as_ref().ok();
    json!({
        "flag": limit.flag,
        "metric": limit.metric().name,
        "unit": limit.metric().unit.name(),
        "bound": if limit.least { "at_least" } else { "at_most" },
        "limit": limit.limit,
        "value": measured.map(|measured| measured.value),
        "error": measured.and_then(|measured| measured.error),
        "state": state_name(limit.state()),
        "asked": limit.asked(),
        "said": limit.said(),
    })
}

/// Which steps a number is of.
pub(crate) fn steps_json(steps: &Steps) -> Value {
    let found = steps.source != StepSource::Whole;
    json!({
        "name": found.then_some(&steps.name),
        "source": steps.source.name(),
        "count": if found { steps.count() } else { 0 },
    })
}
