//! Pressure: for how long somebody on this machine waited for memory, processor or disk (PSI).

use crate::counters::Counters;
use std::fs;
use std::io;
use trace::counters as counter_names;
use trace::tables::{HOST, WHOLE_PROCESS};

/// File, line and counter. The kernel has no meaningful full line for the processor.
const SOURCES: [(&str, &str, &str); 5] = [
    ("memory", "some", counter_names::PSI_MEMORY_SOME_US),
    ("memory", "full", counter_names::PSI_MEMORY_FULL_US),
    ("cpu", "some", counter_names::PSI_CPU_SOME_US),
    ("io", "some", counter_names::PSI_IO_SOME_US),
    ("io", "full", counter_names::PSI_IO_FULL_US),
];

pub(crate) const FILES: [&str; 3] = ["memory", "cpu", "io"];

pub(crate) fn sample(counters: &mut Counters) -> io::Result<()> {
    for file in FILES {
        let text = fs::read_to_string(format!("/proc/pressure/{file}"))?;
        for (_, line, counter) in SOURCES.iter().filter(|source| source.0 == file) {
            if let Some(total) = total(&text, line) {
                counters.set(HOST, WHOLE_PROCESS, counter, total);
            }
        }
    }
    Ok(())
}

fn total(text: &str, line: &str) -> Option<u64> {
    let line = text.lines().find(|text| text.split(' ').next() == Some(line))?;
    line.split(' ').find_map(|word| word.strip_prefix("total=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!((total(text, "some"), total(text, "full"), total("", "some")), (Some(12), Some(7), None));
    }
}
