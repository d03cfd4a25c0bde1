//! Reads one Parquet file of a table in batches of rows. Columns are found by name: an unknown one is passed over, and a
//! missing one reads as null where the table allows that. What the columns mean is left to the caller.

mod keep;

use super::quiet::quietly;
use super::vet;
use parquet::basic::{Compression, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::{SerializedFileReader, SerializedRowGroupReader};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::plain_file;
use trace::tables::{ColumnType, Table};

/// Small enough to stay in the processor's cache, large enough to make a batch's own cost vanish.
const BATCH: usize = 8192;

/// Why a file could not be read to its end, and how many of its rows were.
#[derive(Debug, PartialEq, Eq)]
pub struct Damage {
    pub what: String,
    pub rows_read: u64,
}

/// A batch of rows.
pub struct Rows {
    table: Table,
    columns: Vec<Buffer>,
    pub count: usize,
}

enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Text(Vec<ByteArray>),
}

struct Buffer {
    values: Values,
    /// 1 where the row has a value; empty when all have.
    levels: Vec<i16>,
    /// For text, which stays packed: the place of each row's value.
    places: Vec<u32>,
}

impl Rows {
    fn buffer(&self, column: &str) -> &Buffer {
        let place = self.table.columns().iter().position(|c| c.name == column).expect("a column of the table");
        &self.columns[place]
    }

    pub fn ints(&self, column: &str) -> &[i32] {
        match &self.buffer(column).values {
            Values::Int32(values) => values,
            _ => &[],
        }
    }

    pub fn longs(&self, column: &str) -> &[i64] {
        match &self.buffer(column).values {
            Values::Int64(values) => values,
            _ => &[],
        }
    }

    pub fn texts(&self, column: &str) -> Texts<'_> {
        Texts(self.buffer(column))
    }

    /// Per row, 1 if there is a value; empty if every row has one.
    pub fn levels(&self, column: &str) -> &[i16] {
        &self.buffer(column).levels
    }
}

/// A column of text.
pub struct Texts<'a>(&'a Buffer);

impl Texts<'_> {
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let Values::Text(values) = &self.0.values else { return None };
        if self.0.levels.is_empty() {
            return values.get(row).map(ByteArray::data);
        }
        (self.0.levels[row] == 1).then(|| values[self.0.places[row] as usize].data())
    }

    pub fn any(&self) -> bool {
        self.0.levels.is_empty() || self.0.levels.contains(&1)
    }
}

/// Calls `each` for every batch of the file. Returns how many rows there were.
pub fn read(path: &Path, table: Table, each: &mut dyn FnMut(&mut Rows)) -> Result<u64, Damage> {
    read_some(path, table, &mut |_, _| true, each)
}

/// As [`read`], of those row groups that are wanted.
pub fn read_some(
    path: &Path,
    table: Table,
    wanted: &mut dyn FnMut(&Opened, usize) -> bool,
    each: &mut dyn FnMut(&mut Rows),
) -> Result<u64, Damage> {
    let mut rows_read = 0;
    let mut all = || {
        let opened = Opened::new(path)?;
        for group in 0..opened.groups.len() {
            if wanted(&opened, group) {
                opened.read(group, table, &mut rows_read, each)?;
            }
        }
        opened.damage.map_or(Ok(()), Err)
    };
    all().map_err(|what| Damage { what, rows_read }).map(|()| rows_read)
}

/// A file whose footer was looked over.
pub struct Opened {
    path: PathBuf,
    footer: Arc<ParquetMetaData>,
    length: u64,
    /// How many rows each row group declares, up to the first that cannot be.
    pub groups: Vec<u64>,
    /// What is wrong with the group after these.
    pub damage: Option<String>,
}

impl Opened {
    pub fn new(path: &Path) -> Result<Opened, String> {
        let file = open(path)?;
        let length = file.metadata().map_err(|error| format!("it cannot be read ({error})"))?.len();
        vet::footer(&file, length)?;
        let reader =
            quietly(|| SerializedFileReader::new(file).map_err(|error| format!("its footer is damaged ({error})")))?;
        let footer = Arc::new(reader.metadata().clone());
        vet::rows(footer.file_metadata().num_rows(), length)?;
        let mut opened = Opened { path: path.into(), footer, length, groups: Vec::new(), damage: None };
        opened.damage = opened.count().err();
        Ok(opened)
    }

    fn count(&mut self) -> Result<(), String> {
        let mut total = 0i64;
        for group in 0..self.footer.num_row_groups() {
            let declared = quietly(|| Ok(self.footer.row_group(group).num_rows()))?;
            let count = vet::rows(declared, self.length)?;
            total = total.saturating_add(declared);
            vet::rows(total, self.length)?;
            self.groups.push(count);
        }
        Ok(())
    }

    /// Looks over every page of every row group.
    pub fn check(&self, table: Table) -> Result<(), String> {
        self.damage.clone().map_or(Ok(()), Err)?;
        let file = Arc::new(open(&self.path)?);
        if file.metadata().is_ok_and(|metadata| plain_file::is_hollow(&metadata)) {
            return Err(format!("it says that it has {} bytes, and is mostly holes", self.length));
        }
        (0..self.groups.len()).try_for_each(|group| {
            quietly(|| columns(&self.footer, group, table, Arc::clone(&file), self.length, |_| true)).map(drop)
        })
    }

    /// Calls `each` for every batch of a row group, and adds to the rows that were read. Opens the file for itself: the copies of one
    /// open file have one position, and others may read other groups of it meanwhile.
    pub fn read(
        &self,
        group: usize,
        table: Table,
        rows_read: &mut u64,
        each: &mut dyn FnMut(&mut Rows),
    ) -> Result<(), String> {
        let file = open(&self.path)?;
        let columns = quietly(|| columns(&self.footer, group, table, Arc::new(file), self.length, |_| true))?;
        read_group(columns, table, self.groups[group], rows_read, each)
    }

    /// The last moment that a row group knows of, by its columns of times alone.
    pub fn latest(&self, group: usize, table: Table) -> Result<Option<i64>, String> {
        let file = open(&self.path)?;
        let times = |column: &trace::tables::Column| matches!(column.name, "start_ns" | "dur_ns" | "time_ns");
        let columns = quietly(|| columns(&self.footer, group, table, Arc::new(file), self.length, times))?;
        let mut latest = None;
        read_group(columns, table, self.groups[group], &mut 0, &mut |rows| latest = latest.max(rows.latest()))?;
        Ok(latest)
    }
}

/// Whoever made the folder may have put anything under the name of a table.
fn open(path: &Path) -> Result<File, String> {
    plain_file::open_inside(path).map_err(|error| format!("it cannot be opened ({error})"))
}

/// The readers of a row group in the table's order; None where the file has no such column, or it is not wanted.
fn columns(
    footer: &ParquetMetaData,
    group: usize,
    table: Table,
    file: Arc<File>,
    length: u64,
    wanted: impl Fn(&trace::tables::Column) -> bool,
) -> Result<Vec<Option<ColumnReader>>, String> {
    let (metadata, pages) = (footer.row_group(group), footer.page_index_for_row_group(group));
    let usual = Arc::new(ReaderProperties::builder().build());
    let rows = SerializedRowGroupReader::new(Arc::clone(&file), metadata, pages, usual);
    let rows = rows.map_err(|error| error.to_string())?;
    let open = |column: &trace::tables::Column| {
        if !wanted(column) {
            return Ok(None);
        }
        let named = |name| metadata.columns().iter().position(|chunk| chunk.column_descr().name() == name);
        let Some(place) = named(column.name).or_else(|| named(column.before?)) else {
            return if column.optional { Ok(None) } else { Err(format!("its column {} is missing", column.name)) };
        };
        let chunk = metadata.column(place);
        let expected = match column.kind {
            ColumnType::Int32 => Type::INT32,
            ColumnType::Int64 => Type::INT64,
            ColumnType::Text => Type::BYTE_ARRAY,
        };
        let shape = chunk.column_descr();
        if chunk.column_type() != expected || shape.max_def_level() > 1 || shape.max_rep_level() > 0 {
            return Err(format!("its column {} has another type", column.name));
        }
        if !matches!(chunk.compression(), Compression::UNCOMPRESSED | Compression::SNAPPY) {
            return Err(format!("it is compressed as {}, which InferScope does not write", chunk.compression()));
        }
        let (start, size) = chunk.byte_range();
        vet::pages(&file, length, start, size, chunk.compression() != Compression::UNCOMPRESSED)?;
        rows.get_column_reader(place).map(Some).map_err(|error| error.to_string())
    };
    table.columns().iter().map(open).collect()
}

fn read_group(
    mut readers: Vec<Option<ColumnReader>>,
    table: Table,
    count: u64,
    rows_read: &mut u64,
    each: &mut dyn FnMut(&mut Rows),
) -> Result<(), String> {
    let empty = |kind| match kind {
        ColumnType::Int32 => Values::Int32(Vec::new()),
        ColumnType::Int64 => Values::Int64(Vec::new()),
        ColumnType::Text => Values::Text(Vec::new()),
    };
    let buffer = |kind| Buffer { values: empty(kind), levels: Vec::new(), places: Vec::new() };
    let columns = table.columns().iter().map(|column| buffer(column.kind)).collect();
    let mut rows = Rows { table, columns, count: 0 };
    let mut left = count;
    while left > 0 {
        let want = left.min(BATCH as u64) as usize;
        quietly(|| {
            readers.iter_mut().zip(&mut rows.columns).try_for_each(|(reader, buffer)| buffer.fill(reader, want))
        })?;
        rows.count = want;
        each(&mut rows);
        *rows_read += want as u64;
        left -= want as u64;
    }
    Ok(())
}

impl Buffer {
    /// Takes the next `want` rows of a column, with nulls as 0 in their places (text stays packed).
    fn fill(&mut self, reader: &mut Option<ColumnReader>, want: usize) -> Result<(), String> {
        self.levels.clear();
        match (reader, &mut self.values) {
            (Some(ColumnReader::Int32ColumnReader(reader)), Values::Int32(values)) => {
                next(reader, want, &mut self.levels, values)?;
                spread(values, &self.levels);
            }
            (Some(ColumnReader::Int64ColumnReader(reader)), Values::Int64(values)) => {
                next(reader, want, &mut self.levels, values)?;
                spread(values, &self.levels);
            }
            (Some(ColumnReader::ByteArrayColumnReader(reader)), Values::Text(values)) => {
                next(reader, want, &mut self.levels, values)?;
                let mut place = 0;
                self.places.clear();
                self.places.extend(self.levels.iter().map(|level| {
                    place += u32::from(*level == 1);
                    place.saturating_sub(1)
                }));
            }
            (None, values) => {
                self.levels.resize(want, 0);
                match values {
                    Values::Int32(values) => values.resize(want, 0),
                    Values::Int64(values) => values.resize(want, 0),
                    Values::Text(_) => self.places.resize(want, 0),
                }
            }
            _ => return Err("a column has another type".into()),
        }
        Ok(())
    }
}

fn next<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    want: usize,
    levels: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<(), String> {
    values.clear();
    let (records, found, _) = reader
        .read_records(want, Some(levels), None, values)
        .map_err(|error| format!("a page is damaged ({error})"))?;
    let present = if levels.is_empty() { records } else { levels.iter().filter(|level| **level == 1).count() };
    if records != want || found != present || values.len() != present || !(levels.is_empty() || levels.len() == want) {
        return Err("its columns have different lengths".into());
    }
    Ok(())
}

/// Moves packed values to their rows.
fn spread<T: Copy + Default>(values: &mut Vec<T>, levels: &[i16]) {
    if levels.is_empty() || values.len() == levels.len() {
        return;
    }
    let mut packed = values.len();
    values.resize(levels.len(), T::default());
    for row in (0..levels.len()).rev() {
        values[row] = if levels[row] == 1 {
            packed -= 1;
            values[packed]
        } else {
            T::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_values_go_to_their_rows() {
        let mut values = vec![1, 2, 3];
        spread(&mut values, &[0, 1, 0, 1, 1, 0]);
        assert_eq!(values, [0, 1, 0, 2, 3, 0]);
    }
}
