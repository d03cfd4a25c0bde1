//! The keys that there are, and how the text of a value becomes a value. One error for all sources: where it stands, what it
//! says, and what would be right.

use super::{Layer, Origin, Raw};
use crate::failure::Failure;
use recorder::{Budget, Calls, GpuDetail};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use trace::settings::truth;

pub struct Key {
    pub name: &'static str,
    pub what: &'static str,
}

impl Key {
    /// The environment variable of a key.
    pub fn variable(&self) -> String {
        format!("INFERSCOPE_{}", self.name.to_uppercase())
    }
}

const fn key(name: &'static str, what: &'static str) -> Key {
    Key { name, what }
}

pub const KEYS: &[Key] = &[
    key("output", "the trace's folder"),
    key("stacks", "sample stacks"),
    key("rate_hz", "stack samples a second"),
    key("native", "native frames below the Python ones"),
    key("calls", "every Python call: false, true, or c for C functions too"),
    key("calls_include", "only calls in these modules or paths"),
    key("calls_exclude", "no calls in these modules or paths"),
    key("calls_min_us", "no calls shorter than this"),
    key("trace_size_mb", "shared memory for each process; with CUDA as much again, up to 64"),
    key("memory_hz", "readings of memory and threads a second"),
    key("gpu_detail", "what is recorded of CUDA: off, kernel, launch or all"),
    key(
        "overhead_budget",
        "how much recording CUDA may cost, in percent; auto: 10, where it would be more; none: whatever it does",
    ),
    key("layers", "which nn.Module launched each kernel"),
    key("device_hz", "readings of each GPU's clocks, power and memory a second"),
    key("top", "rows in each table of the summary"),
    key("max_memory_mb", "memory that reading a trace may take; 0: what is free when it starts"),
    key("max_unpacked_mb", "what a packed trace (gzip) may unpack to"),
    key("color", "auto, always or never"),
    key("log_level", "error, warning, info, debug or trace"),
    key("enable", "the Python package records without `inferscope run`"),
];

/// Takes values out of a layer and remembers how each is shown.
pub struct Reader<'a> {
    pub layer: &'a Layer,
    pub shown: Vec<(&'static str, String, Origin)>,
}

impl Reader<'_> {
    /// The value of a key, read by `parse`, or the default; `parse` says what would be right.
    fn take<T>(
        &mut self,
        name: &'static str,
        default: T,
        parse: impl FnOnce(&Raw) -> Result<T, String>,
        show: impl FnOnce(&T) -> String,
    ) -> Result<T, Failure> {
        let (value, origin) = match self.layer.values.get(name) {
            None => (default, Origin::Default),
            Some((raw, origin)) => match parse(raw) {
                Ok(value) => (value, origin.clone()),
                Err(right) => return Err(Failure::usage(wrong(name, raw, origin, &right))),
            },
        };
        self.shown.push((name, show(&value), origin));
        Ok(value)
    }

    pub fn whole(
        &mut self,
        name: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
        hint: &str,
    ) -> Result<u64, Failure> {
        let right = format!("must be a whole number from {} to {} ({hint})", range.start(), range.end());
        let parse = |raw: &Raw| one(raw).and_then(|text| text.parse().ok()).filter(|n| range.contains(n)).ok_or(right);
        self.take(name, default, parse, u64::to_string)
    }

    pub fn number(&mut self, name: &'static str, default: f64, range: RangeInclusive<f64>) -> Result<f64, Failure> {
        let right = format!("must be a number from {} to {}", range.start(), range.end());
        let parse = |raw: &Raw| one(raw).and_then(|text| text.parse().ok()).filter(|n| range.contains(n)).ok_or(right);
        self.take(name, default, parse, f64::to_string)
    }

    pub fn truth(&mut self, name: &'static str, default: bool) -> Result<bool, Failure> {
        let parse = |raw: &Raw| one(raw).and_then(truth).ok_or_else(|| "must be true or false".into());
        self.take(name, default, parse, bool::to_string)
    }

    pub fn calls(&mut self, name: &'static str) -> Result<Calls, Failure> {
        let parse = |raw: &Raw| {
            let right = || "must be true, false, or c for calls of C functions too".into();
            one(raw).and_then(Calls::parse).ok_or_else(right)
        };
        self.take(name, Calls::default(), parse, Calls::to_string)
    }

    pub fn gpu_detail(&mut self, name: &'static str) -> Result<GpuDetail, Failure> {
        let parse = |raw: &Raw| {
            one(raw).and_then(GpuDetail::parse).ok_or_else(|| {
                "must be off, kernel (what devices did), launch (and the calls that asked for it) or all (every call)".into()
            })
        };
        self.take(name, GpuDetail::default(), parse, |detail| detail.name().into())
    }

    /// A share (`2`, `2%` or `2.5 %`), `auto` or `none`.
    pub fn budget(&mut self, name: &'static str) -> Result<Budget, Failure> {
        let parse = |raw: &Raw| {
            let right = || "must be a percentage from 0.1 to 100, such as 2%, or auto, or none".into();
            one(raw).and_then(Budget::parse).ok_or_else(right)
        };
        self.take(name, Budget::default(), parse, Budget::to_string)
    }

    pub fn choice(&mut self, name: &'static str, default: &str, choices: &[&str]) -> Result<String, Failure> {
        let parse = |raw: &Raw| {
            let text = one(raw).map(str::to_lowercase);
            text.filter(|text| choices.contains(&text.as_str()))
                .ok_or_else(|| format!("must be {}", choices.join(" or ")))
        };
        self.take(name, default.to_owned(), parse, String::clone)
    }

    /// Several, or one text with commas.
    pub fn list(&mut self, name: &'static str) -> Result<Vec<String>, Failure> {
        let parse = |raw: &Raw| {
            let parts = raw.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|part| !part.is_empty());
            Ok(parts.map(str::to_owned).collect())
        };
        self.take(
            name,
            Vec::new(),
            parse,
            |list: &Vec<String>| if list.is_empty() { "-".into() } else { list.join(",") },
        )
    }

    pub fn path(&mut self, name: &'static str) -> Result<Option<PathBuf>, Failure> {
        let parse = |raw: &Raw| match one(raw) {
            // What is not text came as this character from the environment: that path does not exist.
            Some(text) if text.contains(char::REPLACEMENT_CHARACTER) => Err("must be text: use --output".into()),
            Some(text) if !text.is_empty() => Ok(Some(PathBuf::from(text))),
            _ => Err("must be the path of a folder".into()),
        };
        self.take(name, None, parse, |path| path.as_ref().map_or("-".into(), |path| path.display().to_string()))
    }

    pub fn in_order(mut self) -> Vec<(&'static str, String, Origin)> {
        self.shown.sort_by_key(|(name, ..)| KEYS.iter().position(|key| key.name == *name));
        self.shown
    }
}

fn one(raw: &Raw) -> Option<&str> {
    if let [text] = &raw[..] { Some(text) } else { None }
}

fn wrong(name: &str, raw: &Raw, origin: &Origin, right: &str) -> String {
    let text = raw.join(",");
    let text: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    match origin {
        Origin::Flag(flag) => format!("{flag} {text}: {right}"),
        Origin::Environment(variable) => format!("{variable}={text}: {right}"),
        Origin::File { .. } | Origin::Default => format!("{origin}: {name}: {text}: {right}"),
    }
}
