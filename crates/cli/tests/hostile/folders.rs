//! Hostile folders: every name that a reader or a recovery knows, as a link, a second name, a pipe, a device, a folder, somebody
//! else's; and manifests that name other folders or absurd numbers.

use crate::place::{Place, segment_name};
use fuzz::{NUMBERS, Random};
use serde_json::{Value, json};
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

/// In a trace's folder.
const NAMES: [&str; 21] = [
    "manifest.json",
    "manifest.json.tmp",
    "manifest.json.reserve",
    "recorder.lock",
    "names.000001-000001.parquet",
    "slices.000001-000001.parquet",
    "slices.000001-000001.parquet.tmp",
    "slices.000002-000002.parquet",
    "samples.000001-000001.parquet",
    "counters.000001-000001.parquet",
    "gpu.000001-000001.parquet",
    "losses.000001-000001.parquet.tmp",
    "report.md",
    "report.html",
    "segments",
    "segments/trace",
    "segments/trace-id",
    "segments/journal",
    "segments/rescued",
    "segments/rescued/manifest.json",
    "segments/rescued/slices.000009-000009.parquet",
];

const KINDS: usize = 16;

/// Each is one thing wrong in one place. Says what it did.
pub const ONE_WRONG: usize = (NAMES.len() + 1) * KINDS * 3;

pub fn one_wrong(place: &Place, number: usize) -> String {
    let (name, rest) = (number % (NAMES.len() + 1), number / (NAMES.len() + 1));
    let (kind, state) = (rest % KINDS, rest / KINDS);
    start(place, state);
    let segment = format!("segments/{}", segment_name());
    let name = NAMES.get(name).copied().unwrap_or(&segment);
    // What is in the segments' folder is there, wherever that is.
    let path = match name.strip_prefix("segments/") {
        Some(inner) if state == 1 => place.shared_folder().join(inner),
        _ => place.trace().join(name),
    };
    format!("state {state}, {name}: {}", put(place, &path, kind))
}

fn start(place: &Place, state: usize) {
    match state {
        0 => place.finished(),
        state => place.unfinished(state == 2),
    }
}

fn put(place: &Place, path: &Path, kind: usize) -> &'static str {
    let victim = place.at("victim");
    if let Some(folder) = path.parent() {
        let _ = fs::create_dir_all(folder);
    }
    // Only what is the trace's own is read or changed: never through what an earlier wrong thing put there.
    let own = fs::symlink_metadata(path).ok().filter(|there| there.is_dir() || there.is_file() && there.nlink() == 1);
    let small = own.as_ref().is_some_and(|there| there.is_file() && there.len() < 1 << 20);
    let had = if small { fs::read(path).unwrap() } else { b"something".to_vec() };
    let aside = || {
        let _ = fs::remove_file(path);
        let _ = fs::remove_dir_all(path);
    };
    let file = |bytes: &[u8]| {
        let _ = fs::create_dir_all(path.parent().unwrap());
        let _ = fs::write(path, bytes);
    };
    let special = |kind: u32, device: u64| {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends with a zero.
        let made = unsafe { libc::mknod(path.as_ptr(), kind | 0o666, device) };
        assert_eq!(made, 0, "this test makes devices, so it must run as root");
    };
    // From there on it stays what it is, and only its owner, its rights or its size change.
    if kind < 12 || own.is_none() {
        aside();
    }
    if kind >= 12 && own.is_none() {
        file(&had);
    }
    match kind {
        0 => symlink(victim.join("precious"), path).map(|()| "a link to a file").unwrap(),
        1 => symlink(&victim, path).map(|()| "a link to a folder").unwrap(),
        2 => symlink(victim.join("new"), path).map(|()| "a link to what is not there").unwrap(),
        3 => symlink("../victim/precious", path).map(|()| "a link upwards").unwrap(),
        4 => symlink(path, path).map(|()| "a link to itself").unwrap(),
        5 => symlink("/dev/zero", path).map(|()| "a link to a device").unwrap(),
        6 => {
            let near = if path.starts_with("/dev/shm") { place.shared_victim() } else { victim.join("precious") };
            fs::hard_link(near, path).map(|()| "a second name of a file").unwrap()
        }
        7 => {
            special(libc::S_IFIFO, 0);
            "a pipe"
        }
        8 => {
            special(libc::S_IFSOCK, 0);
            "a socket"
        }
        9 => {
            special(libc::S_IFCHR, libc::makedev(1, 5));
            "a device without end"
        }
        10 => {
            fs::create_dir(path).unwrap();
            fs::write(path.join("inner"), "x").unwrap();
            "a folder"
        }
        11 => {
            file(b"");
            "empty"
        }
        12 => {
            chown(path, Some(12345), Some(12345)).expect("this test gives files away, so it must run as root");
            "somebody else's"
        }
        13 => {
            fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
            "writable by everybody"
        }
        14 => {
            if !path.is_dir() {
                file(&had);
                fs::File::options().write(true).open(path).and_then(|file| file.set_len(1 << 40)).unwrap();
            }
            "a terabyte of nothing"
        }
        _ => {
            if !path.is_dir() {
                file(&had[..had.len() / 2]);
            }
            "cut in half"
        }
    }
}

/// Where a manifest may say that its segments are.
fn places(place: &Place) -> Vec<String> {
    let victim = place.at("victim").display().to_string();
    let shared = place.shared_folder().display().to_string();
    let name = place.shared_folder().file_name().unwrap().to_string_lossy().into_owned();
    [
        victim.clone(),
        format!("{victim}/segments"),
        format!("{victim}/"),
        format!("{victim}/."),
        "/".into(),
        "/dev/shm".into(),
        "/dev/shm/".into(),
        "/proc/self".into(),
        "/proc/self/cwd".into(),
        "..".into(),
        ".".into(),
        String::new(),
        "../victim".into(),
        "victim".into(),
        name.clone(),
        format!("/tmp/{name}"),
        format!("{shared}/../../..{victim}"),
        format!("{shared}/rescued/.."),
        format!("/dev/shm/../..{victim}"),
        format!("//dev//shm//{name}"),
        "/dev/shm/inferscope-0-1-\0".into(),
        format!("/dev/shm/{}", "x".repeat(10_000)),
        "/dev/shm/inferscope-12345-1-1".into(),
        format!("{}/segments", place.trace().display()),
        shared,
    ]
    .into()
}

pub const OTHER_PLACES: usize = 25 * 4 * 3;

/// A manifest whose `segments` leads somewhere else, with the right id, another, or none, and of this boot or another.
pub fn other_place(place: &Place, number: usize) -> String {
    let (at, id, boot) = (number % 25, number / 25 % 4, number / 100);
    place.unfinished(number.is_multiple_of(2));
    let there = places(place).swap_remove(at);
    change(place, |manifest| {
        manifest["segments"] = json!(there);
        match id {
            0 => {}
            1 => manifest["id"] = json!("ffffffffffffffffffffffffffffffff"),
            2 => manifest["id"] = Value::Null,
            _ => manifest["id"] = json!("precious trace-id"),
        }
        match boot {
            0 => {}
            1 => manifest["clock"]["boot_id"] = json!("another"),
            _ => manifest["clock"]["boot_id"] = json!(""),
        }
    });
    format!("segments {there:.80?}, id {id}, boot {boot}")
}

fn change(place: &Place, change: impl FnOnce(&mut Value)) {
    let path = place.trace().join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).unwrap();
}

/// Several things wrong at once, by chance.
pub fn several_wrong(place: &Place, random: &mut Random) -> String {
    let state = random.below(3);
    start(place, state);
    let mut said = vec![format!("state {state}")];
    if random.one_in(3) {
        let path = place.trace().join("manifest.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, absurd(random, &text)).unwrap();
        said.push("absurd numbers".into());
    }
    for _ in 0..random.below(4) {
        let name = random.pick(&NAMES);
        let inner = name.strip_prefix("segments/").filter(|_| state == 1);
        let path = inner.map_or(place.trace().join(name), |inner| place.shared_folder().join(inner));
        // Not through a folder that is a link by now.
        let folders = path.ancestors().skip(1).take_while(|folder| *folder != place.trace());
        if folders.take(2).all(|folder| fs::symlink_metadata(folder).is_ok_and(|there| there.is_dir())) {
            said.push(format!("{name}: {}", put(place, &path, random.below(KINDS))));
        }
    }
    if random.one_in(2) {
        let tables =
            crate::support::files(&place.trace()).into_iter().filter(|path| path.is_file() && !path.is_symlink());
        let tables: Vec<_> = tables.filter(|path| path.metadata().is_ok_and(|file| file.len() < 1 << 20)).collect();
        if let Some(path) = (!tables.is_empty()).then(|| &tables[random.below(tables.len())]) {
            // A second name: what is behind it must stay.
            let mut bytes = fs::read(path).unwrap();
            random.bytes(&mut bytes);
            fs::remove_file(path).unwrap();
            fs::write(path, bytes).unwrap();
            said.push(format!("{path:?} damaged"));
        }
    }
    if random.one_in(5) {
        let _ = chown(place.trace(), Some(12345), Some(12345));
        said.push("somebody else's folder".into());
    }
    if random.one_in(5) {
        fs::set_permissions(place.trace(), PermissionsExt::from_mode(0o777)).unwrap();
        said.push("everybody's folder".into());
    }
    said.join(", ")
}

/// Numbers of a text, some of them replaced.
fn absurd(random: &mut Random, text: &str) -> String {
    let mut made = String::new();
    let mut digits = String::new();
    for letter in text.chars().chain(['\n']) {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        if !digits.is_empty() {
            made += if random.one_in(3) { random.pick(&NUMBERS) } else { &digits };
            digits.clear();
        }
        made.push(letter);
    }
    made
}
