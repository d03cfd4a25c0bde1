//! What a device can do at the most: bandwidth and arithmetic by type, from the table of data sheets in `peaks/devices.csv`. A bandwidth
//! that the driver reported with the recording comes first. What part of it good code reaches is left to `reach`.

use crate::device::kernel_kind::Math;
use timeline::gpu::Device;

const TABLE: &str = include_str!("devices.csv");

#[derive(Clone, PartialEq, Debug)]
pub struct Peaks {
    /// Bytes a nanosecond (GB/s).
    pub bandwidth: f64,
    /// TFLOP/s by [`Math`]. None: no such unit.
    math: [Option<f64>; 7],
    pub l2_bytes: u64,
    pub watts: f64,
    /// To other devices, GB/s one way. None: only the bus.
    pub link: Option<f64>,
    /// Where the numbers are from.
    pub source: &'static str,
}

impl Peaks {
    /// None: a device that the table does not know.
    pub fn of(device: &Device) -> Option<Peaks> {
        let mut peaks = Peaks::named(&device.name)?;
        if let Some(bytes) = device.bandwidth.filter(|bytes| *bytes > 0) {
            peaks.bandwidth = bytes as f64 / 1e9;
        }
        Some(peaks)
    }

    pub fn named(name: &str) -> Option<Peaks> {
        let mut lines = lines().map(|line| line.split(','));
        lines.find_map(|mut fields| fits(fields.next()?, name).then(|| read(fields)).flatten())
    }

    /// TFLOP/s.
    pub fn math(&self, math: Math) -> Option<f64> {
        self.math.get(math as usize).copied().flatten()
    }
}

/// The lines of the table, without its head.
pub fn lines() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#')).skip(1)
}

/// Whether all words stand in a name, each as a word of its own: an A100 is no A10.
fn fits(words: &str, name: &str) -> bool {
    let apart = |letter: char| !letter.is_ascii_alphanumeric();
    let parts: Vec<&str> = name.split(apart).collect();
    let wanted = |word: &str| parts.iter().any(|part| part.eq_ignore_ascii_case(word));
    words.split(apart).all(wanted)
}

fn read(mut fields: std::str::Split<'static, char>) -> Option<Peaks> {
    let mut next = || fields.next().map(|field| field.parse::<f64>().ok());
    let bandwidth = next()??;
    let math = [next()?, next()?, next()?, next()?, next()?, next()?, next()?];
    let (l2, link, watts) = (next()??, next()?, next()??);
    Some(Peaks { bandwidth, math, l2_bytes: (l2 * 1048576.0) as u64, watts, link, source: fields.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_can_be_read_and_is_found_by_its_own_name() {
        for line in lines() {
            let name = line.split(',').next().unwrap_or("");
            let peaks = Peaks::named(&format!("NVIDIA {name}")).unwrap_or_else(|| panic!("{line}"));
            assert!(line.ends_with(peaks.source) && peaks.source.len() > 8, "{line}");
            assert!(peaks.bandwidth > 100.0 && peaks.math(Math::F16) > peaks.math(Math::F32), "{line}");
        }
    }

    #[test]
    fn devices_are_known_by_the_names_that_drivers_give_them() {
        for (name, bandwidth, bf16) in [
            ("NVIDIA H200", 4800.0, Some(989.4)),
            ("NVIDIA H100 80GB HBM3", 3352.0, Some(989.4)),
            ("NVIDIA H100 PCIe", 2039.0, Some(756.0)),
            ("NVIDIA A100-SXM4-80GB", 2039.0, Some(312.0)),
            ("NVIDIA A100-PG509-200", 1555.0, Some(312.0)),
            ("NVIDIA A10G", 600.0, Some(70.0)),
            ("Tesla V100-SXM2-16GB", 900.0, None),
            ("NVIDIA B200", 8000.0, Some(2250.0)),
            ("AMD Instinct MI300X", 5300.0, Some(1307.4)),
            ("NVIDIA GeForce RTX 4090", 1008.0, Some(165.2)),
        ] {
            let peaks = Peaks::named(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!((peaks.bandwidth, peaks.math(Math::Bf16)), (bandwidth, bf16), "{name}");
        }
        assert_eq!(Peaks::named("NVIDIA H200").and_then(|peaks| peaks.link), Some(450.0));
        assert_eq!(Peaks::named("NVIDIA L4").and_then(|peaks| peaks.link), None);
        assert_eq!(Peaks::named("NVIDIA H2000"), None);
        assert_eq!(Peaks::named(""), None);
    }

    #[test]
    fn what_the_driver_says_of_the_bandwidth_comes_first() {
        let device = Device { name: "NVIDIA H200".into(), bandwidth: Some(4_700_000_000_000), ..Device::default() };
        assert_eq!(Peaks::of(&device).map(|peaks| peaks.bandwidth), Some(4700.0));
    }
}
