//! Which fix is asked for, and what the command gets to have it.

use super::machine;
use analysis::spelling::nearest_of;
use diagnosis::fixes::{ChosenFix, FIXES, Switch};
use diagnosis::rules::RULES;
use std::ffi::OsString;
use trace::settings::internal;

/// Why there is no such fix.
pub enum Unknown {
    /// The rule is known, but its fix has to be written: what to do.
    Edit(String),
    Word(String),
}

/// Reads `NAME`, `RULE` or either with `=VALUE`.
pub fn choose(word: &str) -> Result<ChosenFix, Unknown> {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let named = |name: &str| FIXES.iter().find(|fix| fix.name == name);
    let rule = RULES.into_iter().find(|rule| rule.code() == name);
    let by_rule = || rule.and_then(|rule| Some((named(rule.fix()?)?, Some(rule.code()))));
    let Some((fix, rule)) = named(name).map(|fix| (fix, None)).or_else(by_rule) else {
        if let Some(rule) = rule {
            return Err(Unknown::Edit(super::edits::edit(rule)));
        }
        let words = FIXES.iter().map(|fix| fix.name).chain(RULES.iter().map(|rule| rule.code().as_str()));
        let near = nearest_of(name, words);
        let hint = near.map_or("`inferscope verify --list` shows all".into(), |near| format!("did you mean {near}?"));
        return Err(Unknown::Word(format!("there is no fix or rule {name:?}: {hint}")));
    };
    let value = machine::value(fix, value).map_err(Unknown::Word)?;
    Ok(ChosenFix { fix, rule, value })
}

/// The variables that switch the fix on in the command.
pub fn environment(chosen: &ChosenFix) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = vec![(internal::FIX.into(), chosen.fix.name.into())];
    let value = chosen.value.clone().unwrap_or_default();
    if !value.is_empty() {
        variables.push((internal::FIX_VALUE.into(), value.clone().into()));
    }
    if let Switch::Environment(names) = chosen.fix.switch {
        variables.extend(names.iter().map(|name| ((*name).into(), joined(name, &value))));
    }
    variables
}

/// The allocator's options are a list: those that are set already stay.
fn joined(name: &str, value: &str) -> OsString {
    let before = std::env::var(name).ok().filter(|before| name.ends_with("_ALLOC_CONF") && !before.is_empty());
    before.map_or_else(|| value.into(), |before| format!("{before},{value}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(word: &str) -> String {
        match choose(word).err().unwrap() {
            Unknown::Edit(text) | Unknown::Word(text) => text,
        }
    }

    #[test]
    fn by_name_or_by_rule() {
        let chosen = choose("gc-pauses").ok().unwrap();
        assert_eq!((chosen.fix.name, chosen.rule.unwrap().as_str()), ("gc-freeze", "gc-pauses"));
        assert_eq!(choose("tf32").ok().unwrap().rule, None);
        assert_eq!(environment(&chosen), [("INFERSCOPE_FIX".into(), "gc-freeze".into())]);
    }

    #[test]
    fn values_reach_every_variable() {
        let chosen = choose("threads=3").ok().unwrap();
        assert_eq!(chosen.title(), "threads=3");
        assert!(environment(&chosen).contains(&("OMP_NUM_THREADS".into(), "3".into())));
        assert!(environment(&chosen).contains(&("INFERSCOPE_FIX_VALUE".into(), "3".into())));
    }

    #[test]
    fn a_slip_is_told_and_an_edit_is_named() {
        assert!(refused("gc-freze").contains("did you mean gc-freeze?"), "{}", refused("gc-freze"));
        assert!(
            refused("implicit-sync").contains("needs a code change; `verify` cannot apply it"),
            "{}",
            refused("implicit-sync")
        );
        assert!(refused("threads=many").contains("threads=4"));
        assert!(refused("tf32=1").contains("takes no value"));
    }
}
