//! The settings, in one place: read once, from flags, then `INFERSCOPE_*`, then `.inferscope.yaml` (searched upwards), then
//! defaults. Each value keeps its origin. A value that makes no sense is refused wherever it stands.

mod file;
mod unknown;

use crate::failure::Failure;
use crate::found_file;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use trace::settings::{Group, Reading, Setting, all};

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
    pub fn flag(&mut self, key: &'static str, flag: &'static str, words: &[String]) {
        self.values.insert(key, (words.to_vec(), Origin::Flag(flag)));
    }

    /// What a flag says, and which; None where it is left to others.
    pub fn given(&self, key: &str) -> Option<(&[String], &'static str)> {
        match self.values.get(key) {
            Some((words, Origin::Flag(flag))) => Some((words, flag)),
            _ => None,
        }
    }

    fn environment(read: impl Fn(&str) -> Option<String>) -> Layer {
        let mut layer = Layer::default();
        for setting in all() {
            let name = setting.variable();
            if let Some(value) = read(&name).filter(|value| !value.is_empty()) {
                layer.values.insert(setting.key, (vec![value], Origin::Environment(name)));
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
    /// Each value as text, with its origin, in the order of the table.
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
        let mut shown = Vec::new();
        let recording: recorder::Settings = read_group(layer, &mut shown)?;
        let reading: Reading = read_group(layer, &mut shown)?;
        Ok(Settings {
            recording,
            log_level: match reading.log_level.as_str() {
                "error" | "warning" => LogLevel::Error,
                "debug" | "trace" => LogLevel::Debug,
                _ => LogLevel::Info,
            },
            color: reading.color,
            top: reading.top as usize,
            max_memory: Some(reading.max_memory_mb << 20).filter(|memory| *memory > 0),
            limits: timeline::Limits { unpacked: reading.max_unpacked_mb << 20 },
            shown,
        })
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

/// The values of a group's rows, each read by its row; how it is shown goes to `shown`.
fn read_group<G: Group>(layer: &Layer, shown: &mut Vec<(&'static str, String, Origin)>) -> Result<G, Failure> {
    let mut group = G::default();
    for setting in G::ROWS {
        let origin = match layer.values.get(setting.key) {
            None => Origin::Default,
            Some((words, origin)) if group.set(setting, words) => origin.clone(),
            Some((words, origin)) => return Err(Failure::usage(wrong(setting, words, origin))),
        };
        let text = Some(group.text(setting)).filter(|text| !text.is_empty());
        shown.push((setting.key, text.unwrap_or_else(|| "-".into()), origin));
    }
    Ok(group)
}

/// One error for all sources: where it stands, what it says, and what would be right.
fn wrong(setting: &Setting, raw: &Raw, origin: &Origin) -> String {
    let text = raw.join(",");
    let right = setting.accepts.must_be(&text);
    let text: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    match origin {
        Origin::Flag(flag) => format!("{flag} {text}: {right}"),
        Origin::Environment(variable) => format!("{variable}={text}: {right}"),
        Origin::File { .. } | Origin::Default => format!("{origin}: {}: {text}: {right}", setting.key),
    }
}

/// What a key is for.
pub fn meaning(key: &str) -> String {
    all().find(|setting| setting.key == key).map(Setting::help).unwrap_or_default()
}

#[cfg(test)]
mod tests;
