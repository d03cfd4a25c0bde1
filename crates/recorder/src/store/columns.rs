//! Rows of one table in memory, a column at a time. Cleared and refilled, never reallocated once warm.

use parquet::data_type::ByteArray;
use trace::tables::{ColumnType, Table};

/// One value of a row. The order and kinds are those of [`Table::columns`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Int(i32),
    Long(i64),
    Text(&'a str),
    Null,
}

impl Cell<'_> {
    pub fn int_or_null(value: Option<i32>) -> Self {
        value.map_or(Cell::Null, Cell::Int)
    }
    pub fn long_or_null(value: Option<i64>) -> Self {
        value.map_or(Cell::Null, Cell::Long)
    }
    pub fn text_or_null(value: Option<&str>) -> Cell<'_> {
        value.map_or(Cell::Null, Cell::Text)
    }
}

/// How the columns of a call are read off its record.
pub(crate) trait CallFields<R> {
    fn start(&self, record: &R) -> i64;
    fn duration(&self, record: &R) -> i64;
    fn thread(&self, record: &R) -> i32;
    fn kind(&self, record: &R) -> i32;
    fn name(&self, record: &R) -> i32;
    fn id(&self, record: &R) -> Option<i32>;
}

pub(super) enum Values {
    Int(Vec<i32>),
    Long(Vec<i64>),
    Text(Vec<ByteArray>),
}

pub(super) struct ColumnData {
    pub values: Values,
    /// 1 where there is a value, 0 where there is none. None for columns that always have one.
    pub levels: Option<Vec<i16>>,
}

pub(crate) struct Columns {
    pub(super) table: Table,
    pub(super) data: Vec<ColumnData>,
    rows: usize,
    text_bytes: usize,
}

/// Text in one batch: what bounds memory when names or metadata are long.
const MOST_TEXT: usize = 8 << 20;
/// Rows in one batch: about 11 MB of slices, or 9 MB of the much wider rows of devices.
const MOST_ROWS: usize = 1 << 18;
const MOST_GPU_ROWS: usize = 1 << 16;

impl Columns {
    pub fn new(table: Table) -> Columns {
        let data = table.columns().iter().map(|column| ColumnData {
            values: match column.kind {
                ColumnType::Int32 => Values::Int(Vec::new()),
                ColumnType::Int64 => Values::Long(Vec::new()),
                ColumnType::Text => Values::Text(Vec::new()),
            },
            levels: column.optional.then(Vec::new),
        });
        Columns { table, data: data.collect(), rows: 0, text_bytes: 0 }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// No more should be added before this batch is on disk.
    pub fn is_full(&self) -> bool {
        let most = if self.table == Table::Gpu { MOST_GPU_ROWS } else { MOST_ROWS };
        self.rows >= most || self.text_bytes >= MOST_TEXT
    }

    pub fn clear(&mut self) {
        for column in &mut self.data {
            match &mut column.values {
                Values::Int(values) => values.clear(),
                Values::Long(values) => values.clear(),
                Values::Text(values) => values.clear(),
            }
            if let Some(levels) = &mut column.levels {
                levels.clear();
            }
        }
        (self.rows, self.text_bytes) = (0, 0);
    }

    /// Adds one row.
    pub fn push(&mut self, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.data.len());
        for (column, cell) in self.data.iter_mut().zip(cells) {
            match (&mut column.values, *cell) {
                (Values::Int(values), Cell::Int(value)) => values.push(value),
                (Values::Long(values), Cell::Long(value)) => values.push(value),
                (Values::Text(values), Cell::Text(text)) => {
                    self.text_bytes += text.len();
                    values.push(ByteArray::from(text));
                }
                (_, cell) => debug_assert!(matches!(cell, Cell::Null) && column.levels.is_some(), "{cell:?}"),
            }
            if let Some(levels) = &mut column.levels {
                levels.push(i16::from(!matches!(cell, Cell::Null)));
            }
        }
        self.rows += 1;
    }

    /// Adds many whole calls to a batch of slices, a column at a time: the path that millions of records a second
    /// take. Calls have neither parent nor args.
    pub fn push_calls<R>(&mut self, records: &[R], process: i32, calls: &impl CallFields<R>) {
        debug_assert_eq!(self.table, Table::Slices);
        let rows = self.rows + records.len();
        for (number, column) in self.data.iter_mut().enumerate() {
            match (&mut column.values, number) {
                (Values::Long(values), 0) => values.extend(records.iter().map(|record| calls.start(record))),
                (Values::Long(values), _) => values.extend(records.iter().map(|record| calls.duration(record))),
                (Values::Int(values), 2) => values.resize(rows, process),
                (Values::Int(values), 3) => values.extend(records.iter().map(|record| calls.thread(record))),
                (Values::Int(values), 4) => values.extend(records.iter().map(|record| calls.kind(record))),
                (Values::Int(values), 5) => values.extend(records.iter().map(|record| calls.name(record))),
                (Values::Int(values), 6) => values.extend(records.iter().filter_map(|record| calls.id(record))),
                _ => {}
            }
            match (&mut column.levels, number) {
                (Some(levels), 6) => {
                    levels.extend(records.iter().map(|record| i16::from(calls.id(record).is_some())));
                }
                (Some(levels), _) => levels.resize(rows, i16::from(number == 1)),
                _ => {}
            }
        }
        self.rows = rows;
    }

    /// Says that a row group was read into the columns.
    pub(super) fn grown(&mut self, rows: usize, text_bytes: usize) {
        self.rows += rows;
        self.text_bytes += text_bytes;
    }
}
