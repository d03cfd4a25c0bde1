//! Formats for other tools, and which of them a file's extension asks for.

use clap::ValueEnum;
use std::path::Path;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExportFormat {
    /// Chrome trace JSON, for ui.perfetto.dev and chrome://tracing
    Chrome,
    /// InferScope trace JSON 1.1; `analyze` opens it again
    Json,
    /// Perfetto protobuf, for ui.perfetto.dev
    Perfetto,
    /// Samples and slices for speedscope.app
    Speedscope,
    /// One line per stack with its count, for flame graph scripts
    Collapsed,
    /// Samples for `go tool pprof`
    Pprof,
    /// The tables themselves, into the folder that --output names
    Parquet,
}

/// The longer extension comes first: `.speedscope.json` is no `.json`.
const EXTENSIONS: [(&str, ExportFormat); 11] = [
    (".speedscope.json", ExportFormat::Speedscope),
    (".speedscope", ExportFormat::Speedscope),
    (".chrome.json", ExportFormat::Chrome),
    (".json", ExportFormat::Json),
    (".pftrace", ExportFormat::Perfetto),
    (".perfetto-trace", ExportFormat::Perfetto),
    (".pb.gz", ExportFormat::Pprof),
    (".pprof", ExportFormat::Pprof),
    (".folded", ExportFormat::Collapsed),
    (".collapsed", ExportFormat::Collapsed),
    (".parquet", ExportFormat::Parquet),
];
/// Those of reports.
const REPORTS: [&str; 4] = [".html", ".htm", ".md", ".markdown"];

impl ExportFormat {
    /// The format that a file's name asks for; a folder is for tables.
    pub fn of(path: &Path) -> Result<ExportFormat, String> {
        let shown = path.display().to_string();
        if path.is_dir() || shown.ends_with('/') {
            return Ok(ExportFormat::Parquet);
        }
        let name = shown.to_ascii_lowercase();
        if let Some((_, format)) = EXTENSIONS.iter().find(|(ending, _)| name.ends_with(ending)) {
            return Ok(*format);
        }
        if REPORTS.iter().any(|ending| name.ends_with(ending)) {
            return Err(format!("{shown} would be a report: write it with `inferscope analyze --output {shown}`"));
        }
        Err(format!("cannot infer the format from {shown}: add --format {}", names()))
    }

    /// Not for a terminal: the extension that its files usually have.
    pub fn binary(self) -> Option<&'static str> {
        match self {
            ExportFormat::Perfetto => Some(".pftrace"),
            ExportFormat::Pprof => Some(".pb.gz"),
            _ => None,
        }
    }

    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

/// All formats, for a sentence.
pub fn names() -> String {
    let names: Vec<String> = ExportFormat::value_variants().iter().map(|format| format.name()).collect();
    let (last, others) = names.split_last().map_or((String::new(), &[][..]), |(last, others)| (last.clone(), others));
    format!("{} or {last}", others.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_asks_for_a_format() {
        let of = |name: &str| ExportFormat::of(Path::new(name));
        assert_eq!(of("x.pftrace"), Ok(ExportFormat::Perfetto));
        assert_eq!(of("x.json"), Ok(ExportFormat::Json));
        assert_eq!(of("x.Speedscope.JSON"), Ok(ExportFormat::Speedscope));
        assert_eq!(of("x.chrome.json"), Ok(ExportFormat::Chrome));
        assert_eq!(of("a/x.pb.gz"), Ok(ExportFormat::Pprof));
        assert_eq!(of("x.folded"), Ok(ExportFormat::Collapsed));
        assert_eq!(of("tables/"), Ok(ExportFormat::Parquet));
        assert!(of("x.html").unwrap_err().contains("inferscope analyze --output x.html"));
        assert!(of("x").unwrap_err().ends_with("collapsed, pprof or parquet"), "{:?}", of("x"));
    }
}
