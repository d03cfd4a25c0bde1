//! The levels from which rules speak: values with a reason, and what the user's file makes of them. A rule reads them from its case, so
//! that nothing but the settings of one diagnosis decides.

use crate::rule_code::RuleCode;
use std::collections::BTreeMap;

/// What a value is of, and how it is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A part from 0 to 1, said in percent.
    Share,
    /// Percent, 0 to 100.
    Percent,
    Count,
    /// So many times something else.
    Times,
    Nanoseconds,
    Bytes,
}

impl Unit {
    /// Exactly, where `phrase` rounds: it is what was set, and what a file would have to say.
    pub fn say(self, value: f64) -> String {
        // Without what binary fractions leave over: 7.000000000000001.
        let plain = |value: f64| ((value * 1e6).round() / 1e6).to_string();
        match self {
            Unit::Share => format!("{} %", plain(100.0 * value)),
            Unit::Percent => format!("{} %", plain(value)),
            Unit::Count | Unit::Times => plain(value),
            Unit::Nanoseconds => {
                let (number, unit) = match value {
                    ns if ns >= 1e9 => (ns / 1e9, "s"),
                    ns if ns >= 1e6 => (ns / 1e6, "ms"),
                    ns if ns >= 1e3 => (ns / 1e3, "µs"),
                    ns => (ns, "ns"),
                };
                format!("{} {unit}", plain(number))
            }
            Unit::Bytes => {
                let units =
                    [(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1e6, "MB"), (1.0, "bytes")];
                let whole = units.into_iter().find(|(size, _)| value >= *size && value % size == 0.0);
                let (size, unit) = whole.unwrap_or((1.0, "bytes"));
                format!("{} {unit}", plain(value / size))
            }
        }
    }

    /// How it is written in a file, for whoever wrote it otherwise.
    pub fn written(self) -> &'static str {
        match self {
            Unit::Share => "a share from 0 to 1",
            Unit::Percent => "percent from 0 to 100",
            Unit::Count => "a whole number from 1 to 1000000",
            Unit::Times => "a factor from 1 to 1000",
            Unit::Nanoseconds => "nanoseconds, at most a minute",
            Unit::Bytes => "bytes, at most a terabyte",
        }
    }

    fn fits(self, value: f64) -> bool {
        let most = match self {
            Unit::Share => 1.0,
            Unit::Percent => 100.0,
            Unit::Count => 1e6,
            Unit::Times => 1e3,
            Unit::Nanoseconds => 60e9,
            Unit::Bytes => 1e12,
        };
        // None is not many, and what is less than once as long is not longer.
        let least = if matches!(self, Unit::Count | Unit::Times) { 1.0 } else { 0.0 };
        (least..=most).contains(&value) && (self != Unit::Count || value.fract() == 0.0)
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Threshold {
    pub rule: RuleCode,
    /// As it is written in a file.
    pub name: &'static str,
    pub value: f64,
    pub unit: Unit,
    /// Why this value.
    pub reason: &'static str,
}

impl Threshold {
    pub const fn new(rule: RuleCode, name: &'static str, value: f64, unit: Unit, reason: &'static str) -> Threshold {
        Threshold { rule, name, value, unit, reason }
    }
}

/// What a user changed of our rules, each with the place where it is written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RuleSettings {
    off: BTreeMap<RuleCode, String>,
    values: BTreeMap<(RuleCode, &'static str), (f64, String)>,
}

impl RuleSettings {
    pub fn switch_off(&mut self, rule: RuleCode, origin: String) {
        self.off.insert(rule, origin);
    }

    /// The error says what would be right.
    pub fn set(&mut self, threshold: Threshold, value: f64, origin: String) -> Result<(), String> {
        if !threshold.unit.fits(value) {
            return Err(format!("{} must be {}, got {value}", threshold.name, threshold.unit.written()));
        }
        self.values.insert((threshold.rule, threshold.name), (value, origin));
        Ok(())
    }

    /// The value in force.
    pub fn value(&self, threshold: Threshold) -> f64 {
        self.changed(threshold).map_or(threshold.value, |(value, _)| *value)
    }

    /// Where its value comes from, if it is not ours.
    pub fn origin(&self, threshold: Threshold) -> Option<&str> {
        self.changed(threshold).map(|(_, origin)| origin.as_str())
    }

    /// Where the rule is switched off. None: it is on.
    pub fn off(&self, rule: RuleCode) -> Option<&str> {
        self.off.get(&rule).map(String::as_str)
    }

    /// How many rules are off, and how many values are changed.
    pub fn counts(&self) -> (usize, usize) {
        (self.off.len(), self.values.len())
    }

    /// Every change in a few words: `hot-line is off (rules.yaml:3)`, `launch-bound min_share is 0.2 (rules.yaml:5)`.
    pub fn changes(&self) -> Vec<String> {
        let off = self.off.iter().map(|(rule, origin)| format!("{rule} is off ({origin})"));
        let values = self.values.iter();
        off.chain(values.map(|((rule, name), (value, origin))| format!("{rule} {name} is {value} ({origin})")))
            .collect()
    }

    fn changed(&self, threshold: Threshold) -> Option<&(f64, String)> {
        self.values.get(&(threshold.rule, threshold.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: RuleCode = RuleCode::new("a-rule");
    const MIN_SHARE: Threshold = Threshold::new(RULE, "min_share", 0.1, Unit::Share, "because");

    #[test]
    fn a_changed_value_is_in_force_with_its_origin() {
        let mut settings = RuleSettings::default();
        assert_eq!((settings.value(MIN_SHARE), settings.origin(MIN_SHARE), settings.off(RULE)), (0.1, None, None));
        settings.set(MIN_SHARE, 0.2, "r.yaml:3".into()).unwrap();
        settings.switch_off(RULE, "r.yaml:2".into());
        assert_eq!((settings.value(MIN_SHARE), settings.origin(MIN_SHARE)), (0.2, Some("r.yaml:3")));
        assert_eq!(settings.changes(), ["a-rule is off (r.yaml:2)", "a-rule min_share is 0.2 (r.yaml:3)"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let count = Threshold { unit: Unit::Count, name: "min_steps", ..MIN_SHARE };
        for (threshold, value) in [(MIN_SHARE, 1.5), (MIN_SHARE, -0.1), (MIN_SHARE, f64::NAN), (count, 2.5)] {
            let why = RuleSettings::default().set(threshold, value, String::new()).unwrap_err();
            assert!(why.contains("must be") && why.contains(threshold.name), "{why}");
        }
    }

    #[test]
    fn values_read_well() {
        let said =
            [Unit::Share.say(0.07), Unit::Share.say(0.33), Unit::Nanoseconds.say(20_000.0), Unit::Times.say(1.1)];
        assert_eq!(said, ["7 %", "33 %", "20 µs", "1.1"]);
        assert_eq!((Unit::Bytes.say(1_048_576.0), Unit::Count.say(8.0)), ("1 MiB".into(), "8".into()));
    }
}
