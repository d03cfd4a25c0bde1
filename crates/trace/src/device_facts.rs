//! What a device is, as records: two `Numbers`, the device's name as text, and the owner. The collector writes them, the recorder
//! reads them, both through this file.

use crate::NameId;
use crate::device::{Numbers, numbers, pair, unpair};
use crate::event::{EVENT_WORDS, Event, Kind, TextRole, text_records};
use std::fmt::Write;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceFacts {
    /// As the process numbers it.
    pub ordinal: u32,
    pub name: String,
    /// A MIG instance: that is a part of a device, with an id of its own.
    pub instance: bool,
    pub uuid: [u8; 16],
    pub multiprocessors: u32,
    pub compute_capability: (u32, u32),
    pub memory_bytes: u64,
    /// Bytes a second; 0: not known.
    pub bandwidth: u64,
}

impl DeviceFacts {
    /// The records in the order in which they are pushed. The name stands in front: there may be no more room for names.
    pub fn records(&self, time: u64, thread: u32) -> Vec<[u64; EVENT_WORDS]> {
        let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| self.uuid[at + byte]));
        let (major, minor) = self.compute_capability;
        let mut records = vec![
            numbers([half(0), half(8), self.memory_bytes], self.multiprocessors),
            numbers([self.bandwidth, pair(major, minor), u64::from(self.instance)], 0),
        ];
        records.extend(text_records(TextRole::Name, &self.name));
        let (kind, flags) = (Kind::DeviceFacts as u16, records.len() as u16);
        let owner = Event { time, value: 0, thread, name: NameId::INLINE, kind, flags, extra: self.ordinal };
        records.push(owner.to_words());
        records
    }

    /// The inverse of [`DeviceFacts::records`]. None when some of the numbers are missing.
    pub fn from_records(event: &Event, name: Option<String>, numbers: &[Numbers]) -> Option<DeviceFacts> {
        let [([low, high, memory_bytes], multiprocessors), ([bandwidth, capability, instance], _)] = *numbers else {
            return None;
        };
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&low.to_le_bytes());
        uuid[8..].copy_from_slice(&high.to_le_bytes());
        Some(DeviceFacts {
            ordinal: event.extra,
            name: name.unwrap_or_default(),
            instance: instance != 0,
            uuid,
            multiprocessors,
            compute_capability: unpair(capability),
            memory_bytes,
            bandwidth,
        })
    }

    /// As NVIDIA's tools write it.
    pub fn uuid_text(&self) -> String {
        let mut text = String::from(if self.instance { "MIG-" } else { "GPU-" });
        for (at, byte) in self.uuid.iter().enumerate() {
            let dash = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
            let _ = write!(text, "{dash}{byte:02x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gathered::TextGatherer;

    #[test]
    fn facts_survive_their_records() {
        let facts = DeviceFacts {
            ordinal: 3,
            name: "A \"GPU\" {with} a name that takes more than one record".into(),
            instance: false,
            uuid: std::array::from_fn(|at| at as u8 * 16),
            multiprocessors: 132,
            compute_capability: (9, 0),
            memory_bytes: 150 << 30,
            bandwidth: 4_800_000_000_000,
        };
        for facts in [DeviceFacts { instance: true, name: String::new(), ..facts.clone() }, facts] {
            let records = facts.records(7, 8);
            let (owner, before) = records.split_last().unwrap();
            let mut gatherer = TextGatherer::default();
            before.iter().for_each(|words| gatherer.add(*words));
            let event = Event::from_words(*owner);
            let gathered = gatherer.take(&event);
            let back = DeviceFacts::from_records(&event, gathered.name.clone(), gathered.numbers());
            assert_eq!(back.as_ref(), Some(&facts));
            assert_eq!(DeviceFacts::from_records(&event, None, &gathered.numbers()[1..]), None);
        }
    }

    #[test]
    fn an_instance_has_an_id_of_its_own() {
        let mut facts = DeviceFacts { uuid: std::array::from_fn(|at| at as u8 * 16), ..DeviceFacts::default() };
        assert_eq!(facts.uuid_text(), "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0");
        facts.instance = true;
        assert!(facts.uuid_text().starts_with("MIG-0010"));
    }
}
