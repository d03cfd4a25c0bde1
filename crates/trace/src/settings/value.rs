//! What the values of a setting can be, and how text becomes one. One rule for all sources: flags, variables and files.

use super::{Budget, Calls, GpuDetail, truth};
use std::path::PathBuf;
use std::str::FromStr;

/// What a setting accepts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Accepts {
    Whole {
        from: u64,
        to: u64,
        hint: &'static str,
    },
    Number {
        from: f64,
        to: f64,
    },
    Truth,
    Calls,
    GpuDetail,
    Budget,
    OneOf(&'static [&'static str]),
    /// Several words, or one text with commas.
    List,
    Folder,
}

impl Accepts {
    /// What would be right instead of this text: it begins with "must be".
    pub fn must_be(&self, text: &str) -> String {
        match self {
            Accepts::Whole { from, to, hint } => format!("must be a whole number from {from} to {to} ({hint})"),
            Accepts::Number { from, to } => format!("must be a number from {from} to {to}"),
            Accepts::Truth => "must be true or false".into(),
            Accepts::Calls => "must be true, false, or c for calls of C functions too".into(),
            Accepts::GpuDetail => {
                "must be off, kernel (what devices did), launch (and the calls that asked for it) or all \
                                   (every call)"
                    .into()
            }
            Accepts::Budget => "must be a percentage from 0.1 to 100, such as 2%, or auto, or none".into(),
            Accepts::OneOf(words) => format!("must be {}", words.join(" or ")),
            // What is not text came as this character from the environment: that path does not exist.
            Accepts::Folder if text.contains(char::REPLACEMENT_CHARACTER) => "must be text: use --output".into(),
            Accepts::Folder => "must be the path of a folder".into(),
            Accepts::List => "must be words with commas between them".into(),
        }
    }

    /// `1 to 1000`, or the words that there are.
    pub fn range(&self) -> String {
        match self {
            Accepts::Whole { from, to, .. } => format!("{from} to {to}"),
            Accepts::Number { from, to } => format!("{from} to {to}"),
            Accepts::OneOf([words @ .., last]) => format!("{} or {last}", words.join(", ")),
            _ => String::new(),
        }
    }

    /// On or off, with a word more perhaps: on a command line the flag alone is a yes.
    pub fn is_switch(&self) -> bool {
        matches!(self, Accepts::Truth | Accepts::Calls)
    }
}

/// A value of a setting.
pub trait Value: Sized {
    /// None: it accepts something else.
    fn read(words: &[String], accepts: &Accepts) -> Option<Self>;
    /// As it would be written; nothing where there is none.
    fn text(&self) -> String;
}

fn one(words: &[String]) -> Option<&str> {
    if let [text] = words { Some(text) } else { None }
}

fn whole<N: TryFrom<u64>>(words: &[String], accepts: &Accepts) -> Option<N> {
    let &Accepts::Whole { from, to, .. } = accepts else { return None };
    let number = u64::from_str(one(words)?).ok()?;
    (from..=to).contains(&number).then(|| N::try_from(number).ok())?
}

impl Value for u32 {
    fn read(words: &[String], accepts: &Accepts) -> Option<u32> {
        whole(words, accepts)
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for u64 {
    fn read(words: &[String], accepts: &Accepts) -> Option<u64> {
        whole(words, accepts)
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for f64 {
    fn read(words: &[String], accepts: &Accepts) -> Option<f64> {
        let &Accepts::Number { from, to } = accepts else { return None };
        f64::from_str(one(words)?).ok().filter(|number| (from..=to).contains(number))
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn read(words: &[String], _: &Accepts) -> Option<bool> {
        truth(one(words)?)
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for Calls {
    fn read(words: &[String], _: &Accepts) -> Option<Calls> {
        Calls::parse(one(words)?)
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for GpuDetail {
    fn read(words: &[String], _: &Accepts) -> Option<GpuDetail> {
        GpuDetail::parse(one(words)?)
    }
    fn text(&self) -> String {
        self.name().into()
    }
}

impl Value for Budget {
    fn read(words: &[String], _: &Accepts) -> Option<Budget> {
        Budget::parse(one(words)?)
    }
    fn text(&self) -> String {
        self.to_string()
    }
}

/// One of some words, in capitals or not.
impl Value for String {
    fn read(words: &[String], accepts: &Accepts) -> Option<String> {
        let Accepts::OneOf(known) = accepts else { return None };
        Some(one(words)?.to_lowercase()).filter(|word| known.contains(&word.as_str()))
    }
    fn text(&self) -> String {
        self.clone()
    }
}

impl Value for Vec<String> {
    fn read(words: &[String], _: &Accepts) -> Option<Vec<String>> {
        let parts = words.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|part| !part.is_empty());
        Some(parts.map(str::to_owned).collect())
    }
    fn text(&self) -> String {
        self.join(",")
    }
}

impl Value for Option<PathBuf> {
    fn read(words: &[String], _: &Accepts) -> Option<Option<PathBuf>> {
        let text = one(words).filter(|text| !text.is_empty() && !text.contains(char::REPLACEMENT_CHARACTER))?;
        Some(Some(PathBuf::from(text)))
    }
    fn text(&self) -> String {
        self.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }
}
