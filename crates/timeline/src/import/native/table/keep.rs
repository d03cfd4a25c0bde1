//! Some rows of a batch: those of one rank's processes, under new numbers.

use super::{Buffer, Rows, Values};
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
        self.columns.iter_mut().for_each(|column| column.keep(&kept));
        self.columns[place].values = Values::Int32(kept.iter().map(|(_, number)| *number).collect());
        self.count = kept.len();
    }
}

impl Buffer {
    fn keep(&mut self, kept: &[(usize, i32)]) {
        fn gather<T: Clone>(values: &mut Vec<T>, kept: &[(usize, i32)]) {
            *values = kept.iter().map(|(row, _)| values[*row].clone()).collect();
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
}
