//! Why a Python process has no segment although the collectors were to be brought in. Its arguments and environment are
//! looked at and forgotten, never stored.

use super::{PythonProcess, WatchedProcesses};
use crate::notes::Notes;
use crate::processes::Processes;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use trace::codes::{Note, NoteCode};
use trace::settings::internal;

/// What in the way a process was started keeps the collectors out. None: nothing that we know of.
pub(super) fn why_not(pid: u32) -> Option<String> {
    let words = |file: &str| -> Vec<String> {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    };
    if let Some(flag) = isolating_flag(&words("cmdline")) {
        return Some(format!("it was started with -{flag}, which keeps Python from loading the collectors"));
    }
    let environment = words("environ");
    // For a moment, while one program takes another's place (execve), there is nothing to read: ask again later.
    let readable = environment.iter().any(|variable| !variable.is_empty());
    let told = environment.iter().find_map(|variable| variable.strip_prefix(internal::SEGMENTS)?.strip_prefix('='));
    match told {
        Some(segments) => other_user(pid, segments),
        None => readable
            .then(|| "it was started with a clean environment, without INFERSCOPE_SEGMENTS and PYTHONPATH".into()),
    }
}

/// A program that changed its user can go on writing what it has mapped, but it, its children and what takes its place
/// cannot make a new segment.
fn other_user(pid: u32, segments: &str) -> Option<String> {
    let owner = fs::metadata(segments).ok()?.uid();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let user: u32 = ids.split_ascii_whitespace().nth(1)?.parse().ok()?;
    (user != owner && user != 0).then(|| {
        format!(
            "it runs as user {user}, who may not write to the recorder's shared memory (of user {owner}): it changed its \
             user before it started or forked"
        )
    })
}

/// Notes which Python processes have no scopes and calls, and why: one note for each reason.
pub(crate) fn explain_missing(seen: &WatchedProcesses, processes: &Processes, notes: &Notes) {
    let mut reasons: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let short = |number: &i32, programs: u32| processes.python_segments(*number) < programs;
    for (number, PythonProcess { pid, reason, .. }) in seen.python.iter().filter(|(at, one)| short(at, one.programs)) {
        let python = processes.python(*number);
        let minor = python.strip_prefix("3.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
        let old = minor.is_some_and(|minor| minor < 10) || python.starts_with("2.");
        let old = old.then(|| format!("it runs Python {python}; the collectors need 3.10 or later"));
        let unknown = || "it ended early, or did not load the collectors at start-up".to_owned();
        reasons.entry(old.or_else(|| reason.clone()).unwrap_or_else(unknown)).or_default().insert(*pid);
    }
    for (reason, pids) in reasons {
        for pid in pids {
            notes.add(Note::new(NoteCode::NotInjected).with(&reason).of(pid));
        }
    }
}

/// -I, -S or -E, alone or among other letters, before the script.
fn isolating_flag(words: &[String]) -> Option<char> {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty() && !letters.starts_with('-'))?;
        for (at, letter) in letters.char_indices() {
            match letter {
                'I' | 'S' | 'E' => return Some(letter),
                'c' | 'm' => return None,
                // The value is the rest of this word, or the next one.
                'W' | 'X' => {
                    if at + 1 == letters.len() {
                        rest.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_before_the_script_only() {
        let flag = |line: &str| isolating_flag(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(flag("python -I x.py"), Some('I'));
        assert_eq!(flag("python -uS x.py"), Some('S'));
        assert_eq!(flag("python -X dev -E x.py"), Some('E'));
        assert_eq!(flag("python x.py -S"), None);
        assert_eq!(flag("python -W I -c -S"), None);
        assert_eq!(flag("python -XImportant -m x -E"), None);
    }
}
