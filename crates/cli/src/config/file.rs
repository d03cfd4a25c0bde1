//! Reads `.inferscope.yaml`: a flat map of keys to words or lists. What is wrong with it is said with file and line.

use super::{Layer, Origin, Raw};
use crate::failure::Failure;
use crate::yaml;
use analysis::spelling::nearest_of;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;
use std::path::Path;
use trace::settings::all;

pub const NAME: &str = ".inferscope.yaml";
const RIGHT: &str = "settings are lines such as `rate_hz: 250`";

pub fn read(path: &Path, file: std::io::Result<std::fs::File>) -> Result<Layer, Failure> {
    let text = yaml::text(path, file, "settings").map_err(Failure::usage)?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Layer, Failure> {
    let map: Vec<(Spanned<String>, Word)> = match yaml::is_blank(text) {
        true => Vec::new(),
        false => {
            serde_saphyr::from_str_with_options::<Pairs>(text, yaml::options())
                .map_err(|error| Failure::usage(yaml::syntax(path, &error, RIGHT)))?
                .0
        }
    };
    let mut layer = Layer::default();
    for (name, value) in map {
        let line = name.referenced.line();
        let at = || format!("{}:{line}", path.display());
        let Some(setting) = all().find(|setting| setting.key == name.value) else {
            let word: String = name.value.chars().take(60).flat_map(char::escape_debug).collect();
            let near = nearest_of(&name.value, all().map(|setting| setting.key));
            let hint =
                near.map_or("`inferscope config show` lists the keys".into(), |near| format!("did you mean {near}?"));
            return Err(Failure::usage(format!("{}: there is no setting {word}: {hint}", at())));
        };
        let key = setting.key;
        if let Some(why) = setting.not_in_file {
            return Err(Failure::usage(format!("{}: {key} cannot be set in a file: {why}", at())));
        }
        let origin = Origin::File { path: path.to_owned(), line };
        if let Some(raw) = value.0
            && layer.values.insert(key, (raw, origin)).is_some()
        {
            return Err(Failure::usage(format!("{}: {key} is set twice", at())));
        }
    }
    Ok(layer)
}

/// Keys and values in their order, with the lines of the keys.
struct Pairs(Vec<(Spanned<String>, Word)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("keys and values")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Map)
    }
}

/// A word, a list of words, or nothing (`key:` alone leaves the key as it is).
struct Word(Option<Raw>);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Word;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word, a number or a list of words")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Word, E> {
                Ok(Word(Some(vec![value.to_string()])))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Word, E> {
                Ok(Word(Some(vec![value.to_string()])))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Word, E> {
                Ok(Word(Some(vec![value.to_string()])))
            }
            fn visit_i128<E: Error>(self, value: i128) -> Result<Word, E> {
                Ok(Word(Some(vec![value.to_string()])))
            }
            fn visit_u128<E: Error>(self, value: u128) -> Result<Word, E> {
                Ok(Word(Some(vec![value.to_string()])))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Word, E> {
                Ok(Word(Some(vec![value.to_string()])))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Word, E> {
                Ok(Word(Some(vec![value.to_owned()])))
            }
            fn visit_unit<E: Error>(self) -> Result<Word, E> {
                Ok(Word(None))
            }
            fn visit_none<E: Error>(self) -> Result<Word, E> {
                Ok(Word(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Word, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element::<Word>()? {
                    words.extend(word.0.unwrap_or_default());
                }
                Ok(Word(Some(words)))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Layer, String> {
        parse(Path::new("x.yaml"), text).map_err(|failure| failure.message().to_owned())
    }

    #[test]
    fn words_numbers_and_lists_keep_their_lines() {
        let layer =
            parsed("# mine\nrate_hz: 250\ncalls: yes\ncalls_include: [a, b.c]\ntop:\nmemory_hz: 2.5\n").unwrap();
        let get = |key: &str| layer.values.get(key).map(|(raw, origin)| (raw.join("|"), origin.to_string()));
        assert_eq!(get("rate_hz"), Some(("250".into(), "x.yaml:2".into())));
        assert_eq!(get("calls"), Some(("true".into(), "x.yaml:3".into())));
        assert_eq!(get("calls_include"), Some(("a|b.c".into(), "x.yaml:4".into())));
        assert_eq!((get("top"), get("memory_hz").map(|value| value.0)), (None, Some("2.5".into())));
        for empty in ["", "\n\n", "# nothing\n---\n"] {
            assert_eq!(parsed(empty), Ok(Layer::default()));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let starts = [
            ("top: 3\nrate_hertz: 1", "x.yaml:2: there is no setting rate_hertz: did you mean rate_hz?"),
            ("rate_hz: [1, 2\n", "x.yaml:"),
            ("- a list", "x.yaml:1: expected mapping start; settings are lines such as"),
            ("just words", "x.yaml:1: "),
            ("\tx: 1", "x.yaml:"),
            ("a: &a [*a]", "x.yaml:"),
            ("rate_hz: {deep: 1}", "x.yaml:1"),
        ];
        for (text, start) in starts {
            let error = parsed(text).unwrap_err();
            assert!(error.starts_with(start), "{text:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let error = parsed("top: 3\nenable: true").unwrap_err();
        assert!(error.starts_with("x.yaml:2: enable cannot be set in a file") && error.contains("INFERSCOPE_ENABLE=1"));
        let error = parsed("rate_hz: 1\nrate_hz: 2\n").unwrap_err();
        assert_eq!(error, "x.yaml:2: rate_hz is set twice");
        let bomb = format!("a: &a [x]\n{}", "b: [*a]\n".repeat(50_000));
        assert!(parsed(&bomb).is_err());
    }
}
