//! Reads the two tables that hold nearly everything, slices and device work, by row groups and on all cores: each group goes into
//! its own room of columns that are made for all. Then the groups are joined in their order, so that nothing depends on which
//! was read first.

use super::events::{SlicePart, SliceRows};
use super::load::Loader;
use super::table::{Damage, Opened, Rows};
use super::window::Window;
use super::work::WorkPart;
use crate::gpu::part::Columns;
use crate::parallel::{self, Task};
use std::ops::RangeInclusive;
use std::path::Path;
use trace::tables::Table;

/// The files of a table, each opened as far as it can be.
pub struct Files {
    table: Table,
    all: Vec<(String, Result<Opened, String>)>,
    groups: Vec<Group>,
    /// Rows that do not fit.
    beyond: u64,
}

/// A row group: of which file, which one, and how many rows it declares.
struct Group {
    file: usize,
    number: usize,
    rows: usize,
    /// Rows that were read, and why no more were.
    read: (u64, Result<(), String>),
}

impl Files {
    /// `most`: rows that are taken, in whole groups.
    pub fn open(
        folder: &Path,
        table: Table,
        names: impl Iterator<Item = String>,
        most: usize,
        mut window: Option<&mut Window<'_>>,
    ) -> Files {
        let all: Vec<_> = names.map(|name| (name.clone(), Opened::new(&folder.join(name)))).collect();
        let (mut groups, mut total, mut beyond) = (Vec::new(), 0usize, 0);
        for (file, (name, opened)) in all.iter().enumerate() {
            let Ok(opened) = opened else { continue };
            for (number, rows) in opened.groups.iter().enumerate() {
                if window.as_mut().is_some_and(|window| !window.wants(name, opened, number, table)) {
                    continue;
                }
                let declared = usize::try_from(*rows).unwrap_or(usize::MAX);
                match total.checked_add(declared).filter(|sum| *sum <= most) {
                    Some(sum) => {
                        total = sum;
                        groups.push(Group { file, number, rows: declared, read: (0, Ok(())) });
                    }
                    None => beyond += *rows,
                }
            }
        }
        Files { table, all, groups, beyond }
    }

    fn rooms(&self) -> Vec<usize> {
        self.groups.iter().map(|group| group.rows).collect()
    }

    fn rows(&self) -> usize {
        self.groups.iter().map(|group| group.rows).sum()
    }

    /// One job a group; `take` gets its rows.
    fn tasks<'j, T: FnMut(&Rows) + Send + 'j>(
        &'j mut self,
        wanted: Wanted<'j>,
        takes: impl Iterator<Item = T>,
    ) -> Vec<Task<'j>> {
        let Files { table, all, groups, .. } = self;
        let (table, all) = (*table, &*all);
        let job = |(group, mut take): (&'j mut Group, T)| {
            Box::new(move || {
                let Ok(opened) = &all[group.file].1 else { return };
                let mut read = 0;
                let result = opened.read(group.number, table, &mut read, &mut |rows| {
                    wanted.kept.iter().for_each(|kept| rows.keep(kept));
                    wanted.between.iter().for_each(|between| rows.keep_between(between));
                    take(rows);
                });
                group.read = (read, result);
            }) as Task
        };
        groups.iter_mut().zip(takes).map(job).collect()
    }

    /// What is wrong with each file. `forget` is called for the groups after a damaged one: they are not read any more.
    fn damage(&self, mut forget: impl FnMut(usize)) -> Vec<(String, Damage)> {
        let mut damages = Vec::new();
        for (file, (name, opened)) in self.all.iter().enumerate() {
            let (mut rows_read, mut damage) = (0, None);
            for (place, group) in self.groups.iter().enumerate().filter(|(_, group)| group.file == file) {
                if damage.is_some() {
                    forget(place);
                    continue;
                }
                rows_read += group.read.0;
                damage = group.read.1.clone().err();
            }
            let of_footer = || opened.as_ref().map_or_else(|what| Some(what.clone()), |opened| opened.damage.clone());
            if let Some(what) = damage.or_else(of_footer) {
                damages.push((name.clone(), Damage { what, rows_read }));
            }
        }
        damages
    }
}

/// Which rows are taken.
#[derive(Clone, Copy)]
pub struct Wanted<'w> {
    /// Per process number, its new one; None: not wanted. None at all: everything is.
    pub kept: Option<&'w [Option<i32>]>,
    /// Those of this time. None: of all.
    pub between: Option<&'w RangeInclusive<i64>>,
}

/// Slices and work, read and not yet joined, with the files that are damaged.
pub struct Groups {
    slices: (SliceRows, Vec<SlicePart>),
    work: (Columns, Vec<WorkPart>),
    pub damaged_slices: Vec<(String, Damage)>,
    pub damaged_work: Vec<(String, Damage)>,
    /// Rows of each that do not fit into a timeline.
    pub beyond: [(Table, u64); 2],
}

impl Groups {
    /// Names must have been read: rows refer to them.
    pub fn read(loader: &Loader, mut slices: Files, mut work: Files, wanted: Wanted) -> Groups {
        let names = &loader.name_ids;
        let (mut slice_rows, mut columns) = (SliceRows::new(slices.rooms()), Columns::new(work.rooms()));
        let mut slice_parts: Vec<SlicePart> = slices.groups.iter().map(|_| SlicePart::default()).collect();
        let mut work_parts: Vec<WorkPart> = work.groups.iter().map(|_| WorkPart::default()).collect();
        let (size, beyond) = (slices.rows() + work.rows(), [&slices, &work].map(|files| (files.table, files.beyond)));
        let takes = slice_rows.rooms().into_iter().zip(&mut slice_parts);
        let takes = takes.map(|(mut room, part)| move |rows: &Rows| part.take(&mut room, names, rows));
        let mut tasks = slices.tasks(wanted, takes);
        let takes = columns.rooms().into_iter().zip(&mut work_parts);
        let takes = takes.map(|(mut room, part)| move |rows: &Rows| part.take(&mut room, names, rows));
        tasks.extend(work.tasks(wanted, takes));
        parallel::run(size, tasks, || {});
        let damaged_slices = slices.damage(|place| slice_parts[place] = SlicePart::default());
        let damaged_work = work.damage(|place| work_parts[place] = WorkPart::default());
        let (slices, work) = ((slice_rows, slice_parts), (columns, work_parts));
        Groups { slices, work, damaged_slices, damaged_work, beyond }
    }

    pub fn join_slices(&mut self, loader: &mut Loader) {
        let (mut rows, parts) = std::mem::take(&mut self.slices);
        rows.join(loader, parts);
        loader.slices = rows;
    }

    pub fn join_work(&mut self, loader: &mut Loader) {
        let (columns, parts) = std::mem::take(&mut self.work);
        loader.join_work(columns, parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, TemporaryFolder};

    #[test]
    fn rows_that_do_not_fit_are_counted() {
        let folder = TemporaryFolder::new("beyond");
        let calls: String = (0..40).map(|at| format!("call 0 100 {}..{} f@a.py:1\n", at * 10, at * 10 + 5)).collect();
        Fixture::parse(&format!("process 100 serve.py 3.12.1\n{calls}")).write(folder.path());
        let names = std::fs::read_dir(folder.path()).unwrap().flatten();
        let names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let slices = names.into_iter().find(|name| name.starts_with("slices")).unwrap();
        let open = |most| Files::open(folder.path(), Table::Slices, [slices.clone()].into_iter(), most, None);
        let all = open(40);
        assert_eq!((all.rows(), all.beyond), (40, 0));
        let few = open(39);
        assert_eq!(few.rows() as u64 + few.beyond, 40);
        assert!(few.beyond > 0);
    }
}
