//! The shape of the workspace, proved: crates depend only on earlier ones, what runs inside the workload stays small,
//! and one version stands in one place.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What runs inside the workload, and what it may depend on: everything in this list gets mapped into the user's process.
const IN_THE_WORKLOAD: [(&str, &[&str]); 4] = [
    ("inferscope-trace", &["libc"]),
    ("inferscope-workload", &["inferscope-trace", "libc"]),
    ("inferscope-collector-python", &["inferscope-workload", "inferscope-trace", "libc", "pyo3"]),
    ("inferscope-collector-cuda", &["inferscope-workload", "inferscope-trace", "libc"]),
];

/// Who may link what is for the workload alone.
const LINKED_BY: [(&str, &[&str]); 3] = [
    ("inferscope-workload", &["inferscope-collector-python", "inferscope-collector-cuda"]),
    ("inferscope-collector-python", &[]),
    ("inferscope-collector-cuda", &[]),
];

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
                let may_link = LINKED_BY.iter().find(|(known, _)| *known == dependency);
                let allowed = may_link.is_none_or(|(_, linkers)| linkers.contains(&name));
                assert!(allowed, "{name} may not link {dependency}, which is for the workload alone");
            }
        }
    }
}

#[test]
fn nothing_heavy_is_mapped_into_the_workload() {
    let packages = packages();
    for (name, allowed) in IN_THE_WORKLOAD {
        let package = packages.iter().find(|package| text(package, "name") == name);
        let package = package.unwrap_or_else(|| panic!("{name} is no crate"));
        for dependency in dependencies(package) {
            assert!(allowed.contains(&dependency), "{name} runs inside the workload and may not need {dependency}");
        }
    }
}

/// A feature of one crate is switched on for all who build with it: what is built must not depend on who else is.
#[test]
fn nothing_in_the_workload_has_a_feature() {
    for package in packages() {
        let name = text(&package, "name");
        if IN_THE_WORKLOAD.iter().any(|(known, _)| *known == name) {
            let features = package["features"].as_object().expect("features");
            assert!(features.is_empty(), "{name} has features: {features:?}");
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
