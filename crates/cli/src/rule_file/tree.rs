//! YAML as a tree that keeps the line of every value, so that what is wrong can be said with its place.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;

pub type Map = Vec<(Spanned<String>, Spanned<Tree>)>;

pub enum Tree {
    Nothing,
    Truth(bool),
    Number(f64),
    Text(String),
    List(Vec<Spanned<Tree>>),
    Map(Map),
}

impl Tree {
    /// What stands there, for an error: the value itself where it is one word.
    pub fn shown(&self) -> String {
        match self {
            Tree::Nothing => "nothing".into(),
            Tree::Truth(value) => value.to_string(),
            Tree::Number(value) => value.to_string(),
            Tree::Text(text) => format!("\"{}\"", super::plain(text)),
            Tree::List(_) => "a list".into(),
            Tree::Map(_) => "a map".into(),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, a list or a map")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Truth(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element()? {
            all.push(one);
        }
        Ok(Tree::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(pair) = map.next_entry()? {
            all.push(pair);
        }
        Ok(Tree::Map(all))
    }
}
