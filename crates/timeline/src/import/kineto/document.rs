//! Walks the top of the file and hands over its events, one in memory at a time.

use super::about::About;
use super::event::Event;
use super::load::Loader;
use crate::import::json::LARGEST;
use crate::import::json::fields::cleaned;
use crate::import::json::scan::{Scan, Stop};
use std::io::BufRead;

pub struct Document<'b, R> {
    pub scan: Scan<R>,
    pub loader: Loader<'b>,
    pub about: About,
    /// A list of events was there.
    pub has_events: bool,
    value: Vec<u8>,
}

impl<'b, R: BufRead> Document<'b, R> {
    pub fn new(input: R, loader: Loader<'b>) -> Document<'b, R> {
        Document { scan: Scan::new(input), loader, about: About::default(), has_events: false, value: Vec::new() }
    }

    pub fn walk(&mut self) -> Result<(), Stop> {
        match self.scan.peek()? {
            b'[' => self.events()?,
            b'{' => self.object()?,
            other => return Err(Stop::Unexpected(other)),
        }
        match self.scan.peek() {
            Err(Stop::Cut) => Ok(()),
            Err(stop) => Err(stop),
            Ok(more) => Err(Stop::Unexpected(more)),
        }
    }

    fn object(&mut self) -> Result<(), Stop> {
        self.scan.expect(b'{')?;
        while let Some(key) = self.scan.key()? {
            if key == "traceEvents" && self.scan.peek()? == b'[' {
                self.events()?;
            } else {
                self.scan.value(&mut self.value, LARGEST)?;
                self.about.take(&key, &String::from_utf8_lossy(&self.value));
            }
        }
        Ok(())
    }

    fn events(&mut self) -> Result<(), Stop> {
        self.scan.expect(b'[')?;
        self.has_events = true;
        while self.scan.another(b']')? {
            self.scan.value(&mut self.value, LARGEST)?;
            // Looking for broken letters in every event costs more than asking first whether there are any.
            match std::str::from_utf8(&self.value).ok().and_then(|text| Event::parse(text).ok()) {
                Some(event) => self.loader.event(&event),
                None => self.mended(&self.value.clone()),
            }
        }
        Ok(())
    }

    /// Names with control characters, and numbers that are none, are mended; what then cannot be read is counted.
    fn mended(&mut self, value: &[u8]) {
        let clean = cleaned(&String::from_utf8_lossy(value));
        match Event::parse(&clean) {
            Ok(event) => self.loader.event(&event),
            Err(_) => {
                self.loader.all += 1;
                *(if value.is_empty() {
                    &mut self.loader.warnings.long
                } else {
                    &mut self.loader.warnings.unreadable
                }) += 1;
            }
        }
    }
}
