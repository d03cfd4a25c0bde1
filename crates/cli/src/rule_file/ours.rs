//! `rules:` in a file of rules: our own rules switched off, or with other thresholds.

use super::tree::{Map, Tree};
use super::{File, line, plain};
use analysis::spelling::nearest_of;
use diagnosis::rules::RULES;
use diagnosis::{Rule, RuleSettings};
use serde_saphyr::Spanned;

pub const TOP: &str = "rules";
const ENABLED: &str = "enabled";

impl File<'_> {
    pub(super) fn ours(&mut self, value: &Spanned<Tree>) -> RuleSettings {
        let mut settings = RuleSettings::default();
        let map = match &value.value {
            Tree::Map(map) => map,
            Tree::Nothing => return settings,
            other => {
                let why = format!("{TOP} must be a map from rule codes to changes, got {}", other.shown());
                self.fault::<()>(line(value), why);
                return settings;
            }
        };
        for (place, (code, changes)) in map.iter().enumerate() {
            let Some(rule) = RULES.into_iter().find(|rule| rule.code() == code.value.as_str()) else {
                let near = nearest_of(&code.value, RULES.iter().map(|rule| rule.code().as_str()));
                let hint =
                    near.map_or("`inferscope rules list` shows all".into(), |near| format!("did you mean {near}?"));
                self.fault::<()>(line(code), format_args!("unknown rule {}: {hint}", plain(&code.value)));
                continue;
            };
            if map[..place].iter().any(|(before, _)| before.value == code.value) {
                self.fault::<()>(line(code), format_args!("{} is set twice", code.value));
            }
            match &changes.value {
                Tree::Map(changes) => self.changes(rule, changes, &mut settings),
                other => {
                    let why = format!("{} takes {}; got {}", rule.code(), keys(rule).join(", "), other.shown());
                    self.fault::<()>(line(changes), why);
                }
            }
        }
        settings
    }

    fn changes(&mut self, rule: &dyn Rule, changes: &Map, settings: &mut RuleSettings) {
        self.keys(changes, &keys(rule));
        for (key, value) in changes {
            let origin = format!("{}:{}", self.path.display(), line(key));
            if key.value == ENABLED {
                match &value.value {
                    Tree::Truth(true) => {}
                    Tree::Truth(false) => settings.switch_off(rule.code(), origin),
                    other => {
                        self.fault::<()>(
                            line(value),
                            format_args!("{ENABLED} must be true or false, got {}", other.shown()),
                        );
                    }
                }
                continue;
            }
            // What is no threshold was told with the keys.
            let Some(threshold) = rule.thresholds().iter().find(|one| one.name == key.value) else { continue };
            let set = match &value.value {
                Tree::Number(number) => settings.set(*threshold, *number, origin),
                other => Err(format!("{} must be {}, got {}", threshold.name, threshold.unit.written(), other.shown())),
            };
            if let Err(why) = set {
                self.fault::<()>(line(value), why);
            }
        }
    }
}

fn keys(rule: &dyn Rule) -> Vec<&'static str> {
    std::iter::once(ENABLED).chain(rule.thresholds().iter().map(|threshold| threshold.name)).collect()
}
