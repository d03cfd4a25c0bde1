//! Recognises JSON that is some other tool's, so that the error can say what the file is.

use super::document::Document;
use crate::import::json::scan::Stop;

pub enum Refused {
    NotJson,
    /// A trace in Chrome's format.
    Chrome,
    /// It is this instead.
    Other(String),
    Newer(u64),
    Stopped(Stop),
}

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Refused {
        Refused::Stopped(stop)
    }
}

/// What a file is that has this key at its top and no events before it.
pub fn by_key(key: &str) -> Option<&'static str> {
    match key {
        "analysis_version" => Some("an analysis that InferScope wrote, not a trace"),
        _ => None,
    }
}

impl<R> Document<R> {
    /// Events were there, but none that we know, and nothing says that the file is ours: then it is this.
    pub fn nothing_known(&self) -> Option<String> {
        let ours = self.versioned || self.loader.known > 0 || self.loader.all == 0;
        (!ours).then(|| match self.telemetry {
            true => "memory telemetry and not a trace (`inferscope query` shows it)".into(),
            _ => "JSON with a list, but none of its entries is an event that the format has".into(),
        })
    }

    /// What an object without events is.
    pub fn unlike(&self) -> String {
        let has = |key: &str| self.keys.iter().any(|known| known == key);
        if has("nodes") && (has("samples") || has("timeDeltas")) {
            return "a CPU profile of Chrome or V8".into();
        }
        match self.keys.len() {
            0 => "an empty JSON object".into(),
            _ => format!("JSON without events (it has {:?})", self.keys).replace(['[', ']'], ""),
        }
    }
}
