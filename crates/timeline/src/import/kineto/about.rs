//! What stands beside the events: devices, rank, versions, and the time that all times count from.

use crate::gpu::Device;
use crate::import::json::fields::Raw;
use serde_json::Value;
use std::collections::BTreeMap;
use trace::event::cut;

/// Devices and versions beyond these are not kept.
const MOST_DEVICES: usize = 64;
const MOST_VERSIONS: usize = 64;

#[derive(Default)]
pub struct About {
    pub devices: Vec<Device>,
    pub rank: Option<u32>,
    /// Nanoseconds since 1970 that all times of the file count from.
    pub base: Option<u64>,
    pub software: BTreeMap<String, String>,
}

impl About {
    /// One field of the file's top.
    pub fn take(&mut self, key: &str, text: &str) {
        match key {
            "deviceProperties" => self.devices = devices(text),
            "distributedInfo" => self.distributed(text),
            "baseTimeNanoseconds" => self.base = Raw(text).whole().and_then(|base| u64::try_from(base).ok()),
            "record_shapes" | "with_stack" | "profile_memory" | "with_flops" | "with_modules" => {
                self.software(key, Raw(text))
            }
            // Of all that programs add themselves only versions are taken: the rest may be anything, secrets too.
            _ if key.to_ascii_lowercase().contains("version") && key != "schemaVersion" => {
                self.software(key, Raw(text));
            }
            _ => {}
        }
    }

    fn software(&mut self, key: &str, value: Raw<'_>) {
        let text = match (value.text(), value.whole()) {
            (Some(text), _) => cut(&text, 100).to_owned(),
            (None, Some(number)) if key.starts_with("cuda_") => cuda(number),
            (None, Some(number)) => number.to_string(),
            (None, None) => return,
        };
        if self.software.len() < MOST_VERSIONS {
            self.software.insert(cut(key, 60).to_owned(), text);
        }
    }

    fn distributed(&mut self, text: &str) {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return };
        let small = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        self.rank = small("rank");
        if let Some(size) = small("world_size") {
            self.software.insert("world_size".into(), size.to_string());
        }
        if let Some(backend) = value.get("backend").and_then(Value::as_str) {
            self.software.insert("backend".into(), cut(backend, 60).to_owned());
        }
    }

    /// What is known of the device with this number. On AMD's the events number devices otherwise than the list: where all in
    /// the list are alike, any of them describes it.
    pub fn device(&self, ordinal: u32) -> Device {
        let alike = self.devices.first().filter(|first| self.devices.iter().all(|device| device.name == first.name));
        let known = self.devices.iter().find(|device| device.ordinal == ordinal).or(alike);
        let version = |key: &str| self.software.get(key).map_or("", String::as_str).into();
        Device {
            ordinal,
            cupti: version("cupti_version"),
            driver: version("cuda_driver_version"),
            ..known.cloned().unwrap_or_default()
        }
    }
}

/// 12040 is 12.4.
fn cuda(number: i64) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

fn devices(text: &str) -> Vec<Device> {
    let Ok(Value::Array(all)) = serde_json::from_str(text) else { return Vec::new() };
    let number = |device: &Value, key: &str| device.get(key).and_then(Value::as_u64);
    let small = |device: &Value, key: &str| number(device, key).and_then(|number| u32::try_from(number).ok());
    let one = |device: &Value| Device {
        ordinal: small(device, "id").unwrap_or(0),
        name: device.get("name").and_then(Value::as_str).map_or("", |name| cut(name, 200)).into(),
        multiprocessors: small(device, "numSms"),
        compute_capability: match (number(device, "computeMajor"), number(device, "computeMinor")) {
            (Some(major), Some(minor)) => format!("{major}.{minor}").into(),
            _ => "".into(),
        },
        memory_bytes: number(device, "totalGlobalMem"),
        ..Device::default()
    };
    all.iter().take(MOST_DEVICES).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_rank_and_versions_are_taken_and_nothing_else() {
        let mut about = About::default();
        for (key, text) in [
            (
                "deviceProperties",
                r#"[{"id":0,"name":"AMD Instinct MI300X","totalGlobalMem":206141652992,"computeMajor":9,"computeMinor":4,"numSms":304}]"#,
            ),
            ("distributedInfo", r#"{"backend":"nccl","rank":3,"world_size":8}"#),
            ("cuda_driver_version", "12090"),
            ("torch_version", "\"2.8.0\""),
            ("baseTimeNanoseconds", "1751410836000000000"),
            ("AWS_SECRET", "\"x\""),
        ] {
            about.take(key, text);
        }
        let device = about.device(9);
        assert_eq!((device.ordinal, &*device.name, &*device.compute_capability), (9, "AMD Instinct MI300X", "9.4"));
        assert_eq!((&*device.driver, about.rank, about.base), ("12.9", Some(3), Some(1_751_410_836_000_000_000)));
        assert_eq!(about.software.len(), 4, "{:?}", about.software);
    }

    #[test]
    fn nonsense_is_nothing() {
        let mut about = About::default();
        for key in ["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "torch_version"] {
            for text in ["", "7e99", "[1,{}]", "{\"rank\":-1}", "null", "\"\\ud800"] {
                about.take(key, text);
            }
        }
        assert_eq!((about.rank, about.base), (None, None));
        assert_eq!(about.device(5).ordinal, 5);
    }
}
