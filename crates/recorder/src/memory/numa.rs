//! Where the pages of a process lie: per NUMA node, and how many of them are not on the node that it runs on.

use crate::counters::Counters;
use crate::memory::process::processor;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use trace::counters as counter_names;
use trace::tables::WHOLE_PROCESS;

/// From /proc/PID/numa_maps, which walks all page tables.
pub(crate) fn sample(process: i32, pid: u32, counters: &mut Counters) -> io::Result<()> {
    let nodes = parse(&fs::read_to_string(format!("/proc/{pid}/numa_maps"))?);
    for (node, bytes) in &nodes {
        if let Some(counter) = counter_names::NUMA_NODE_BYTES.get(*node as usize) {
            counters.set(process, WHOLE_PROCESS, counter, *bytes);
        }
    }
    let home = processor(pid).and_then(node_of);
    let remote: u64 = nodes.iter().filter(|(node, _)| Some(**node) != home).map(|(_, bytes)| bytes).sum();
    if home.is_some() {
        counters.set(process, WHOLE_PROCESS, counter_names::NUMA_REMOTE_BYTES, remote);
    }
    Ok(())
}

/// Bytes by node.
fn parse(text: &str) -> BTreeMap<u32, u64> {
    let mut nodes = BTreeMap::new();
    for line in text.lines() {
        let words = || line.split_ascii_whitespace().skip(2);
        let value = |word: &str, key: &str| word.strip_prefix(key)?.parse::<u64>().ok();
        let page = words().find_map(|word| value(word, "kernelpagesize_kB=")).unwrap_or(4) * 1024;
        for word in words() {
            let Some((node, pages)) = word.strip_prefix('N').and_then(|word| word.split_once('=')) else { continue };
            if let (Ok(node), Ok(pages)) = (node.parse::<u32>(), pages.parse::<u64>()) {
                *nodes.entry(node).or_default() += pages * page;
            }
        }
    }
    nodes
}

/// The node of a processor.
fn node_of(cpu: u32) -> Option<u32> {
    let entries = fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_prefix("node")?.parse().ok()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_every_size_are_added_up_by_node() {
        let text = "7f00 default anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4\n\
                    8000 default file=/lib/N9=x mapped=1 N1=1 kernelpagesize_kB=2048\nbad line\n";
        assert_eq!(parse(text), BTreeMap::from([(0, 8192), (1, 4096 + (2 << 20))]));
    }
}
