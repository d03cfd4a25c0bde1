//! The bundle of a process that died of memory: a folder that explains it to somebody who was not there, and holds no secret. The oldest bundles go
//! when there are too many.

use crate::death::Death;
use crate::event::{Event, EventType};
use crate::json;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What is written.
pub struct Bundle<'a> {
    pub death: Death,
    /// `host`, `cuda`, `rocm`.
    pub backend: &'a str,
    pub pid: u32,
    pub time_ns: u64,
    /// When the process began.
    pub began_ns: u64,
    /// Oldest first.
    pub events: Vec<&'a Event>,
    /// The post-mortem, a sentence each.
    pub sentences: Vec<String>,
    /// The request for memory that failed, in numbers. Null: none was seen.
    pub failed_request: Value,
    /// Of the environment only what is on the list below is kept.
    pub variables: Vec<(String, String)>,
}

/// How many bundles a folder keeps, and how large they may be together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    pub bundles: usize,
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { bundles: 5, bytes: 256 << 20 }
    }
}

const PREFIX: &str = "oom_dump_";
const SCHEMA: u32 = 2;
/// Variables that say how memory was set up. Everything else may be a secret and is never kept.
const ALLOWED: [&str; 14] = [
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "LOCAL_RANK",
    "MALLOC_ARENA_MAX",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "RANK",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "WORLD_SIZE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
];

/// Whether a folder of this name is a bundle: they lie beside traces.
pub fn is_bundle(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}

impl Bundle<'_> {
    /// Writes it into `folder` and returns where it is. It appears whole or not at all.
    pub fn write(&self, folder: &Path, retention: Retention) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let (unfinished, finished) = self.places(folder)?;
        let written = self.files(&unfinished).and_then(|()| fs::rename(&unfinished, &finished));
        if let Err(error) = written {
            let _ = fs::remove_dir_all(&unfinished);
            return Err(error);
        }
        retain(folder, &finished, retention);
        Ok(finished)
    }

    fn places(&self, folder: &Path) -> io::Result<(PathBuf, PathBuf)> {
        for sequence in 1..1000 {
            let name = format!("{PREFIX}{}_{}_{}_{sequence}", utc(self.time_ns), self.pid, self.backend);
            let (unfinished, finished) = (folder.join(format!(".{name}.tmp")), folder.join(name));
            if finished.exists() {
                continue;
            }
            match fs::DirBuilder::new().mode(0o700).create(&unfinished) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => return made.map(|()| (unfinished, finished)),
            }
        }
        Err(io::Error::other("there are too many bundles of this second"))
    }

    fn files(&self, folder: &Path) -> io::Result<()> {
        let events: Vec<Value> = self.events.iter().map(|event| Value::Object(json::object(event))).collect();
        let last = self.events.iter().rev().find(|event| event.kind == EventType::Sample);
        let metadata = json!({
            "reason": self.death.reason(),
            "exception": Value::Null,
            "context": Value::Null,
            "captured_event_count": events.len(),
            "began_ns": self.began_ns,
            "died_ns": self.time_ns,
            "post_mortem": self.sentences,
            "failed_request": self.failed_request,
            "last_sample": last.map(|event| Value::Object(json::object(event))),
        });
        let allowed = |(name, _): &&(String, String)| ALLOWED.contains(&name.as_str());
        let environment: serde_json::Map<String, Value> =
            self.variables.iter().filter(allowed).map(|(name, value)| (name.clone(), json!(value))).collect();
        let manifest = json!({
            "schema": SCHEMA,
            "bundle_name": folder.file_name().map(|name| name.to_string_lossy().trim_matches('.').trim_end_matches(".tmp").to_owned()),
            "created_at_utc": utc(self.time_ns),
            "reason": self.death.reason(),
            "backend": self.backend,
            "event_count": events.len(),
            "files": ["manifest.json", "events.json", "metadata.json", "environment.json"],
        });
        let files = [
            ("events.json", json!(events)),
            ("metadata.json", metadata),
            ("environment.json", json!({ "variables": environment })),
            ("manifest.json", manifest),
        ];
        files.iter().try_for_each(|(name, value)| fs::write(folder.join(name), format!("{value:#}\n")))
    }
}

/// The oldest go first; the newest always stays.
fn retain(folder: &Path, newest: &Path, retention: Retention) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_bundle(path) && path != newest).collect();
    // Names begin with the time.
    found.sort();
    let size = |path: &Path| -> u64 {
        fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|file| file.metadata().ok())
            .map(|file| file.len())
            .sum()
    };
    let mut total = size(newest) + found.iter().map(|path| size(path)).sum::<u64>();
    for (older, path) in found.iter().enumerate() {
        if found.len() - older < retention.bundles.max(1) && total <= retention.bytes {
            return;
        }
        total -= size(path);
        let _ = fs::remove_dir_all(path);
    }
}

/// `20261118T141530Z`.
pub(crate) fn utc(time_ns: u64) -> String {
    let seconds = (time_ns / 1_000_000_000) as libc::time_t;
    // SAFETY: plain data that the call fills from a number.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&seconds, &mut time);
        time
    };
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(time_ns: u64) -> Bundle<'static> {
        Bundle {
            death: Death::GroupLimit { limit: 1 << 30 },
            backend: "host",
            pid: 42,
            time_ns,
            began_ns: 0,
            events: Vec::new(),
            sentences: vec!["It had no memory left.".into()],
            failed_request: Value::Null,
            variables: vec![("RANK".into(), "3".into()), ("AWS_SECRET_ACCESS_KEY".into(), "hidden".into())],
        }
    }

    #[test]
    fn bundles_hold_no_secret_and_the_oldest_go() {
        let folder = std::env::temp_dir().join(format!("inferscope-bundle-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let second = |number: u64| (1_763_000_000 + number) * 1_000_000_000;
        let places: Vec<PathBuf> =
            (0..7).map(|number| bundle(second(number)).write(&folder, Retention::default()).unwrap()).collect();
        let kept: Vec<bool> = places.iter().map(|place| place.exists()).collect();
        assert_eq!(kept, [false, false, true, true, true, true, true]);
        let again = bundle(second(6)).write(&folder, Retention { bundles: 2, bytes: 1 << 20 }).unwrap();
        assert!(again.to_string_lossy().ends_with("_42_host_2") && places[6].exists() && !places[5].exists());
        for file in ["manifest.json", "events.json", "metadata.json", "environment.json"] {
            let text = fs::read_to_string(again.join(file)).unwrap();
            assert!(serde_json::from_str::<Value>(&text).is_ok() && !text.contains("hidden"), "{file}: {text}");
        }
        assert!(fs::read_to_string(again.join("environment.json")).unwrap().contains("\"RANK\": \"3\""));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing unfinished is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(utc(1_763_000_000_000_000_000), "20251113T021320Z");
    }
}
