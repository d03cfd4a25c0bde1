//! What the values of a pickle refer to: lists, dictionaries, texts and large numbers. What all of it takes is counted, and more than a snapshot
//! of this size can need is refused.

use super::input::Stop;
use super::value::{Kind, Value, Wide};
use super::words::WORDS;
use std::collections::HashMap;
use std::sync::Arc;

/// A text costs its place in the table and in the map, and an allocation.
const TEXT_COST: u64 = 96;
const SLOT_COST: u64 = 8;
const BODY_COST: u64 = 40;

pub struct Heap {
    /// One a list, tuple or dictionary: its body, or what it became.
    slots: Vec<Value>,
    bodies: Vec<Vec<Value>>,
    free: Vec<u32>,
    known: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    wide: Vec<Wide>,
    held: u64,
    most: u64,
}

impl Heap {
    /// `most`: bytes that it may take.
    pub fn new(most: u64) -> Heap {
        let texts: Vec<Arc<str>> = WORDS.iter().map(|word| Arc::from(*word)).collect();
        let known = texts.iter().cloned().zip(0..).collect();
        let (slots, bodies, free, wide) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Heap { slots, bodies, free, known, texts, wide, held: 0, most }
    }

    /// Counts memory that is taken here or elsewhere for this file.
    #[inline]
    pub fn charge(&mut self, bytes: u64) -> Result<(), Stop> {
        self.held = self.held.saturating_add(bytes);
        if self.held > self.most { Err(Stop::TooMuch) } else { Ok(()) }
    }

    pub fn text(&mut self, text: &str) -> Result<Value, Stop> {
        if let Some(place) = self.known.get(text) {
            return Ok(Value::new(Kind::Text, *place));
        }
        self.charge(TEXT_COST + text.len() as u64)?;
        let (text, place) = (Arc::<str>::from(text), self.texts.len() as u32);
        self.texts.push(text.clone());
        self.known.insert(text, place);
        Ok(Value::new(Kind::Text, place))
    }

    pub fn number(&mut self, number: Wide) -> Result<Value, Stop> {
        if let Wide::Int(int) = number
            && let Some(value) = i64::try_from(int).ok().and_then(Value::int)
        {
            return Ok(value);
        }
        self.charge(size_of::<Wide>() as u64)?;
        self.wide.push(number);
        Ok(Value::new(Kind::Wide, self.wide.len() as u32 - 1))
    }

    /// A list (or tuple, or set) or a dictionary with these items; of a dictionary keys and values by turns.
    pub fn container(&mut self, kind: Kind, items: &[Value]) -> Result<Value, Stop> {
        self.charge(SLOT_COST + 8 * items.len() as u64)?;
        let body = match self.free.pop() {
            Some(body) => body,
            None => {
                self.charge(BODY_COST)?;
                self.bodies.push(Vec::new());
                self.bodies.len() as u32 - 1
            }
        };
        self.bodies[body as usize].extend_from_slice(items);
        self.slots.push(Value::new(kind, body));
        Ok(Value::new(Kind::Container, self.slots.len() as u32 - 1))
    }

    /// What a container is, or became; any other value is itself.
    #[inline]
    pub fn settled(&self, value: Value) -> Value {
        match value.is(Kind::Container) {
            true => self.slots.get(value.place()).copied().unwrap_or(Value::MISSING),
            false => value,
        }
    }

    /// The items of a list or dictionary.
    pub fn items(&self, value: Value) -> &[Value] {
        let slot = self.settled(value);
        match slot.kind() {
            Kind::List | Kind::Dict => self.bodies.get(slot.place()).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    pub fn extend(&mut self, container: Value, items: &[Value]) -> Result<(), Stop> {
        let slot = self.settled(container);
        self.charge(8 * items.len() as u64)?;
        if let Some(body) = self.bodies.get_mut(slot.place()) {
            body.extend_from_slice(items);
        }
        Ok(())
    }

    /// A container becomes something else: its items are let go.
    pub fn becomes(&mut self, container: Value, record: Value) {
        let slot = self.settled(container);
        if let (Kind::List | Kind::Dict, Some(body)) = (slot.kind(), self.bodies.get_mut(slot.place())) {
            self.held = self.held.saturating_sub(8 * body.len() as u64);
            body.clear();
            body.shrink_to(64);
            self.free.push(slot.place() as u32);
            self.slots[container.place()] = record;
        }
    }

    pub fn said(&self, value: Value) -> Option<&Arc<str>> {
        value.is(Kind::Text).then(|| self.texts.get(value.place()))?
    }

    /// A whole number that is not negative and fits.
    pub fn unsigned(&self, value: Value) -> Option<u64> {
        match value.kind() {
            Kind::Int => u64::try_from(value.small()).ok(),
            Kind::Wide => match self.wide.get(value.place())? {
                Wide::Int(int) => u64::try_from(*int).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn float(&self, value: Value) -> Option<f64> {
        match value.kind() {
            Kind::Int => Some(value.small() as f64),
            Kind::Wide => match self.wide.get(value.place())? {
                Wide::Int(int) => Some(*int as f64),
                Wide::Float(float) => Some(*float),
                Wide::Beyond => None,
            },
            _ => None,
        }
    }
}
