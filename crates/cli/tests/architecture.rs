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

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The paths of what stands behind `use`: of `a::{b, c::{d, e as f}}` these are `a::b`, `a::c::d` and `a::c::e as f`.
fn flat(tree: &str) -> Vec<String> {
    let Some((head, group)) = tree.split_once('{') else {
        return Some(tree.trim().to_owned()).filter(|path| !path.is_empty()).into_iter().collect();
    };
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0i32, 0);
    for (at, letter) in group.char_indices() {
        if depth == 0 && matches!(letter, ',' | '}') {
            parts.push(&group[begin..at]);
            begin = at + 1;
        }
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if depth < 0 {
            break;
        }
    }
    let below = parts.into_iter().flat_map(flat);
    below.map(|path| format!("{}{path}", head.trim())).collect()
}

/// The names that follow `prefix` in a piece of code: of `crate::{a::b, c}` these are `a` and `c`.
fn named_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let word = |text: &str| text.split(|letter| !is_word(letter)).next().unwrap_or_default().to_owned();
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|letter| is_word(letter) || letter == ':' || letter == '$') {
            continue;
        }
        match &code[at + prefix.len()..] {
            group if group.starts_with('{') => names.extend(flat(group).iter().map(|path| word(path))),
            rest => _ = names.insert(word(rest)),
        }
    }
    names
}

/// The names that the root of a crate takes out of its modules (`pub use module::Name`), each with its module.
fn re_exports(root: &str, modules: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let lines = std::iter::once(0).chain(root.match_indices('\n').map(|(at, _)| at + 1));
    let statements = lines.filter_map(|at| {
        let line = root[at..].trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.strip_prefix("use ")?.split(';').next()
    });
    for path in statements.flat_map(flat) {
        let path = path.trim_start_matches("crate::").trim_start_matches("self::");
        if let Some((first, rest)) = path.split_once("::")
            && modules.iter().any(|module| module == first)
        {
            let name = rest.rsplit([':', ' ']).next().unwrap_or_default();
            found.insert(name.to_owned(), first.to_owned());
        }
    }
    found
}

/// The modules of a crate and who uses whom.
struct Modules {
    /// As the root lists them.
    listed: Vec<String>,
    /// For each the others that it uses: by their names, or by what the root takes out of them.
    uses: BTreeMap<String, BTreeSet<String>>,
    /// What the root itself defines and a module uses: the root uses all of them, so that is a circle.
    of_the_root: Vec<String>,
}

fn modules(short: &str) -> Modules {
    let source = root().join("crates").join(short).join("src");
    let mut files = Vec::new();
    sources(&source, "", &mut files);
    let of_root = files.iter().find(|(path, _)| path == "lib.rs" || path == "main.rs");
    let text = &of_root.unwrap_or_else(|| panic!("{short} has no root")).1;
    let listed: Vec<String> = text
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").strip_prefix("mod "))
        .filter_map(|rest| rest.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    let re_exports = re_exports(text, &listed);
    let defines = |name: &str| {
        let kinds = ["struct", "enum", "const", "static", "fn", "type", "trait", "union"];
        let words: Vec<&str> = text.split(|letter| !is_word(letter)).collect();
        words.windows(2).any(|pair| kinds.contains(&pair[0]) && pair[1] == name)
    };
    let (mut uses, mut of_the_root) = (BTreeMap::<String, BTreeSet<String>>::new(), Vec::new());
    for (path, code) in &files {
        let own = path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
        if !listed.contains(&own) {
            continue;
        }
        // So many times `super` is the root of the crate.
        let depth = path.split('/').count() - usize::from(path.ends_with("/mod.rs"));
        let mut named = named_after(code, "crate::");
        named.extend(named_after(code, &"super::".repeat(depth)));
        let others = uses.entry(own.clone()).or_default();
        for name in named {
            match re_exports.get(&name).or_else(|| listed.iter().find(|module| **module == name)) {
                Some(module) if *module != own => _ = others.insert(module.clone()),
                None if defines(&name) => of_the_root.push(format!("{path}: {name}")),
                _ => (),
            }
        }
    }
    Modules { listed, uses, of_the_root }
}

#[test]
fn the_modules_of_a_crate_have_an_order() {
    for name in order() {
        let short = name.trim_start_matches("inferscope-");
        let Modules { listed, mut uses, of_the_root } = modules(short);
        assert!(of_the_root.is_empty(), "{short}: modules use what its root defines: {of_the_root:#?}");
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
    assert!(of("use other_crate::a; use $crate::b; my::crate::c").is_empty());
    assert_eq!(flat("a::{b, c::{d, e as f}}"), ["a::b", "a::c::d", "a::c::e as f"]);
}

#[test]
fn a_name_that_the_root_takes_out_of_a_module_is_that_module() {
    let root = "mod a;\npub mod b;\npub use a::{One, two::Three as Four};\nuse other::a;\n\
                fn f() {\n    use b::Five;\n}\npub use b::{\n    Six,\n};";
    let found = re_exports(root, &["a".into(), "b".into()]);
    let found: Vec<(&str, &str)> = found.iter().map(|(name, module)| (name.as_str(), module.as_str())).collect();
    assert_eq!(found, [("Four", "a"), ("One", "a"), ("Six", "b")]);
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
