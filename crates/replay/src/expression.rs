//! What a person may ask: `remove sync-api; scale kernel:flash* 0.5`. A wrong expression is refused with the position of the
//! word that is wrong and the nearest one that is known.

use analysis::spelling::distance;
use std::fmt;
use timeline::TrackIndex;

#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// The factor is 0 for what is removed.
    Scale(Target, f64),
    PinCopies,
    GraphSteps,
    /// What only a rule can name. What the host does in stretches of threads, but for calls that wait for a device.
    Stretches(Vec<(TrackIndex, u64, u64)>, f64),
    /// CUDA calls by their slices: they take their time by the factor, and wait for nothing.
    Calls(Vec<u32>, f64),
    /// Work by its index.
    Work(Vec<u32>, f64),
    /// Work that waits for nothing but the work before it starts as soon after that as this trace shows.
    CloseGaps,
    /// All that the steps' threads do, but for calls that wait for a device.
    HostCode(f64),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Every `…Synchronize` call.
    SyncApi,
    /// Patterns with `*`.
    Kernel(String),
    Copy(String),
    Api(String),
    Host(String),
}

impl Change {
    /// It names nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Change::Stretches(all, _) => all.is_empty(),
            Change::Calls(all, _) | Change::Work(all, _) => all.is_empty(),
            _ => false,
        }
    }
}

/// Where, as a column counted from one, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    pub position: usize,
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "column {}: {}", self.position, self.why)
    }
}

const VERBS: [&str; 4] = ["remove", "scale", "pin", "graph"];
const TARGETS: [&str; 5] = ["sync-api", "kernel:", "copy:", "api:", "host:"];
/// More changes than anybody can judge at once are a mistake.
const MOST: usize = 32;

type Word<'a> = (usize, &'a str);

pub fn parse(text: &str) -> Result<Vec<Change>, Wrong> {
    let mut changes = Vec::new();
    let mut from = 1;
    for part in text.split(';') {
        changes.push(change(&words(part, from), from + part.chars().count())?);
        if changes.len() > MOST {
            return Err(Wrong { position: from, why: format!("more than {MOST} changes at once") });
        }
        from += part.chars().count() + 1;
    }
    Ok(changes)
}

/// Words with their positions; a name with spaces stands in quotes.
fn words(text: &str, first: usize) -> Vec<Word<'_>> {
    let (mut words, mut start, mut quoted) = (Vec::new(), None, false);
    for (position, (byte, letter)) in text.char_indices().enumerate() {
        quoted ^= letter == '"';
        if letter.is_whitespace() && !quoted {
            if let Some((position, from)) = start.take() {
                words.push((first + position, &text[from..byte]));
            }
        } else if start.is_none() {
            start = Some((position, byte));
        }
    }
    if let Some((position, from)) = start {
        words.push((first + position, &text[from..]));
    }
    words
}

fn change(words: &[Word], end: usize) -> Result<Change, Wrong> {
    let wrong = |position: usize, why: String| Err(Wrong { position, why });
    let Some((verb, rest)) = words.split_first() else {
        return wrong(end, format!("expected a change: {}", VERBS.join(", ")));
    };
    let none_left = |rest: &[Word]| match rest.first() {
        Some((position, word)) => wrong(*position, format!("unexpected {word:?}: separate changes with `;`")),
        None => Ok(Change::PinCopies),
    };
    let only = |wanted: &str, change: Change| match rest.first() {
        Some((_, word)) if *word == wanted => none_left(&rest[1..]).map(|_| change),
        Some((position, word)) => wrong(*position, format!("unknown word {word:?}; did you mean {wanted:?}?")),
        None => wrong(end, format!("expected {wanted:?} after {:?}", verb.1)),
    };
    match verb.1 {
        "pin" => only("copies", Change::PinCopies),
        "graph" => only("steps", Change::GraphSteps),
        "remove" => {
            let target = target(rest.first(), end)?;
            none_left(&rest[1..])?;
            Ok(Change::Scale(target, 0.0))
        }
        "scale" => {
            let target = target(rest.first(), end)?;
            let Some((position, factor)) = rest.get(1) else {
                return wrong(end, "expected a factor: 0.5 halves the time, 2 doubles it".into());
            };
            let factor: f64 = match factor.parse() {
                Ok(factor) if (0.0..=1000.0).contains(&factor) => factor,
                _ => return wrong(*position, format!("the factor must be from 0 to 1000, got {factor:?}")),
            };
            none_left(&rest[2..])?;
            Ok(Change::Scale(target, factor))
        }
        other => wrong(verb.0, unknown(other, &VERBS)),
    }
}

fn target(word: Option<&Word>, end: usize) -> Result<Target, Wrong> {
    let Some((position, word)) = word else {
        return Err(Wrong { position: end, why: format!("expected what to change: {}", TARGETS.join(", ")) });
    };
    let (kind, name) = word.split_once(':').map_or((*word, None), |(kind, name)| (kind, Some(name.replace('"', ""))));
    let named = |name: String| match name.is_empty() {
        true => {
            Err(Wrong { position: position + kind.chars().count() + 1, why: format!("expected a name after {kind}:") })
        }
        false => Ok(name),
    };
    match (kind, name) {
        ("sync-api", None) => Ok(Target::SyncApi),
        ("kernel", Some(name)) => named(name).map(Target::Kernel),
        ("copy", Some(name)) => named(name).map(Target::Copy),
        ("api", Some(name)) => named(name).map(Target::Api),
        ("host", Some(name)) => named(name).map(Target::Host),
        _ => Err(Wrong { position: *position, why: unknown(word, &TARGETS) }),
    }
}

fn unknown(word: &str, known: &[&str]) -> String {
    let near =
        known.iter().min_by_key(|one| distance(word, one)).filter(|one| distance(word, one) <= one.len() / 2 + 1);
    match near {
        Some(near) => format!("unknown word {word:?}; did you mean {near:?}?"),
        None => format!("unknown word {word:?}; expected one of {}", known.join(", ")),
    }
}

/// Whether a name is what a pattern with `*` means.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read() {
        assert_eq!(
            parse("remove sync-api; scale kernel:flash* 0.5 ;pin copies;graph steps").unwrap(),
            [
                Change::Scale(Target::SyncApi, 0.0),
                Change::Scale(Target::Kernel("flash*".into()), 0.5),
                Change::PinCopies,
                Change::GraphSteps
            ]
        );
        let spaced = Change::Scale(Target::Copy("Memcpy HtoD*".into()), 0.0);
        assert_eq!(parse("remove copy:\"Memcpy HtoD*\"").unwrap(), [spaced]);
    }

    #[test]
    fn wrong_ones_are_refused_with_position_and_the_nearest_word() {
        for (text, said) in [
            ("", "column 1: expected a change: remove, scale, pin, graph"),
            ("remove sync-api;", "column 17: expected a change: remove, scale, pin, graph"),
            ("remvoe sync-api", "column 1: unknown word \"remvoe\"; did you mean \"remove\"?"),
            ("remove  sink-api", "column 9: unknown word \"sink-api\"; did you mean \"sync-api\"?"),
            ("remove kernel:", "column 15: expected a name after kernel:"),
            ("remove", "column 7: expected what to change: sync-api, kernel:, copy:, api:, host:"),
            ("remove sync-api now", "column 17: unexpected \"now\": separate changes with `;`"),
            ("scale kernel:a", "column 15: expected a factor: 0.5 halves the time, 2 doubles it"),
            ("scale kernel:a half", "column 16: the factor must be from 0 to 1000, got \"half\""),
            ("scale kernel:a NaN", "column 16: the factor must be from 0 to 1000, got \"NaN\""),
            ("scale kernel:a -1", "column 16: the factor must be from 0 to 1000, got \"-1\""),
            ("pin copy", "column 5: unknown word \"copy\"; did you mean \"copies\"?"),
            ("pin copies; graph", "column 18: expected \"steps\" after \"graph\""),
            ("überall x", "column 1: unknown word \"überall\"; expected one of remove, scale, pin, graph"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), said);
        }
        assert!(parse(&"pin copies;".repeat(40)).unwrap_err().why.contains("more than 32"));
    }

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, whether) in [
            ("flash*", "flash_fwd", true),
            ("flash", "flash_fwd", false),
            ("*gemm*", "sm90_gemm_tn", true),
            ("a*b", "ab", true),
            ("a*ba", "aba", true),
            ("ab*ba", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern, name), whether, "{pattern} {name}");
        }
    }
}
