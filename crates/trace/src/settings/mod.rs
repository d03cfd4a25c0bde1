//! The settings: one row each, with its flag, variable, YAML key, default, range and help ([`table`]). The command makes its
//! flags, its file's keys and `config show` from the rows, the libraries in the workload read their variables by them, and the
//! documentation and the Python package's `start()` are written from them ([`pages`]).

mod choices;
pub mod internal;
pub mod pages;
mod table;
mod value;

pub use choices::{Budget, Calls, GpuDetail, truth};
pub use table::{MOST_TRACE_SIZE_MB, Reading, Recording};
pub use value::{Accepts, Value};

/// What every variable of ours begins with.
pub const PREFIX: &str = "INFERSCOPE_";

/// Shared memory for what a process's CUDA library records, in MB: it is another library, with a segment of its own.
/// 64 MB are enough for seconds of the fastest launches, and little enough to go unnoticed.
pub fn cuda_size_mb(size_mb: u32) -> u32 {
    size_mb.min(64)
}

/// All rows, in the order in which they are shown.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    Recording::ROWS.iter().chain(Reading::ROWS)
}

/// Values of some rows, by name.
pub trait Group: Default {
    const ROWS: &'static [Setting];
    /// Takes a value as it was written; false, and nothing changes, where it is none that the setting accepts.
    fn set(&mut self, setting: &Setting, words: &[String]) -> bool;
    /// The value as it would be written.
    fn text(&self, setting: &Setting) -> String;

    /// As [`text`](Group::text), of the default; None if the setting is another group's.
    fn default_text(setting: &Setting) -> Option<String> {
        let ours = Self::ROWS.iter().any(|row| row.field == setting.field);
        ours.then(|| Self::default().text(setting))
    }
}

/// Which commands have the flags of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commands {
    /// Those that record; `start()` of the Python package has it as an argument.
    Recording,
    /// Those that open a trace.
    Reading,
    /// Those that print tables.
    Tables,
    Every,
}

/// How a setting is written on a command line.
#[derive(Clone, Copy, Debug)]
pub enum Flags {
    /// It has none.
    None,
    /// `--rate HZ`; the value can be left out (`--layers`) where the setting is a switch.
    Value { long: &'static str, value: &'static str, short: Option<char> },
    /// Each stands for one value: `--no-stacks`.
    Words(&'static [Word]),
}

/// A flag that stands for one value of its setting.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub long: &'static str,
    pub short: Option<char>,
    pub stands_for: &'static str,
    pub help: &'static str,
    /// Flags that cannot be given with it.
    pub conflicts: &'static [&'static str],
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// In the struct of its group; of `start()` in the Python package.
    pub field: &'static str,
    /// In `.inferscope.yaml`; in capitals, with [`PREFIX`], its variable.
    pub key: &'static str,
    pub accepts: Accepts,
    pub commands: Commands,
    pub flags: Flags,
    /// What the default is called, where the value alone does not say it.
    default_is: Option<&'static str>,
    /// One line; `{range}` stands for what the setting accepts.
    help: &'static str,
    /// What the documentation says besides.
    pub detail: &'static str,
    /// The collectors in the workload are told its value.
    pub told: bool,
    /// It says what is recorded from inside the process alone: `attach` has none of it.
    pub inside_only: bool,
    /// Why it cannot be set in a file, where it cannot.
    pub not_in_file: Option<&'static str>,
}

impl Setting {
    const fn new(commands: Commands, accepts: Accepts, help: &'static str) -> Setting {
        Setting {
            field: "",
            key: "",
            accepts,
            commands,
            flags: Flags::None,
            default_is: None,
            help,
            detail: "",
            told: false,
            inside_only: false,
            not_in_file: None,
        }
    }

    const fn flag(mut self, long: &'static str, value: &'static str) -> Setting {
        self.flags = Flags::Value { long, value, short: None };
        self
    }

    const fn short(mut self, letter: char) -> Setting {
        if let Flags::Value { long, value, .. } = self.flags {
            self.flags = Flags::Value { long, value, short: Some(letter) };
        }
        self
    }

    const fn words(mut self, words: &'static [Word]) -> Setting {
        self.flags = Flags::Words(words);
        self
    }

    /// Where the key is not the field's name.
    const fn key(mut self, key: &'static str) -> Setting {
        self.key = key;
        self
    }

    const fn default_is(mut self, words: &'static str) -> Setting {
        self.default_is = Some(words);
        self
    }

    const fn detail(mut self, detail: &'static str) -> Setting {
        self.detail = detail;
        self
    }

    const fn told(mut self) -> Setting {
        self.told = true;
        self
    }

    const fn inside_only(mut self) -> Setting {
        self.inside_only = true;
        self.told()
    }

    const fn not_in_file(mut self, why: &'static str) -> Setting {
        self.not_in_file = Some(why);
        self
    }

    /// In the struct of its group.
    const fn named(mut self, field: &'static str) -> Setting {
        self.field = field;
        if self.key.is_empty() {
            self.key = field;
        }
        self
    }

    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.key.to_uppercase())
    }

    /// What it is for, in one line.
    pub fn help(&self) -> String {
        self.help.replace("{range}", &self.accepts.range())
    }

    /// What the default is called; None where that goes without saying.
    pub fn default_words(&self) -> Option<String> {
        let default = || Recording::default_text(self).or_else(|| Reading::default_text(self)).unwrap_or_default();
        let words = self.default_is.map_or_else(default, str::to_owned);
        Some(words).filter(|words| !words.is_empty())
    }
}

#[cfg(test)]
mod tests;
