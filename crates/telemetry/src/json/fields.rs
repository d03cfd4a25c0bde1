//! The fields of one event, each with its type; what is wrong is said with the field's name.

use serde_json::{Map, Value};
use std::sync::Arc;

pub struct Fields<'a>(pub &'a Map<String, Value>);

/// What a wrong value looks like in a message, short.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Fields<'_> {
    fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    fn wrong<T>(&self, name: &str, must: &str) -> Result<T, String> {
        Err(format!("{name} must be {must}, got {}", shown(self.get(name))))
    }

    pub fn count(&self, name: &str) -> Result<u64, String> {
        self.get(name).as_u64().map_or_else(|| self.wrong(name, "a whole number from 0 to 2^64 - 1"), Ok)
    }

    pub fn bytes(&self, name: &str) -> Result<u64, String> {
        self.get(name).as_u64().map_or_else(|| self.wrong(name, "a number of bytes"), Ok)
    }

    /// Bytes, of a number of megabytes.
    pub fn megabytes(&self, name: &str) -> Result<u64, String> {
        let number = self.get(name).as_f64().filter(|number| (0.0..1e12).contains(number));
        number.map_or_else(|| self.wrong(name, "a number of megabytes"), |number| Ok((number * 1_048_576.0) as u64))
    }

    pub fn bytes_or_null(&self, name: &str) -> Result<Option<u64>, String> {
        if self.get(name).is_null() { Ok(None) } else { self.bytes(name).map(Some) }
    }

    pub fn signed(&self, name: &str) -> Result<i64, String> {
        self.get(name).as_i64().map_or_else(|| self.wrong(name, "a whole number"), Ok)
    }

    pub fn signed_or_null(&self, name: &str) -> Result<Option<i64>, String> {
        if self.get(name).is_null() { Ok(None) } else { self.signed(name).map(Some) }
    }

    pub fn at_least_minus_one(&self, name: &str) -> Result<i64, String> {
        let number = self.signed(name)?;
        if number >= -1 { Ok(number) } else { self.wrong(name, "-1 or more") }
    }

    pub fn small_or_absent(&self, name: &str) -> Result<Option<u32>, String> {
        let value = self.get(name);
        if value.is_null() {
            return Ok(None);
        }
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.map_or_else(|| self.wrong(name, "a whole number from 0 to 2^32 - 1"), |number| Ok(Some(number)))
    }

    pub fn text(&self, name: &str) -> Result<String, String> {
        match self.get(name).as_str() {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => self.wrong(name, "a text that is not empty"),
        }
    }

    pub fn text_or_null(&self, name: &str) -> Result<Option<String>, String> {
        match self.get(name) {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => self.wrong(name, "a text or null"),
        }
    }

    /// The metadata as text. None: there is nothing in it.
    pub fn metadata(&self) -> Result<Option<Arc<str>>, String> {
        match self.get("metadata") {
            Value::Object(object) if object.is_empty() => Ok(None),
            Value::Object(object) => Ok(Some(Value::Object(object.clone()).to_string().into())),
            _ => self.wrong("metadata", "an object"),
        }
    }
}
