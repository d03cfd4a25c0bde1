//! A code as a trace spells it. What a later version writes and this one does not know is kept as it stands there.

use std::fmt;
use std::ops::Deref;

/// A closed list of codes with names.
pub trait Code: Copy + Eq {
    fn name(self) -> &'static str;
    fn from_name(name: &str) -> Option<Self>;
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Spelled<C> {
    Known(C),
    Other(Box<str>),
}

impl<C: Code> Spelled<C> {
    pub fn as_str(&self) -> &str {
        match self {
            Spelled::Known(code) => code.name(),
            Spelled::Other(text) => text,
        }
    }

    pub fn known(&self) -> Option<C> {
        match self {
            Spelled::Known(code) => Some(*code),
            Spelled::Other(_) => None,
        }
    }
}

impl<C: Code> Default for Spelled<C> {
    fn default() -> Spelled<C> {
        "".into()
    }
}

impl<C> From<C> for Spelled<C>
where
    C: Code,
{
    fn from(code: C) -> Spelled<C> {
        Spelled::Known(code)
    }
}

impl<C: Code> From<&str> for Spelled<C> {
    fn from(text: &str) -> Spelled<C> {
        C::from_name(text).map_or_else(|| Spelled::Other(text.into()), Spelled::Known)
    }
}

impl<C: Code> From<String> for Spelled<C> {
    fn from(text: String) -> Spelled<C> {
        text.as_str().into()
    }
}

impl<C: Code> PartialEq<C> for Spelled<C> {
    fn eq(&self, code: &C) -> bool {
        self.known() == Some(*code)
    }
}

impl<C: Code> fmt::Display for Spelled<C> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// It reads like its name.
impl<C: Code> Deref for Spelled<C> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use crate::codes::{CollectorCode, Condition, Spelled};

    #[test]
    fn what_is_not_known_stays_as_it_is_written() {
        let known: Spelled<CollectorCode> = "stacks".into();
        assert!(known == CollectorCode::Stacks && known.as_str() == "stacks");
        let later: Spelled<Condition> = "paused".into();
        assert_eq!((later.known(), later.to_string()), (None, "paused".into()));
        assert!(later != Condition::Off && Spelled::<Condition>::default().is_empty());
    }
}
