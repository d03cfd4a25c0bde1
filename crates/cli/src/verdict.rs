//! A timeline with what was measured and concluded from it, and the formats in which people can have that.

use crate::args::ReportFormat;
use crate::config::Settings;
use crate::failure::Failure;
use crate::output::{self, Rights};
use crate::rule_file::RuleFile;
use crate::step_name;
use analysis::Metrics;
use diagnosis::user_rules::UserRules;
use diagnosis::{Diagnosis, Options};
use report::Style;
use std::io::{self, Write};
use std::path::Path;
use timeline::Timeline;

pub struct Verdict {
    pub timeline: Timeline,
    pub metrics: Metrics,
    pub diagnosis: Diagnosis,
}

impl Verdict {
    /// `step` names the step or scope to look at; a name that is not in the trace is an error.
    pub fn of(timeline: Timeline, step: Option<&str>, rules: &RuleFile) -> Result<Verdict, Failure> {
        let metrics = analysis::measure(&timeline);
        let user = Some(UserRules { rules: &rules.own, metrics: &metrics });
        let options = Options { step: step.map(str::to_owned), rules: rules.ours.clone(), user };
        let diagnosis = diagnosis::diagnose(&timeline, &options);
        if let Some(missing) = &diagnosis.steps.not_found {
            return Err(step_name::not_found(&timeline, missing, "this trace"));
        }
        Ok(Verdict { timeline, metrics, diagnosis })
    }

    /// Writes to a file, in the format that was asked for or that its name asks for.
    pub fn write_file(
        &self,
        settings: &Settings,
        path: &Path,
        format: Option<ReportFormat>,
        rights: Rights,
    ) -> Result<(), Failure> {
        let format = format.map_or_else(|| ReportFormat::of(path), Ok).map_err(Failure::usage)?;
        let written = output::to_file(path, rights, |out| self.write(settings, format, &Style::default(), out));
        written.map_err(|error| Failure::writing(path.display(), &error))
    }

    pub fn write(
        &self,
        settings: &Settings,
        format: ReportFormat,
        style: &Style,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let Verdict { timeline, metrics, diagnosis } = self;
        match format {
            ReportFormat::Text => {
                report::reports::text::write(timeline, metrics, diagnosis, settings.top, style, &mut out)
            }
            ReportFormat::Markdown => report::reports::markdown::write(timeline, metrics, diagnosis, &mut out),
            ReportFormat::Html => report::reports::html::write(timeline, metrics, diagnosis, &mut out),
            ReportFormat::Json => report::reports::analysis_json::write(timeline, metrics, diagnosis, &mut out),
        }
    }
}
