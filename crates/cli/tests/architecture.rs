//! The shape of the workspace, proved: crates depend only on earlier ones, what runs inside the workload stays small,
//! and one version stands in one place.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `trace` and `collectors` may depend on: everything in this list gets mapped into the user's process.
const IN_THE_WORKLOAD: [(&str, &[&str]); 2] =
    [("inferscope-trace", &["libc"]), ("inferscope-collectors", &["inferscope-trace", "libc", "pyo3"])];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace's folder")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// `cargo metadata` without dependencies: what each Cargo.toml of the workspace says.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Names of the dependencies that end up in the product; those of tests do not count.
fn dependencies(package: &Value) -> Vec<&str> {
    let all = package["dependencies"].as_array().expect("dependencies");
    all.iter().filter(|one| one["kind"] != "dev").map(|one| text(one, "name")).collect()
}

/// The crates in the order of `members` in Cargo.toml, which is written by hand.
fn order() -> Vec<String> {
    let manifest = read("Cargo.toml");
    let (_, rest) = manifest.split_once("members = [").expect("members");
    let (members, _) = rest.split_once(']').expect("the end of members");
    members
        .split('"')
        .filter_map(|part| part.strip_prefix("crates/"))
        .map(|name| format!("inferscope-{name}"))
        .collect()
}

#[test]
fn no_crate_depends_on_a_later_one() {
    let order = order();
    assert_eq!(order.len(), packages().len(), "every crate is a member: {order:?}");
    let place = |name: &str| order.iter().position(|member| member == name);
    for package in packages() {
        let name = text(&package, "name");
        let own = place(name).unwrap_or_else(|| panic!("{name} is not in members"));
        for dependency in dependencies(&package) {
            if let Some(other) = place(dependency) {
                assert!(other < own, "{name} may not depend on {dependency}: data flows the other way");
                assert!(dependency != "inferscope-collectors", "{name} may not link what runs inside the workload");
            }
        }
    }
}

#[test]
fn nothing_heavy_is_mapped_into_the_workload() {
    for package in packages() {
        let name = text(&package, "name");
        let Some((_, allowed)) = IN_THE_WORKLOAD.iter().find(|(known, _)| *known == name) else { continue };
        for dependency in dependencies(&package) {
            assert!(allowed.contains(&dependency), "{name} runs inside the workload and may not need {dependency}");
        }
    }
}

#[test]
fn the_version_stands_in_one_place() {
    let changes = read("CHANGELOG.md");
    for package in packages() {
        let (name, version) = (text(&package, "name"), text(&package, "version"));
        assert_eq!(version, env!("CARGO_PKG_VERSION"), "{name} has a version of its own");
        assert!(changes.contains(&format!("## {version}")), "CHANGELOG.md does not know {version}");
    }
    assert!(read("pyproject.toml").contains(r#"dynamic = ["version"]"#), "pyproject.toml takes Cargo.toml's version");
}

#[test]
fn architecture_md_names_every_crate() {
    let page = read("ARCHITECTURE.md");
    for name in order() {
        let short = name.trim_start_matches("inferscope-");
        assert!(page.contains(&format!("| `{short}` |")), "ARCHITECTURE.md has no row for `{short}`");
    }
}
