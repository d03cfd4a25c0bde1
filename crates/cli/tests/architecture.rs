//! The shape of the workspace, proved: crates depend only on earlier ones, so do the modules inside each crate, what runs inside
//! the workload stays small, and one version stands in one place.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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

/// The crates whose lib.rs lists its modules in the order in which they use each other.
const WRITTEN_IN_ORDER: [&str; 2] = ["analysis", "diagnosis"];

/// The sources of a crate without their tests, each with its path below src/.
pub fn sources(folder: &Path, below: &str, all: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && name != "tests" {
            sources(&path, &format!("{below}{name}/"), all);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            // Tests stand at the end of a file; they may ask anybody.
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            all.push((format!("{below}{name}"), code.join("\n")));
        }
    }
}

/// The names that follow `prefix` in a piece of code: of `crate::{a::b, c}` these are `a` and `c`.
fn named_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let word =
        |text: &str| text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect::<String>();
    for (at, _) in code.match_indices(prefix) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (place, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                _ if begins && !letter.is_whitespace() => {
                    names.insert(word(&group[place..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    names
}

/// The top-level modules of a crate as its root lists them, and for each the others that it uses.
fn modules(short: &str) -> (Vec<String>, BTreeMap<String, BTreeSet<String>>) {
    let source = root().join("crates").join(short).join("src");
    let file = if source.join("lib.rs").exists() { "lib.rs" } else { "main.rs" };
    let text = std::fs::read_to_string(source.join(file)).unwrap_or_else(|error| panic!("{short}: {error}"));
    let listed: Vec<String> = text
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").strip_prefix("mod "))
        .filter_map(|rest| rest.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    let mut files = Vec::new();
    sources(&source, "", &mut files);
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, code) in files {
        let own = path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
        if !listed.contains(&own) {
            continue;
        }
        let mut named = named_after(&code, "crate::");
        // Only from here is `super` the root of the crate.
        if path == format!("{own}.rs") || path == format!("{own}/mod.rs") {
            named.extend(named_after(&code, "super::"));
        }
        let others = named.into_iter().filter(|name| *name != own && listed.contains(name));
        uses.entry(own.clone()).or_default().extend(others);
    }
    (listed, uses)
}

#[test]
fn the_modules_of_a_crate_have_an_order() {
    for name in order() {
        let short = name.trim_start_matches("inferscope-");
        let (listed, mut uses) = modules(short);
        if WRITTEN_IN_ORDER.contains(&short) {
            for (module, others) in &uses {
                let place = |name: &String| listed.iter().position(|one| one == name);
                let later: Vec<&String> = others.iter().filter(|other| place(other) > place(module)).collect();
                assert!(later.is_empty(), "{short}: `{module}` uses {later:?}, which stand after it in lib.rs");
            }
        }
        // Whoever uses nobody that is left is next; when there is none, those that are left form a circle.
        while !uses.is_empty() {
            let next: Vec<String> =
                uses.iter().filter(|(_, others)| others.is_empty()).map(|one| one.0.clone()).collect();
            assert!(!next.is_empty(), "{short}: modules that use each other in a circle: {uses:#?}");
            next.iter().for_each(|module| _ = uses.remove(module));
            uses.values_mut().for_each(|others| others.retain(|other| !next.contains(other)));
        }
    }
}

#[test]
fn names_are_found_behind_a_prefix() {
    let of = |code: &str| named_after(code, "crate::").into_iter().collect::<Vec<_>>();
    assert_eq!(of("use crate::{b::{x, y}, a, c::d};\nlet z = crate::e::f();"), ["a", "b", "c", "e"]);
    assert_eq!(of("use other_crate::a; use $crate::b; my::crate::c"), ["b"]);
}

/// What looks at a part of a text: the string that follows is searched for.
const SEARCHES: [&str; 6] =
    [".contains(\"", ".starts_with(\"", ".ends_with(\"", ".strip_prefix(\"", ".find(\"", "== \""];

/// What of a code searches for a part of the name of a CUDA call: `"GraphLaunch"`, `"cudaMalloc"`.
fn call_names_searched(code: &str) -> Vec<&str> {
    let parts = ["Launch", "Synchroniz", "Memcpy", "Memset", "Malloc", "MemAlloc", "MemFree", "Async", "Capture"];
    let searched =
        SEARCHES.iter().flat_map(|search| code.match_indices(search).map(|(at, text)| &code[at + text.len()..]));
    let texts = searched.filter_map(|rest| rest.split('"').next());
    let is_call = |text: &str| {
        let after = |start: &str| text.strip_prefix(start).is_some_and(|rest| rest.starts_with(char::is_uppercase));
        parts.iter().any(|part| text.contains(part))
            || after("cu")
            || after("cuda")
            || after("hip")
            || ["cu", "cuda", "hip"].contains(&text)
    };
    texts.filter(|text| !text.contains(' ') && is_call(text)).collect()
}

#[test]
fn only_the_timeline_knows_cuda_calls_by_their_names() {
    for short in ["analysis", "replay", "diagnosis", "report", "cli"] {
        let mut files = Vec::new();
        sources(&root().join("crates").join(short).join("src"), "", &mut files);
        for (path, code) in files {
            let found = call_names_searched(&code);
            assert!(
                found.is_empty(),
                "{short}/src/{path} searches names for {found:?}: ask timeline::cuda_calls::CudaCall"
            );
        }
    }
}

#[test]
fn a_search_for_the_name_of_a_call_is_seen() {
    let code = r#"name.contains("GraphLaunch") || name == "cudaMalloc" || name.strip_prefix("cu").is_some()"#;
    let mut found = call_names_searched(code);
    found.sort_unstable();
    assert_eq!(found, ["GraphLaunch", "cu", "cudaMalloc"]);
    assert!(call_names_searched(r#"name.contains("cudnn") || title.starts_with("Launch less often")"#).is_empty());
}
