//! A watched command was killed: was it for memory? If so, the post-mortem and its bundle.

use super::session::{Session, now_ns};
use crate::terminal;
use diagnosis::failed_request::Stage;
use report::telemetry::{PostMortem, sentences};
use serde_json::json;
use std::path::Path;
use telemetry::EventType;
use telemetry::bundle::{Bundle, Retention};
use telemetry::death::Seen;
use telemetry::query::OUT_OF_MEMORY;

impl Session<'_> {
    /// The command was killed: writes the bundle, if it was for memory.
    pub(super) fn explain(&mut self, folder: &Path) {
        let died_ns = now_ns();
        let group = self.group.read();
        let share = self.last.iter().find(|reading| reading.device_id < 0).and_then(|host| host.counters.share_used());
        let seen =
            Seen { killed: true, code: 137, kills: self.kills_before.zip(group.oom_kills), limit: group.limit, share };
        let Some(death) = seen.death() else { return };
        self.tracker.mark(EventType::Error, died_ns, json!({ "reason": OUT_OF_MEMORY }));
        let events: Vec<_> = self.tracker.recent().collect();
        let mortem = PostMortem {
            death: &death,
            began_ns: self.began_ns,
            died_ns,
            events: &events,
            request: None,
            stage: Stage::Unknown,
            recorded: false,
        };
        let sentences = sentences(&mortem);
        sentences.iter().for_each(|sentence| self.settings.say(sentence));
        let pid = u32::try_from(self.tracker.pid()).unwrap_or(0);
        let bundle = Bundle {
            death,
            backend: "host",
            pid,
            time_ns: died_ns,
            began_ns: self.began_ns,
            events,
            sentences,
            failed_request: serde_json::Value::Null,
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        };
        match bundle.write(folder, Retention::default()) {
            Ok(place) => self.settings.say(format_args!("post-mortem in {}", place.display())),
            Err(error) => terminal::say(format_args!("cannot write the post-mortem: {error}")),
        }
    }
}
