//! One event as bytes, and back. Counters are differences to the event before of the same source, so that what does not change costs a byte.
//!
//! An event: its type with two flags, its source, the time since the event before, a bit for each counter that is known, the counters,
//! then the numbers of context and metadata where the flags say so. Sources and texts are defined in front of their first use.

use crate::event::{Counters, Event, EventType, Source};
use crate::identity::Identity;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

const TYPE: u8 = 0x0f;
const HAS_CONTEXT: u8 = 0x10;
const HAS_METADATA: u8 = 0x20;
const DEFINES_SOURCE: u8 = 0x40;
const DEFINES_TEXT: u8 = 0x41;
/// Longest text that is kept: a longer context or metadata is dropped and counted.
pub const LONGEST_TEXT: usize = 64 << 10;
/// Texts that are remembered in a file: beyond that, a text is defined again.
const MOST_TEXTS: usize = 4096;

/// Where an encoder or decoder stands in a file.
#[derive(Default)]
struct Place {
    time: u64,
    /// The last value of each counter, by source.
    counters: Vec<[u64; 8]>,
}

fn numbers(counters: &Counters) -> [Option<u64>; 8] {
    let change = counters.change.map(|change| change as u64);
    let Counters { allocated, reserved, active, inactive, used, free, total, .. } = *counters;
    [allocated, reserved, active, inactive, change, used, free, total]
}

fn counters(numbers: [Option<u64>; 8]) -> Counters {
    let [allocated, reserved, active, inactive, change, used, free, total] = numbers;
    Counters { allocated, reserved, active, inactive, change: change.map(|change| change as i64), used, free, total }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Small numbers of either sign in few bytes.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[derive(Default)]
pub struct Encoder {
    place: Place,
    sources: Vec<Arc<Source>>,
    texts: HashMap<Arc<str>, u64>,
    defined: u64,
    pub dropped_texts: u64,
}

impl Encoder {
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        let source = self.source(&event.source, out);
        let context = event.context.as_ref().and_then(|text| self.text(text, out));
        let metadata = event.metadata.as_ref().and_then(|text| self.text(text, out));
        let flag = |has: bool, flag: u8| if has { flag } else { 0 };
        let flags = flag(context.is_some(), HAS_CONTEXT) | flag(metadata.is_some(), HAS_METADATA);
        out.push(event.kind as u8 | flags);
        put(out, source as u64);
        put(out, zigzag(event.time_ns.wrapping_sub(self.place.time) as i64));
        self.place.time = event.time_ns;
        let numbers = numbers(&event.counters);
        out.push((0..8).fold(0, |mask, at| mask | u8::from(numbers[at].is_some()) << at));
        for (number, last) in numbers.into_iter().zip(&mut self.place.counters[source]) {
            if let Some(number) = number {
                put(out, zigzag(number.wrapping_sub(*last) as i64));
                *last = number;
            }
        }
        context.into_iter().chain(metadata).for_each(|text| put(out, text));
    }

    fn source(&mut self, source: &Arc<Source>, out: &mut Vec<u8>) -> usize {
        if let Some(known) = self.sources.iter().position(|known| Arc::ptr_eq(known, source) || known == source) {
            return known;
        }
        let text = described(source).to_string();
        out.push(DEFINES_SOURCE);
        put(out, text.len() as u64);
        out.extend_from_slice(text.as_bytes());
        self.sources.push(Arc::clone(source));
        self.place.counters.push([0; 8]);
        self.sources.len() - 1
    }

    fn text(&mut self, text: &Arc<str>, out: &mut Vec<u8>) -> Option<u64> {
        if let Some(known) = self.texts.get(text) {
            return Some(*known);
        }
        if text.len() > LONGEST_TEXT {
            self.dropped_texts += 1;
            return None;
        }
        if self.texts.len() >= MOST_TEXTS {
            self.texts.clear();
        }
        out.push(DEFINES_TEXT);
        put(out, text.len() as u64);
        out.extend_from_slice(text.as_bytes());
        self.texts.insert(Arc::clone(text), self.defined);
        self.defined += 1;
        Some(self.defined - 1)
    }
}

fn described(source: &Source) -> Value {
    let Identity { job, rank, local_rank, world_size } = &source.identity;
    json!({
        "collector": source.collector, "sampling_interval_ms": source.sampling_interval_ms, "pid": source.pid, "host": source.host,
        "device_id": source.device_id, "session_id": source.session, "job_id": job, "rank": rank, "local_rank": local_rank,
        "world_size": world_size,
    })
}

fn source_of(text: &[u8]) -> Option<Source> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let string = |key: &str| value[key].as_str().map(str::to_owned);
    let small = |key: &str| value[key].as_u64().and_then(|number| u32::try_from(number).ok());
    let named = |key: &str| string(key).map(|name| if name.is_empty() { "unknown".to_owned() } else { name });
    let source = Source {
        collector: named("collector")?,
        sampling_interval_ms: value["sampling_interval_ms"].as_u64()?,
        pid: value["pid"].as_i64()?,
        host: named("host")?,
        device_id: value["device_id"].as_i64()?,
        session: string("session_id")?,
        identity: Identity {
            job: string("job_id"),
            rank: small("rank"),
            local_rank: small("local_rank"),
            world_size: small("world_size"),
        },
    };
    (source.pid >= -1 && source.identity.contradiction().is_none()).then_some(source)
}

#[derive(Default)]
pub struct Decoder {
    place: Place,
    sources: Vec<Arc<Source>>,
    /// The last ones: an encoder refers to no older one.
    texts: VecDeque<Arc<str>>,
    /// Texts that were defined before those.
    forgotten: u64,
}

/// A context may be the oldest of those that are remembered when its event's metadata is defined.
const KEPT_TEXTS: usize = MOST_TEXTS + 1;

/// Sources that one file may define: more is damage, or an attack.
const MOST_SOURCES: usize = 65_536;

impl Decoder {
    /// The next event of `bytes`, and how many of them it took with the definitions in front of it. None: the bytes make no sense.
    pub fn event(&mut self, bytes: &[u8]) -> Option<(Event, usize)> {
        let mut input = Input { bytes, at: 0 };
        loop {
            let tag = input.byte()?;
            match tag {
                DEFINES_SOURCE => {
                    let source = source_of(input.text()?)?;
                    if self.sources.len() >= MOST_SOURCES {
                        return None;
                    }
                    self.sources.push(Arc::new(source));
                    self.place.counters.push([0; 8]);
                }
                DEFINES_TEXT => self.define(std::str::from_utf8(input.text()?).ok()?),
                tag if tag < DEFINES_SOURCE => return self.rest(tag, &mut input).map(|event| (event, input.at)),
                _ => return None,
            }
        }
    }

    #[cfg(test)]
    pub fn texts(&self) -> usize {
        self.texts.len()
    }

    fn define(&mut self, text: &str) {
        if self.texts.len() == KEPT_TEXTS {
            self.texts.pop_front();
            self.forgotten += 1;
        }
        self.texts.push_back(text.into());
    }

    fn rest(&mut self, tag: u8, input: &mut Input<'_>) -> Option<Event> {
        let kind = EventType::from_number(tag & TYPE)?;
        let number = usize::try_from(input.number()?).ok()?;
        let source = Arc::clone(self.sources.get(number)?);
        let time_ns = self.place.time.wrapping_add(unzigzag(input.number()?) as u64);
        self.place.time = time_ns;
        let mask = input.byte()?;
        let mut numbers = [None; 8];
        for (at, last) in self.place.counters.get_mut(number)?.iter_mut().enumerate() {
            if mask & 1 << at != 0 {
                *last = last.wrapping_add(unzigzag(input.number()?) as u64);
                numbers[at] = Some(*last);
            }
        }
        let mut text = |has: u8| -> Option<Option<Arc<str>>> {
            if tag & has == 0 {
                return Some(None);
            }
            let number = usize::try_from(input.number()?.checked_sub(self.forgotten)?).ok()?;
            Some(Some(Arc::clone(self.texts.get(number)?)))
        };
        let (context, metadata) = (text(HAS_CONTEXT)?, text(HAS_METADATA)?);
        let counters = counters(numbers);
        // Nobody wrote that: bytes were changed, and no number after them is to be believed.
        counters.contradiction().is_none().then_some(Event { time_ns, kind, source, counters, context, metadata })
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok().filter(|length| *length <= LONGEST_TEXT)?;
        let text = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(text)
    }
}
