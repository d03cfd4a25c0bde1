//! The settings, in one place: read once, from flags, then `INFERSCOPE_*`, then `.inferscope.yaml` (searched upwards), then
//! defaults. Each value keeps its origin. A value that makes no sense is refused wherever it stands.

mod file;
mod key;
mod unknown;

use crate::failure::Failure;
use crate::found_file;
use key::KEYS;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use trace::settings::{SIZE_MB, SIZES_MB};

/// A petabyte: more than any machine has, and far from what a number holds.
const MOST_MB: u64 = 1 << 30;

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Origin {
    #[default]
    Default,
    File {
        path: PathBuf,
        line: u64,
    },
    Environment(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => f.write_str(name),
            Origin::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value as it was written: one word, or a list.
pub type Raw = Vec<String>;

/// Values of one source, or of several over each other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layer {
    values: HashMap<&'static str, (Raw, Origin)>,
}

impl Layer {
    pub fn flag(&mut self, key: &'static str, flag: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.values.insert(key, (vec![value.to_owned()], Origin::Flag(flag)));
        }
    }

    pub fn flag_list(&mut self, key: &'static str, flag: &'static str, values: &[String]) {
        if !values.is_empty() {
            self.values.insert(key, (values.to_vec(), Origin::Flag(flag)));
        }
    }

    fn environment(read: impl Fn(&str) -> Option<String>) -> Layer {
        let mut layer = Layer::default();
        for key in KEYS {
            let name = key.variable();
            if let Some(value) = read(&name).filter(|value| !value.is_empty()) {
                layer.values.insert(key.name, (vec![value], Origin::Environment(name)));
            }
        }
        layer
    }

    /// This layer with the other one on top.
    pub fn over(mut self, top: Layer) -> Layer {
        self.values.extend(top.values);
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogLevel {
    Error,
    Info,
    Debug,
}

/// What every command works with.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    pub recording: recorder::Settings,
    pub log_level: LogLevel,
    pub color: String,
    pub top: usize,
    /// Bytes that reading may take. None: what is free.
    pub max_memory: Option<u64>,
    pub limits: timeline::Limits,
    /// Each value as text, with its origin, in the order of `KEYS`.
    pub shown: Vec<(&'static str, String, Origin)>,
}

impl Settings {
    pub fn load(flags: Layer) -> Result<Settings, Failure> {
        let search = std::env::current_dir().ok().map(|folder| found_file::search(&folder, file::NAME));
        let search = search.unwrap_or_default();
        let file = search.found.map_or(Ok(Layer::default()), |(path, file)| file::read(&path, file))?;
        let environment = Layer::environment(|name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned()));
        let settings = Settings::from_layers(file, environment, flags)?;
        search.passed_over.iter().for_each(|why| settings.say(why));
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        unknown::warnings(names).into_iter().for_each(|warning| settings.say(warning));
        Ok(settings)
    }

    /// Of a file alone, or of none.
    #[cfg(test)]
    pub fn of_file(path: Option<&std::path::Path>) -> Result<Settings, Failure> {
        let file = path.map_or(Ok(Layer::default()), |path| file::read(path, std::fs::File::open(path)))?;
        Settings::from_layers(file, Layer::default(), Layer::default())
    }

    fn from_layers(file: Layer, environment: Layer, flags: Layer) -> Result<Settings, Failure> {
        // Each is read by itself first: a value that makes no sense is an error even where another one wins.
        for layer in [&file, &environment, &flags] {
            Settings::read(layer)?;
        }
        Settings::read(&file.over(environment).over(flags))
    }

    fn read(layer: &Layer) -> Result<Settings, Failure> {
        let mut reader = key::Reader { layer, shown: Vec::new() };
        let stacks = reader.truth("stacks", true)?;
        let rate_hz = reader.whole("rate_hz", 100, 1..=1000, "--no-stacks for none")?;
        let sizes = u64::from(*SIZES_MB.start())..=u64::from(*SIZES_MB.end());
        let recording = recorder::Settings {
            rate_hz: if stacks { rate_hz as u32 } else { 0 },
            native: reader.truth("native", false)?,
            calls: reader.calls("calls")?,
            include: reader.list("calls_include")?,
            exclude: reader.list("calls_exclude")?,
            min_us: reader.whole("calls_min_us", 0, 0..=60_000_000, "a minute in microseconds")?,
            trace_size_mb: reader.whole("trace_size_mb", SIZE_MB.into(), sizes, "64 GB")? as u32,
            memory_hz: reader.number("memory_hz", 10.0, 0.0..=100.0)?,
            gpu_detail: reader.gpu_detail("gpu_detail")?,
            overhead_budget: reader.budget("overhead_budget")?,
            layers: reader.truth("layers", false)?,
            device_hz: reader.number("device_hz", 10.0, 0.0..=100.0)?,
            output: reader.path("output")?,
        };
        let top = reader.whole("top", 12, 1..=100_000, "rows in each table")? as usize;
        let memory = reader.whole("max_memory_mb", 0, 0..=MOST_MB, "0 for what is free")?;
        let max_memory = Some(memory << 20).filter(|memory| *memory > 0);
        let unpacked = timeline::Limits::default().unpacked >> 20;
        let unpacked = reader.whole("max_unpacked_mb", unpacked, 1..=MOST_MB, "of any file")? << 20;
        let limits = timeline::Limits { unpacked };
        let color = reader.choice("color", "auto", &["auto", "always", "never"])?;
        let log_level =
            match reader.choice("log_level", "info", &["error", "warning", "info", "debug", "trace"])?.as_str() {
                "error" | "warning" => LogLevel::Error,
                "debug" | "trace" => LogLevel::Debug,
                _ => LogLevel::Info,
            };
        // Only the Python package acts on it; it stands here so that one place shows all.
        reader.truth("enable", false)?;
        Ok(Settings { recording, log_level, color, top, max_memory, limits, shown: reader.in_order() })
    }

    pub fn quiet(&self) -> bool {
        self.log_level == LogLevel::Error
    }

    /// A line on stderr, unless only errors are wanted.
    pub fn say(&self, text: impl fmt::Display) {
        if !self.quiet() {
            crate::terminal::say(text);
        }
    }

    pub fn debug(&self, text: impl FnOnce() -> String) {
        if self.log_level == LogLevel::Debug {
            crate::terminal::say(text());
        }
    }
}

/// What a key is for.
pub fn meaning(name: &str) -> &'static str {
    KEYS.iter().find(|key| key.name == name).map_or("", |key| key.what)
}

#[cfg(test)]
mod tests;
