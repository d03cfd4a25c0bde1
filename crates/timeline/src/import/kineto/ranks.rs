//! A folder with a file for each rank, as torch.profiler's trace handler leaves it: all of them on one timeline. The ranks'
//! clocks are the world's; how well those agree between machines no file says.

use super::join::Joined;
use super::{finish, take};
use crate::{Builder, Limits, OpenError, Timeline};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace::plain_file;

/// A folder with more is not of one run.
const MOST_FILES: usize = 4096;

/// Longer than any run pauses between two recordings.
const HOUR: u64 = 3_600_000_000_000;

/// Is there more than an hour in which no file has anything?
fn apart(mut spans: Vec<(u64, u64)>) -> bool {
    spans.sort_unstable();
    let mut end = spans.first().map_or(0, |span| span.1);
    spans.iter().any(|(first, last)| {
        let gap = first.saturating_sub(end);
        end = end.max(*last);
        gap > HOUR
    })
}

/// The files of a folder that may be of ranks, by name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        (name.ends_with(".json") || name.ends_with(".json.gz")) && path.is_file()
    };
    let mut all: Vec<PathBuf> = entries.filter(named).take(MOST_FILES).collect();
    all.sort();
    all
}

pub fn read_folder(
    folder: &Path,
    files: &[PathBuf],
    limits: Limits,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Timeline, OpenError> {
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let total: u64 = files.iter().map(size).sum();
    let mut builder = Builder::default();
    let mut all = Joined::default();
    let (mut done, mut read, mut first_error) = (0, 0, None);
    let mut ranks: BTreeMap<u32, u32> = BTreeMap::new();
    let (mut clocks, mut spans) = (Vec::new(), Vec::new());
    for (path, number) in files.iter().zip(0..) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let file = plain_file::open_inside(path);
        match take(path, file, &mut builder, number, limits, &mut |at, _| progress(done + at, total)) {
            Ok(file) => {
                read += 1;
                all.events += file.events;
                all.whole &= file.whole;
                all.notes.extend(file.notes.iter().map(|note| format!("{name}: {note}")));
                all.software.extend(file.software);
                clocks.push(file.absolute);
                spans.extend(file.span);
                if let Some(rank) = file.rank {
                    *ranks.entry(rank).or_default() += 1;
                }
            }
            // What came before that is on the timeline already, and makes no sense by itself.
            Err(error @ OpenError::TooLarge { .. }) => return Err(error),
            Err(error) => {
                all.notes.push(format!("{name} is left out: {error}."));
                first_error.get_or_insert(error);
            }
        }
        done += size(path);
    }
    if let Some(error) = first_error.filter(|_| read == 0) {
        return Err(error);
    }
    if read > 1 && clocks.contains(&false) {
        all.notes.push("Some files have no base timestamp: ranks may be misaligned.".into());
    }
    if clocks.iter().all(|absolute| *absolute) && apart(spans) {
        all.notes.push("Some files are more than an hour apart: they are not from one run.".into());
    }
    for (rank, count) in ranks.iter().filter(|(_, count)| **count > 1) {
        all.notes
            .push(format!("{count} files say that they are of rank {rank}: each is shown as a process of its own."));
    }
    for process in &mut builder.timeline.processes {
        if let Some(rank) = process.rank {
            process.program = format!("rank {rank} {}", process.program).trim_end().to_owned();
        }
    }
    all.absolute = !clocks.contains(&false);
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let events = Some(all.events).filter(|_| files.len() == 1);
    Ok(finish(builder, all, format!("{read} files of {name}"), events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_two_runs_lie_apart() {
        assert!(!apart(vec![]) && !apart(vec![(5, 9)]));
        assert!(!apart(vec![(HOUR, 2 * HOUR), (0, HOUR + 1), (2 * HOUR + 5, 3 * HOUR)]));
        assert!(apart(vec![(3 * HOUR, 4 * HOUR), (0, HOUR)]));
    }
}
