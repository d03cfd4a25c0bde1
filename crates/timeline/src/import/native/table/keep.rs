//! Some rows of a batch: those of one rank's processes, under new numbers, or those of a stretch of time.

use super::{Buffer, Rows, Values};
use std::ops::RangeInclusive;
use trace::tables::HOST;

impl Rows {
    /// Leaves the rows of the processes that have a new number there, and those of the whole machine.
    pub fn keep(&mut self, numbers: &[Option<i32>]) {
        let Some(place) = self.table.columns().iter().position(|column| column.name == "process") else { return };
        let Values::Int32(processes) = &self.columns[place].values else { return };
        let of = |process: i32| match process {
            HOST => Some(HOST),
            _ => numbers.get(usize::try_from(process).ok()?).copied().flatten(),
        };
        let kept: Vec<(usize, i32)> =
            processes.iter().enumerate().filter_map(|(row, process)| Some((row, of(*process)?))).collect();
        let rows: Vec<usize> = kept.iter().map(|(row, _)| *row).collect();
        self.columns.iter_mut().for_each(|column| column.keep(&rows));
        self.columns[place].values = Values::Int32(kept.iter().map(|(_, number)| *number).collect());
        self.count = kept.len();
    }

    /// Leaves what began and ended between the two moments, and what began there and is still open.
    pub fn keep_between(&mut self, between: &RangeInclusive<i64>) {
        let Some(times) = self.times() else { return };
        let within = |row: &usize| {
            between.contains(&times.starts[*row]) && times.end(*row).is_none_or(|end| end <= *between.end())
        };
        let kept: Vec<usize> = (0..self.count).filter(within).collect();
        if kept.len() == self.count {
            return;
        }
        self.columns.iter_mut().for_each(|column| column.keep(&kept));
        self.count = kept.len();
    }

    /// The latest moment that a row knows of. None: the table has no times, or there is no row.
    pub fn latest(&self) -> Option<i64> {
        let times = self.times()?;
        (0..self.count).map(|row| times.end(row).unwrap_or(times.starts[row])).max()
    }

    fn times(&self) -> Option<Times<'_>> {
        let named = |name: &str| self.table.columns().iter().position(|column| column.name == name);
        let longs = |place: usize| match &self.columns[place].values {
            Values::Int64(values) => Some(values.as_slice()),
            _ => None,
        };
        match (named("start_ns"), named("dur_ns"), named("time_ns")) {
            (Some(start), Some(duration), _) => Some(Times {
                starts: longs(start)?,
                durations: Some((longs(duration)?, &self.columns[duration].levels)),
            }),
            (_, _, Some(time)) => Some(Times { starts: longs(time)?, durations: None }),
            _ => None,
        }
    }
}

/// When the rows of a batch are.
struct Times<'a> {
    starts: &'a [i64],
    /// With 1 where the row has one; empty where all have.
    durations: Option<(&'a [i64], &'a [i16])>,
}

impl Times<'_> {
    /// None: it is still open.
    fn end(&self, row: usize) -> Option<i64> {
        match self.durations {
            None => Some(self.starts[row]),
            Some((durations, levels)) if levels.is_empty() || levels[row] == 1 => {
                Some(self.starts[row].saturating_add(durations[row]))
            }
            Some(_) => None,
        }
    }
}

impl Buffer {
    fn keep(&mut self, kept: &[usize]) {
        fn gather<T: Clone>(values: &mut Vec<T>, kept: &[usize]) {
            *values = kept.iter().map(|row| values[*row].clone()).collect();
        }
        match &mut self.values {
            Values::Int32(values) => gather(values, kept),
            Values::Int64(values) => gather(values, kept),
            // With gaps the values stay packed, and `places` leads to them.
            Values::Text(values) if self.levels.is_empty() => gather(values, kept),
            Values::Text(_) => gather(&mut self.places, kept),
        }
        if !self.levels.is_empty() {
            gather(&mut self.levels, kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::data_type::ByteArray;
    use trace::tables::Table;

    #[test]
    fn rows_of_other_processes_go_and_the_rest_stays_together() {
        let plain = |values| Buffer { values, levels: Vec::new(), places: Vec::new() };
        let column = |column: &trace::tables::Column| match column.name {
            "process" => plain(Values::Int32(vec![0, 1, HOST, 2, 7])),
            "time_ns" | "count" => plain(Values::Int64(vec![10, 11, 12, 13, 14])),
            "reason" => Buffer {
                values: Values::Text(vec![ByteArray::from("b"), ByteArray::from("d")]),
                levels: vec![0, 1, 0, 1, 0],
                places: vec![0, 0, 0, 1, 1],
            },
            _ => plain(Values::Text(["a", "b", "c", "d", "e"].map(ByteArray::from).to_vec())),
        };
        let columns = Table::Losses.columns().iter().map(column).collect();
        let mut rows = Rows { table: Table::Losses, columns, count: 5 };
        rows.keep(&[None, Some(0), Some(1)]);
        assert_eq!(
            (rows.count, rows.ints("process"), rows.longs("time_ns")),
            (3, &[0, HOST, 1][..], &[11, 12, 13][..])
        );
        let of = |column| (0..3).map(|row| rows.texts(column).get(row).map(<[u8]>::to_vec)).collect::<Vec<_>>();
        assert_eq!(of("reason"), [Some(b"b".to_vec()), None, Some(b"d".to_vec())]);
        assert_eq!(of("collector"), [Some(b"b".to_vec()), Some(b"c".to_vec()), Some(b"d".to_vec())]);
    }

    #[test]
    fn rows_of_another_time_go() {
        let plain = |values| Buffer { values, levels: Vec::new(), places: Vec::new() };
        let column = |column: &trace::tables::Column| match column.name {
            "start_ns" => plain(Values::Int64(vec![0, 10, 20, 30, 95])),
            // The first two began before, the last had not ended by then.
            "dur_ns" => {
                Buffer { values: Values::Int64(vec![5, 0, 10, 0, 10]), levels: vec![1, 0, 1, 0, 1], places: Vec::new() }
            }
            _ => Buffer { values: Values::Int32(vec![0, 1, 2, 3, 4]), levels: Vec::new(), places: Vec::new() },
        };
        let columns = Table::Slices
            .columns()
            .iter()
            .map(|each| match each.kind {
                trace::tables::ColumnType::Text => {
                    Buffer { values: Values::Text(Vec::new()), levels: vec![0; 5], places: vec![0; 5] }
                }
                _ => column(each),
            })
            .collect();
        let mut rows = Rows { table: Table::Slices, columns, count: 5 };
        assert_eq!(rows.latest(), Some(105));
        rows.keep_between(&(15..=100));
        assert_eq!((rows.count, rows.ints("process")), (2, &[2, 3][..]));
    }
}
