//! The value that a fix gets: as it was asked for, checked, or what this machine suggests.

use diagnosis::fixes::{Fix, Value};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The error says what would be right.
pub fn value(fix: &Fix, asked: Option<&str>) -> Result<Option<String>, String> {
    match (fix.value, asked) {
        (Value::None, None) => Ok(None),
        (Value::Fixed(value), None) => Ok(Some(value.into())),
        (Value::None | Value::Fixed(_), Some(value)) => {
            Err(format!("{} takes no value: leave out \"={value}\"", fix.name))
        }
        (Value::Threads, None) => Ok(Some(cores().max(1).to_string())),
        (Value::Threads, Some(value)) => match value.parse::<u32>() {
            Ok(number) if (1..=4096).contains(&number) => Ok(Some(value.into())),
            _ => Err(format!("{value:?} is not a number of threads; write it as in threads=4")),
        },
        (Value::Cpus, None) => near_the_gpu().map(Some).ok_or_else(|| {
            let why = "no GPU of this machine says which CPUs are near it";
            format!("affinity needs a list of CPUs, as in affinity=0-3: {why}")
        }),
        (Value::Cpus, Some(value)) => {
            let asked =
                cpus(value).ok_or_else(|| format!("{value:?} is not a list of CPUs; write it as in affinity=0-3,8"))?;
            let there = allowed();
            match asked.difference(&there).next() {
                Some(missing) => Err(format!("there is no CPU {missing} for this process: it has {}", list(&there))),
                None => Ok(Some(list(&asked))),
            }
        }
    }
}

/// CPUs that this process may use.
fn allowed() -> BTreeSet<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.and_then(|list| cpus(list.trim())).unwrap_or_default()
}

/// Physical cores among them: two threads of one core share its arithmetic.
fn cores() -> usize {
    let siblings =
        |cpu: u32| fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
    let allowed = allowed();
    let cores: BTreeSet<String> = allowed.iter().filter_map(|cpu| siblings(*cpu).ok()).collect();
    if cores.is_empty() { allowed.len() } else { cores.len() }
}

/// The CPUs of the NUMA node that the first GPU hangs on, where there is more than one node.
fn near_the_gpu() -> Option<String> {
    const NVIDIA: &str = "0x10de";
    const AMD: &str = "0x1002";
    let read = |path: &Path, name: &str| fs::read_to_string(path.join(name)).ok().map(|text| text.trim().to_owned());
    let mut devices: Vec<_> = fs::read_dir("/sys/bus/pci/devices").ok()?.flatten().map(|entry| entry.path()).collect();
    devices.sort();
    let gpu = devices.into_iter().find(|device| {
        let vendor = read(device, "vendor").is_some_and(|vendor| vendor == NVIDIA || vendor == AMD);
        // Display controllers of all sorts: VGA (0300) and 3D (0302), and AMD's accelerators (0380, 1200).
        let class = read(device, "class").unwrap_or_default();
        vendor && (class.starts_with("0x03") || class.starts_with("0x12"))
    })?;
    let near = cpus(&read(&gpu, "local_cpulist")?)?;
    let allowed = allowed();
    let both: BTreeSet<u32> = near.intersection(&allowed).copied().collect();
    // All of them are no choice.
    (!both.is_empty() && both != allowed).then(|| list(&both))
}

/// `0-3,8` as numbers.
fn cpus(text: &str) -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > 65_535 {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found)
}

/// Numbers as `0-3,8`.
fn list(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let said = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(said).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_and_written_as_the_kernel_does() {
        assert_eq!(list(&cpus("8, 0-2,3").unwrap()), "0-3,8");
        for wrong in ["", "a", "3-1", "0-", "-1", "0-99999"] {
            assert_eq!(cpus(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn this_machine_has_cores() {
        assert!(!allowed().is_empty() && cores() >= 1 && cores() <= allowed().len());
    }
}
