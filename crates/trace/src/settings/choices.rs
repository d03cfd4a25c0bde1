//! Words that settings choose among, and how they are written. Both sides read and write them here, so that a word means the
//! same on both; what to do with a wrong one is theirs.

use std::fmt;

/// The words for yes, in capitals or not.
pub const YES: [&str; 4] = ["true", "1", "yes", "on"];
/// The words for no.
pub const NO: [&str; 4] = ["false", "0", "no", "off"];

/// Yes or no; None for any other word.
pub fn truth(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(YES) { Some(true) } else { is_one_of(NO).then_some(false) }
}

/// Which calls of functions are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Calls {
    #[default]
    Off,
    Python,
    /// C functions too.
    WithC,
}

impl Calls {
    pub fn parse(text: &str) -> Option<Calls> {
        match truth(text) {
            Some(true) => Some(Calls::Python),
            Some(false) => Some(Calls::Off),
            None => text.eq_ignore_ascii_case("c").then_some(Calls::WithC),
        }
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(match self {
            Calls::Off => "false",
            Calls::Python => "true",
            Calls::WithC => "c",
        })
    }
}

/// What is recorded of CUDA.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug, Default)]
pub enum GpuDetail {
    Off,
    /// What devices did.
    Kernel,
    /// And the calls that asked for it.
    #[default]
    Launch,
    /// And every other call of the CUDA API.
    All,
}

impl GpuDetail {
    pub const ALL: [GpuDetail; 4] = [GpuDetail::Off, GpuDetail::Kernel, GpuDetail::Launch, GpuDetail::All];

    pub fn name(self) -> &'static str {
        match self {
            GpuDetail::Off => "off",
            GpuDetail::Kernel => "kernel",
            GpuDetail::Launch => "launch",
            GpuDetail::All => "all",
        }
    }

    /// By name, or any word for no: YAML makes `false` of a plain `off`.
    pub fn parse(text: &str) -> Option<GpuDetail> {
        if truth(text) == Some(false) {
            return Some(GpuDetail::Off);
        }
        GpuDetail::ALL.into_iter().find(|detail| detail.name().eq_ignore_ascii_case(text))
    }
}

/// How much of the workload's time recording CUDA may cost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Budget {
    /// Everything is recorded, unless the program gives its GPU so much work that this would cost more than the collectors allow.
    #[default]
    Auto,
    /// Everything, whatever it costs.
    Unlimited,
    /// Windows from the start, so that it costs no more than so many per cent.
    Windows(f64),
}

impl Budget {
    /// `2`, `2%` or `2.5 %`, from a thousandth of the time to all of it; or `auto` or `none`.
    pub fn parse(text: &str) -> Option<Budget> {
        let text = text.trim();
        match text.to_lowercase().as_str() {
            "auto" => return Some(Budget::Auto),
            "none" => return Some(Budget::Unlimited),
            _ => {}
        }
        let percent = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>().ok()?;
        (0.1..=100.0).contains(&percent).then_some(Budget::Windows(percent))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::Auto => text.write_str("auto"),
            Budget::Unlimited => text.write_str("none"),
            Budget::Windows(percent) => write!(text, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_writes_the_other_reads() {
        for calls in [Calls::Off, Calls::Python, Calls::WithC] {
            assert_eq!(Calls::parse(&calls.to_string()), Some(calls));
        }
        for detail in GpuDetail::ALL {
            assert_eq!(GpuDetail::parse(detail.name()), Some(detail));
        }
        for budget in [Budget::Auto, Budget::Unlimited, Budget::Windows(2.5), Budget::Windows(0.1)] {
            assert_eq!(Budget::parse(&budget.to_string()), Some(budget));
        }
    }

    #[test]
    fn words_are_the_same_in_capitals_and_others_are_refused() {
        for (text, calls) in [("on", Calls::Python), ("YES", Calls::Python), ("No", Calls::Off), ("C", Calls::WithC)] {
            assert_eq!(Calls::parse(text), Some(calls), "{text}");
        }
        assert_eq!((Calls::parse("sometimes"), Calls::parse(""), Calls::parse("python")), (None, None, None));
        assert_eq!([GpuDetail::parse("ALL"), GpuDetail::parse("0")], [Some(GpuDetail::All), Some(GpuDetail::Off)]);
        assert_eq!([GpuDetail::parse("everything"), GpuDetail::parse("true"), GpuDetail::parse("")], [None; 3]);
        for text in ["0", "-2%", "101", "nan", "inf", "two", "", "2 percent"] {
            assert_eq!(Budget::parse(text), None, "{text}");
        }
    }
}
