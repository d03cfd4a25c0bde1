//! Reads our own trace: a folder with manifest.json and Parquet tables. A file that is broken is left out and named in
//! the notes; the rest opens.

mod blocks;
mod events;
mod groups;
mod load;
mod manifest;
mod quiet;
mod retainers;
mod rows;
mod table;
mod thrift;
mod vet;
mod window;
mod work;
mod workers;

use crate::{Note, OpenError, Timeline};
use events::MOST_ROWS;
use groups::{Files, Groups, Wanted};
use load::Loader;
use manifest::{Manifest, Refused};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use trace::plain_file;
use trace::quantity;
use trace::tables::{self, MANIFEST, Table};
pub use window::Follow;
use window::Window;

/// Names come before what refers to them. Anchors are left: the recorder has already applied them.
const ORDER: [Table; 10] = [
    Table::Names,
    Table::Stacks,
    Table::Threads,
    Table::Slices,
    Table::Samples,
    Table::Counters,
    Table::Losses,
    Table::Gpu,
    Table::Allocations,
    Table::Blocks,
];

/// A living recorder joins files while we read: those it has joined are looked for anew this often.
const MOST_TRIES: usize = 5;

/// Whether a table can be read without harm by a reader that believes what it declares. Err: what is wrong with it.
pub fn check_table(path: &Path) -> Result<(), String> {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(tables::parse_file_name);
    let (table, ..) = name.ok_or("it is no table")?;
    table::Opened::new(path)?.check(table)
}

/// The whole recording, or one rank of it.
pub fn read(folder: &Path, rank: Option<u32>, progress: &mut dyn FnMut(u64, u64)) -> Result<Timeline, OpenError> {
    for _ in 1..MOST_TRIES {
        if let Some(timeline) = read_once(folder, rank, None, false, progress)? {
            return Ok(timeline);
        }
    }
    Ok(read_once(folder, rank, None, true, progress)?.unwrap_or_default())
}

/// A stretch of the recording.
fn read_window(folder: &Path, window: &mut Window<'_>) -> Result<Timeline, OpenError> {
    for _ in 1..MOST_TRIES {
        if let Some(timeline) = read_once(folder, None, Some(window), false, &mut |_, _| {})? {
            return Ok(timeline);
        }
    }
    Ok(read_once(folder, None, Some(window), true, &mut |_, _| {})?.unwrap_or_default())
}

/// None: a file was there and is gone, and `last` says that there may be another try.
fn read_once(
    folder: &Path,
    rank: Option<u32>,
    mut window: Option<&mut Window<'_>>,
    last: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<Timeline>, OpenError> {
    let unreadable = |source| OpenError::Unreadable { path: folder.into(), source };
    let (mut files, mut entries, mut keepers) = (Vec::new(), 0usize, Vec::new());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        entries += 1;
        let name = entry.map_err(unreadable)?.file_name();
        files.extend(name.to_str().and_then(tables::parse_file_name));
        keepers.extend(name.to_str().filter(|name| retainers::is_one(name)).map(str::to_owned));
    }
    let files = tables::current_files(files);
    let (mut manifest, note) = read_manifest(folder, entries, !files.is_empty())?;
    let kept = match rank.map(|rank| manifest.only(rank)) {
        None => None,
        Some(Ok(kept)) => Some(kept),
        Some(Err(ranks)) => return Err(no_rank(folder, &ranks)),
    };
    let size = |(table, first, last): &(Table, u32, u32)| {
        std::fs::metadata(folder.join(tables::file_name(*table, *first, *last))).map_or(0, |metadata| metadata.len())
    };
    let total = files.iter().map(size).sum();
    let mut done = 0;
    let mut loader = Loader::new(manifest);
    let between = window.as_ref().map(|window| window.between.clone());
    loader.between = between.clone();
    loader.notes.extend(note.map(Note::sentence));
    let names_of = |table: Table| files.iter().filter(move |file| file.0 == table);
    let names_of = |table: Table| names_of(table).map(|file| tables::file_name(file.0, file.1, file.2));
    let mut groups: Option<Groups> = None;
    for table in ORDER {
        let damaged = match table {
            Table::Slices => {
                let [slices, work] = [Table::Slices, Table::Gpu]
                    .map(|table| Files::open(folder, table, names_of(table), MOST_ROWS, window.as_deref_mut()));
                let wanted = Wanted { kept: kept.as_deref(), between: between.as_ref() };
                let groups = groups.insert(Groups::read(&loader, slices, work, wanted));
                groups.beyond.into_iter().for_each(|(table, rows)| loader.beyond(table, rows));
                groups.join_slices(&mut loader);
                std::mem::take(&mut groups.damaged_slices)
            }
            Table::Gpu => groups.as_mut().map_or_else(Vec::new, |groups| {
                groups.join_work(&mut loader);
                std::mem::take(&mut groups.damaged_work)
            }),
            // Blocks mean nothing without those before them.
            Table::Blocks if window.is_some() => Vec::new(),
            _ => names_of(table)
                .filter_map(|name| {
                    if let Some(window) = window.as_deref_mut().filter(|_| Window::cuts(table)) {
                        let result = table::read_some(
                            &folder.join(&name),
                            table,
                            &mut |opened, group| window.wants(&name, opened, group, table),
                            &mut |rows| {
                                between.iter().for_each(|between| rows.keep_between(between));
                                loader.take(table, rows);
                            },
                        );
                        return Some((name, result.err()?));
                    }
                    let result = table::read(&folder.join(&name), table, &mut |rows| {
                        if let Some(kept) = &kept {
                            rows.keep(kept);
                        }
                        loader.take(table, rows);
                    });
                    Some((name, result.err()?))
                })
                .collect(),
        };
        for (name, damage) in damaged {
            if !last && !folder.join(&name).exists() {
                return Ok(None);
            }
            let kept = match damage.rows_read {
                0 => "what it held is missing".to_owned(),
                rows => format!("its first {rows} rows were read, the rest is missing"),
            };
            loader.notes.push(Note::sentence(format!("{name} is damaged ({}): {kept}.", damage.what)));
            loader.damaged(name);
        }
        done += files.iter().filter(|file| file.0 == table).map(size).sum::<u64>();
        progress(done, total);
    }
    let mut timeline = loader.finish();
    keepers.sort();
    let (found, notes) = retainers::read(folder, &keepers, &timeline.processes);
    timeline.memory.retainers = found;
    timeline.notes.extend(notes);
    Ok(Some(timeline))
}

fn no_rank(folder: &Path, ranks: &BTreeSet<u32>) -> OpenError {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    let why = match ranks.is_empty() {
        true => "the recording in it has no ranks: RANK and WORLD_SIZE were not set".to_owned(),
        false => format!("the recording in it has no such rank, only {}", ranks.join(", ")),
    };
    OpenError::NotATrace { path: folder.into(), why }
}

/// The manifest; where it is broken but tables are there, an empty one and a note that says so.
fn read_manifest(folder: &Path, entries: usize, tables: bool) -> Result<(Manifest, Option<String>), OpenError> {
    let path = folder.join(MANIFEST);
    let without = |what: String| {
        Ok((Manifest::default(), Some(format!("{what}: times and processes are as far as the events tell."))))
    };
    let file = match plain_file::open_inside(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return match (tables, entries) {
                (true, _) => without("manifest.json is missing".into()),
                (false, 0) => Err(OpenError::Empty { path: folder.into() }),
                (false, _) => Err(OpenError::NotATrace { path: folder.into(), why: why_no_manifest(folder) }),
            };
        }
        Err(error) if tables && error.kind() == std::io::ErrorKind::InvalidInput => {
            return without(format!("manifest.json is not read ({error})"));
        }
        Err(source) => return Err(OpenError::Unreadable { path, source }),
    };
    let mut bytes = Vec::new();
    file.take(manifest::LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| OpenError::Unreadable { path: path.clone(), source })?;
    let parsed = if bytes.len() as u64 > manifest::LARGEST {
        Err(Refused::Damaged(format!("manifest.json is larger than {}", quantity::bytes(manifest::LARGEST))))
    } else {
        manifest::parse(&bytes)
    };
    match parsed {
        Ok(manifest) => Ok((manifest, None)),
        Err(Refused::NotOurs(why)) => Err(OpenError::NotATrace { path: folder.into(), why }),
        Err(Refused::Newer(found)) => {
            Err(OpenError::NewerVersion { path: folder.into(), found, known: tables::FORMAT_VERSION })
        }
        Err(Refused::Damaged(what)) if tables => without(what),
        Err(Refused::Damaged(what)) => Err(OpenError::Damaged { file: folder.into(), what }),
    }
}

/// A folder of traces is the likeliest mistake.
fn why_no_manifest(folder: &Path) -> String {
    let inside = std::fs::read_dir(folder).ok().and_then(|entries| {
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join(MANIFEST).is_file()).max()
    });
    match inside {
        Some(path) => format!("it holds traces; name one, such as {}", path.display()),
        None => format!("it has no {MANIFEST}"),
    }
}
