//! Walks the top of the file and hands events and lists over, one entry at a time.

use super::about;
use super::event::Event;
use super::foreign::{Refused, by_key};
use super::load::Loader;
use crate::Note;
use crate::import::json::LARGEST;
use crate::import::json::fields::cleaned;
use crate::import::json::scan::{Scan, Stop};
use std::io::BufRead;
use trace::event::cut;

/// Keys that are remembered to say what the file is, when it is none of ours.
const MOST_KEYS: usize = 6;

pub struct Document<R> {
    pub scan: Scan<R>,
    pub loader: Loader,
    /// A list of events was there.
    pub has_events: bool,
    pub(super) versioned: bool,
    pub(super) keys: Vec<String>,
    /// What events that we do not know look like.
    pub(super) telemetry: bool,
    value: Vec<u8>,
}

impl<R: BufRead> Document<R> {
    pub fn new(input: R) -> Document<R> {
        Document {
            scan: Scan::new(input),
            loader: Loader::default(),
            has_events: false,
            versioned: false,
            keys: Vec::new(),
            telemetry: false,
            value: Vec::new(),
        }
    }

    pub fn walk(&mut self) -> Result<(), Refused> {
        let first = self.scan.peek()?;
        match first {
            b'[' => self.events()?,
            b'{' => self.object()?,
            _ => return Err(Refused::NotJson),
        }
        match self.scan.peek() {
            Err(Stop::Cut) => Ok(()),
            Err(stop) => Err(stop.into()),
            Ok(b'{') if !self.has_events => Err(Refused::Other("a list of JSON objects, one a line".into())),
            Ok(more) => Err(Stop::Unexpected(more).into()),
        }
    }

    fn object(&mut self) -> Result<(), Refused> {
        self.scan.expect(b'{')?;
        while let Some(key) = self.scan.key()? {
            self.field(&key)?;
            if self.keys.len() < MOST_KEYS {
                self.keys.push(cut(&key, 40).to_owned());
            }
        }
        Ok(())
    }

    fn field(&mut self, key: &str) -> Result<(), Refused> {
        let list = self.scan.peek()? == b'[';
        match key {
            "events" | "timeline" if list => self.events()?,
            "stacks" | "processes" | "threads" | "losses" | "notes" if list => self.list(key)?,
            "format_version" => self.version()?,
            "trace_metadata" | "system_info" => {
                let text = self.small()?;
                let info = &mut self.loader.builder.timeline.info;
                if key == "system_info" {
                    about::system_info(&text, info);
                } else {
                    self.loader.duration = about::trace_metadata(&text, info);
                }
            }
            "$schema" if !self.has_events => {
                let text = self.small()?;
                if text.contains("speedscope") {
                    return Err(Refused::Other("a speedscope profile".into()));
                }
            }
            "traceEvents" if !self.has_events && list => return Err(Refused::Chrome),
            _ if !self.has_events && by_key(key).is_some() => {
                return Err(Refused::Other(by_key(key).unwrap_or_default().into()));
            }
            _ => self.scan.skip()?,
        }
        Ok(())
    }

    fn version(&mut self) -> Result<(), Refused> {
        let text = self.small()?;
        let mut numbers = text.trim_matches('"').split('.').map(|number| number.parse::<u64>().ok());
        let (major, minor) = (numbers.next().flatten(), numbers.next().flatten().unwrap_or(0));
        match major {
            Some(found) if found > u64::from(super::FORMAT) => return Err(Refused::Newer(found)),
            Some(_) => {
                self.versioned = true;
                self.loader.has_codes = minor >= super::FIRST_WITH_CODES;
            }
            None => {
                let note = format!("The file's format_version, {}, is no number; read as 1.0.", cut(&text, 60));
                self.loader.builder.timeline.notes.push(Note::sentence(note));
            }
        }
        Ok(())
    }

    /// A value that is kept whole; empty when it is too large.
    fn small(&mut self) -> Result<String, Stop> {
        self.scan.value(&mut self.value, LARGEST)?;
        Ok(String::from_utf8_lossy(&self.value).into_owned())
    }

    fn events(&mut self) -> Result<(), Refused> {
        self.scan.expect(b'[')?;
        self.has_events = true;
        while self.scan.another(b']')? {
            self.scan.value(&mut self.value, LARGEST)?;
            if self.value.is_empty() {
                self.loader.all += 1;
                self.loader.warnings.long += 1;
                continue;
            }
            let text = String::from_utf8_lossy(&self.value);
            let clean;
            let event = match Event::parse(&text) {
                Err(_) => {
                    clean = cleaned(&text);
                    Event::parse(&clean)
                }
                fine => fine,
            };
            match event {
                Ok(event) => {
                    if event.chrome && self.loader.all == 0 && !self.versioned {
                        return Err(Refused::Chrome);
                    }
                    self.telemetry |= event.telemetry;
                    self.loader.event(&event);
                }
                Err(_) => {
                    self.loader.all += 1;
                    self.loader.warnings.unreadable += 1;
                }
            }
        }
        Ok(())
    }

    fn list(&mut self, key: &str) -> Result<(), Stop> {
        self.scan.expect(b'[')?;
        while self.scan.another(b']')? {
            let text = self.small()?;
            self.loader.entry(key, &text);
        }
        Ok(())
    }
}
