//! What kept the largest tensors of each process alive when it ended, as the Python package leaves it beside the tables (`--retainers`).

use crate::memory::Retainer;
use crate::{Note, Process, ProcessIndex};
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A process writes a few hundred kilobytes.
const LARGEST: u64 = 4 << 20;
const MOST_FILES: usize = 1024;
const MOST_GROUPS: usize = 256;
const MOST_ADDRESSES: usize = 256;
const LONGEST: usize = 400;

#[derive(Deserialize)]
struct Written {
    pid: i64,
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    kept_by: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    device: String,
    tensors: u64,
    bytes: u64,
    #[serde(default)]
    addresses: Vec<u64>,
}

pub fn is_one(name: &str) -> bool {
    name.strip_prefix("retainers-").and_then(|rest| rest.strip_suffix(".json")).is_some()
}

/// Of the processes that are there. A file that cannot be read is left out with a note.
pub fn read(folder: &Path, names: &[String], processes: &[Process]) -> (Vec<Retainer>, Vec<Note>) {
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    for name in names.iter().take(MOST_FILES) {
        match one(&folder.join(name)) {
            Ok(written) => {
                let Some(at) = processes.iter().position(|process| process.pid == written.pid) else { continue };
                let process = ProcessIndex(at as u32);
                all.extend(written.groups.into_iter().take(MOST_GROUPS).map(|group| group.of(process)));
            }
            Err(why) => notes.push(Note::sentence(format!("{name} is not read ({why})."))),
        }
    }
    (all, notes)
}

fn one(path: &Path) -> Result<Written, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("larger than {}", crate::quantity::bytes(LARGEST)));
    }
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

impl Group {
    fn of(self, process: ProcessIndex) -> Retainer {
        let short = |text: &str| text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect::<String>();
        Retainer {
            process,
            kept_by: short(&self.kept_by).into(),
            file: self.file.as_deref().map(|file| short(file).into()),
            line: self.line,
            device: short(&self.device).into(),
            tensors: self.tensors,
            bytes: self.bytes,
            addresses: self.addresses.into_iter().take(MOST_ADDRESSES).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<Retainer>, Vec<String>) {
        let folder = std::env::temp_dir().join(format!("retainers-{}-{:p}", std::process::id(), &text));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("retainers-7.json"), text).unwrap();
        let processes = [Process { pid: 7, ..Process::default() }];
        let (found, notes) = read(&folder, &["retainers-7.json".into()], &processes);
        std::fs::remove_dir_all(&folder).unwrap();
        (found, notes.iter().map(Note::said).collect())
    }

    #[test]
    fn what_the_package_writes_is_read() {
        let group = r#"{"kept_by":"list in attribute cache of Service","file":null,"line":3,"device":"cuda:0","tensors":2,"bytes":9,"largest_bytes":5,"addresses":[4096,8192]}"#;
        let (found, notes) = of(&format!(r#"{{"schema_version":1,"pid":7,"groups":[{group}],"complete":true}}"#));
        assert_eq!((found.len(), found[0].bytes, &*found[0].device), (1, 9, "cuda:0"));
        assert_eq!((&*found[0].kept_by, found[0].addresses.len()), ("list in attribute cache of Service", 2));
        assert!(notes.is_empty() && is_one("retainers-7.json") && !is_one("retainers-7.json.tmp"));
        assert!(of(&format!(r#"{{"pid":8,"groups":[{group}]}}"#)).0.is_empty(), "of no process that was recorded");
    }

    #[test]
    fn what_is_broken_is_left_out_with_a_note() {
        let odd = [
            String::new(),
            "[]".into(),
            r#"{"pid":7,"groups":[{"kept_by":7}]}"#.into(),
            r#"{"pid":7,"groups":[{"kept_by":"a","tensors":-1,"bytes":1e99}]}"#.into(),
            "[".repeat(100_000),
            " ".repeat(LARGEST as usize + 2),
        ];
        for text in odd {
            let (found, notes) = of(&text);
            assert!(
                found.is_empty() && notes.len() == 1 && notes[0].contains("retainers-7.json is not read"),
                "{notes:?}"
            );
        }
        let long =
            of(&format!(r#"{{"pid":7,"groups":[{{"kept_by":"{}","tensors":1,"bytes":1}}]}}"#, "a\\n".repeat(9_000)));
        assert_eq!(long.0[0].kept_by.len(), LONGEST);
    }
}
