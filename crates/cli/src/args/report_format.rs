//! How a report is written, and which of it the ending of a file's name asks for.

use clap::ValueEnum;
use clap::builder::{PathBufValueParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// How a report is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ReportFormat {
    /// For a terminal
    Text,
    /// For a pull request
    #[value(alias = "md")]
    Markdown,
    /// One offline page with timeline and flame graph
    Html,
    /// For programs (schema/analysis.schema.json)
    Json,
}

/// How a short result is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DataFormat {
    /// For a terminal
    Text,
    /// For programs
    Json,
}

impl ReportFormat {
    /// The format that a file's ending asks for; Markdown if it has none. A report under a wrong ending opens nowhere.
    pub fn of(path: &Path) -> Result<ReportFormat, String> {
        let Some(ending) = path.extension() else { return Ok(ReportFormat::Markdown) };
        let ending = ending.to_string_lossy();
        match ending.to_ascii_lowercase().as_str() {
            "txt" => Ok(ReportFormat::Text),
            "md" | "markdown" => Ok(ReportFormat::Markdown),
            "html" | "htm" => Ok(ReportFormat::Html),
            "json" => Ok(ReportFormat::Json),
            _ => Err(format!("a report is written to .md, .html, .json or .txt, not .{ending}")),
        }
    }
}

/// A file for a report whose format is told by its name alone; refused before anything is recorded.
pub fn report_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| ReportFormat::of(&path).map(|_| path))
}
