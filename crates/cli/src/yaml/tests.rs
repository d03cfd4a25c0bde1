//! Rules and settings in YAML, fuzzed from seeds: what is refused is refused in one line. The other readers are in the crate `fuzz`.

use crate::config::Settings;
use crate::failure::Failure;
use crate::rule_file;
use fuzz::{Random, fuzz};
use std::path::Path;

const RULES: &str = "bottleneck_rules:
  - name: high_memory_overhead
    condition: h2d_time / total_time > 0.3
    suggestion: Use pinned memory or reduce batch size
    confidence_weight: 1.2
  - name: few_kernels
    condition: kernels < 10 and (step_p50 > 1 or not gpu_busy >= 0.5)
    suggestion: |
      Text of
      two lines
    severity: info
rules:
  hot-line: {enabled: false}
  launch-bound: {min_share: 0.2, min_kernels: 9}
";
const SETTINGS: &str = "# of this project
rate_hz: 250
calls: c
calls_include: [serve, \"app/*\"]
calls_exclude:
  - x
calls_min_us: 100
memory_hz: 2.5
gpu_detail: launch
overhead_budget: 2%
layers: true
output: traces
log_level: debug
";
const YAML: [&str; 22] = [
    "name:",
    "condition:",
    "- ",
    "&a",
    "*a",
    "<<: *a",
    "!!binary",
    "|",
    ">",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "? ",
    ": ",
    "---",
    "...",
    "\t",
    "# x",
    "confidence_weight: 9",
];

fn refused(failure: &Failure, path: &Path) {
    let said = failure.message();
    assert!(said.contains(&path.display().to_string()) && said.lines().count() == 1, "{said}");
}

#[test]
fn rules_and_settings_in_yaml() {
    let make = |random: &mut Random, path: &Path| {
        let text = if random.one_in(2) { RULES } else { SETTINGS };
        let mut bytes = if random.one_in(2) { random.lines(text, &YAML) } else { text.as_bytes().to_vec() };
        if random.one_in(2) {
            random.yaml(&mut bytes);
        }
        std::fs::write(path, bytes).expect("written");
    };
    fuzz("yaml", 4000, make, |_, path| {
        if let Err(failure) = rule_file::read(path) {
            refused(&failure, path);
        }
        if let Err(failure) = Settings::of_file(Some(path)) {
            refused(&failure, path);
        }
    });
    rule_file::read(&at("rules.yaml", RULES)).map_err(|failure| failure.message().to_owned()).expect("good rules");
    Settings::of_file(Some(&at("settings.yaml", SETTINGS))).map_err(|f| f.message().to_owned()).expect("good settings");
}

/// A file beside those of the fuzzer.
fn at(name: &str, text: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("inferscope-fuzz-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("written");
    path
}
