//! The name of a rule as a type. A rule's own file is the only one that spells it; all others refer to that file's `CODE`.

use std::fmt;

/// In kebab case, the same in every report, in JSON and on the command line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RuleCode(&'static str);

impl RuleCode {
    pub const fn new(code: &'static str) -> RuleCode {
        RuleCode(code)
    }

    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for RuleCode {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.pad(self.0)
    }
}

/// What a person typed, or what a test expects, against a code.
impl PartialEq<str> for RuleCode {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for RuleCode {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}
