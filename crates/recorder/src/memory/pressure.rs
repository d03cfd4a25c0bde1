//! Pressure: for how long somebody on this machine waited for memory, processor or disk (PSI).

use crate::counters::Counters;
use std::fs;
use std::io;
use trace::tables::{HOST, WHOLE_PROCESS};

/// File, line and counter. The kernel has no meaningful full line for the processor.
const SOURCES: [(&str, &str, &str); 5] = [
    ("memory", "some", "psi_memory_some_us"),
    ("memory", "full", "psi_memory_full_us"),
    ("cpu", "some", "psi_cpu_some_us"),
    ("io", "some", "psi_io_some_us"),
    ("io", "full", "psi_io_full_us"),
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
