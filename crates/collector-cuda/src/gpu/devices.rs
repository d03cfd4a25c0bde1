//! What a device is, as one line of JSON. CUPTI tells it when the program's first context on the device comes; of devices that were
//! in use before, the driver is asked.

use std::fmt::Write;

pub struct Facts {
    pub ordinal: u32,
    pub name: String,
    /// Of a MIG instance, where it is one: that is a part of a device, with an id of its own.
    pub instance: bool,
    pub uuid: [u8; 16],
    pub multiprocessors: u32,
    pub compute_capability: (u32, u32),
    pub memory_bytes: u64,
    /// Bytes a second; 0: not known.
    pub bandwidth: u64,
}

impl Facts {
    pub fn json(&self) -> String {
        let mut uuid = String::new();
        for (at, byte) in self.uuid.iter().enumerate() {
            let dash = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
            let _ = write!(uuid, "{dash}{byte:02x}");
        }
        let sort = if self.instance { "MIG" } else { "GPU" };
        let Facts { ordinal, multiprocessors, memory_bytes, bandwidth, compute_capability: (major, minor), .. } = self;
        format!(
            "{{\"ordinal\":{ordinal},\"name\":\"{}\",\"uuid\":\"{sort}-{uuid}\",\"multiprocessors\":{multiprocessors},\
             \"compute_capability\":\"{major}.{minor}\",\"memory_bytes\":{memory_bytes},\"bandwidth\":{bandwidth}}}",
            self.name.replace(['"', '\\'], ""),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_one_line_of_json() {
        let uuid = std::array::from_fn(|at| at as u8 * 16);
        let mut facts = Facts {
            ordinal: 3,
            name: "A \"GPU\"".into(),
            instance: false,
            uuid,
            multiprocessors: 132,
            compute_capability: (9, 0),
            memory_bytes: 5,
            bandwidth: 7,
        };
        assert_eq!(
            facts.json(),
            "{\"ordinal\":3,\"name\":\"A GPU\",\"uuid\":\"GPU-00102030-4050-6070-8090-a0b0c0d0e0f0\",\"multiprocessors\":132,\
             \"compute_capability\":\"9.0\",\"memory_bytes\":5,\"bandwidth\":7}"
        );
        facts.instance = true;
        assert!(facts.json().contains("\"MIG-0010"));
    }
}
