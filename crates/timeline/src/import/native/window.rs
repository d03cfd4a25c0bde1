//! A stretch of time of a recording, which may still grow: what lies in it is read, and of the rest only what it refers to.
//! Files never change under their name, so each row group is asked once when its last row was.

use super::table::Opened;
use crate::{OpenError, Timeline};
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use trace::tables::Table;

/// A recording that is read again and again, a stretch at a time.
pub struct Follow {
    folder: PathBuf,
    ends: GroupEnds,
}

impl Follow {
    pub fn new(folder: &Path) -> Follow {
        Follow { folder: folder.to_owned(), ends: GroupEnds::default() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What began and ended between the two moments, or began there and is still open. The blocks of allocators are left out: they mean
    /// nothing without those before them.
    pub fn read(&mut self, between: RangeInclusive<u64>) -> Result<Timeline, OpenError> {
        let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        let mut window = Window {
            between: signed(*between.start())..=signed(*between.end()),
            ends: &mut self.ends,
            read: HashSet::new(),
        };
        let timeline = super::read_window(&self.folder, &mut window)?;
        let read = window.read;
        self.ends.0.retain(|(name, _), _| read.contains(name));
        Ok(timeline)
    }
}

/// The last moment of each row group; None: it has none, or could not be read.
#[derive(Default)]
struct GroupEnds(HashMap<(String, usize), Option<i64>>);

pub(super) struct Window<'f> {
    pub between: RangeInclusive<i64>,
    ends: &'f mut GroupEnds,
    /// The files that are there.
    read: HashSet<String>,
}

impl Window<'_> {
    /// Whether rows of the table are read by their time.
    pub fn cuts(table: Table) -> bool {
        matches!(table, Table::Slices | Table::Gpu | Table::Samples | Table::Counters)
    }

    /// Whether the row group may hold something of this time. One that cannot be read is read, so that its damage is told.
    pub fn wants(&mut self, name: &str, opened: &Opened, group: usize, table: Table) -> bool {
        if !Self::cuts(table) {
            return true;
        }
        if !self.read.contains(name) {
            self.read.insert(name.to_owned());
        }
        let latest = || opened.latest(group, table).ok().flatten();
        let end = *self.ends.0.entry((name.to_owned(), group)).or_insert_with(latest);
        end.is_none_or(|end| end >= *self.between.start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, TemporaryFolder};

    const ROWS: &str = "process 100 serve.py 3.12.1
step 0 100 0..10 request
step 0 100 10..20 request
step 0 100 20..30 request
step 0 100 30..40 request
";

    #[test]
    fn a_window_has_what_ended_in_it_and_nothing_before() {
        let folder = TemporaryFolder::new("window");
        Fixture::parse(ROWS).write(folder.path());
        let all = crate::open(folder.path()).unwrap();
        assert_eq!(all.slices.len(), 4);
        let at = |index: usize| all.slices.get(index).start + all.slices.get(index).dur;
        let mut follow = Follow::new(folder.path());
        let some = follow.read(at(1)..=at(2)).unwrap();
        assert_eq!(some.slices.len(), 1);
        assert_eq!(some.slices.get(0).start, all.slices.get(2).start);
        assert!(some.start > all.start && some.end <= at(2));
        // The same again, and what came after.
        assert_eq!(follow.read(at(1)..=at(2)).unwrap().slices.len(), 1);
        assert_eq!(follow.read(at(1)..=at(3)).unwrap().slices.len(), 2);
        assert_eq!(follow.read(at(3) + 1..=u64::MAX).unwrap().slices.len(), 0);
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error() {
        let folder = TemporaryFolder::new("window-gone");
        let mut follow = Follow::new(&folder.path().join("none"));
        assert!(follow.read(0..=1).is_err());
    }
}
