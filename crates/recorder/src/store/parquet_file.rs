//! Columns to and from Parquet. Integers are stored as packed differences: measured at 3 to 4 ns a value, half
//! the time of a dictionary, and constant columns shrink to nothing. Only text is compressed, and only what repeats without order
//! (names and shapes of kernels) has a dictionary.

use super::columns::{Columns, Values};
use super::covered::Covered;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use trace::tables::{COVERED, ColumnType, Table};

fn schema(table: Table) -> Result<TypePtr> {
    let field = |column: &trace::tables::Column| {
        let (physical, logical) = match column.kind {
            ColumnType::Int32 => (Physical::INT32, None),
            ColumnType::Int64 => (Physical::INT64, None),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let builder = Type::primitive_type_builder(column.name, physical).with_logical_type(logical);
        builder.with_repetition(repetition).build().map(Arc::new)
    };
    let fields = table.columns().iter().map(field).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder(table.name()).with_fields(fields).build().map(Arc::new)
}

/// One page a column chunk: row groups are small, and nobody seeks inside them.
const PAGE_BYTES: usize = 16 << 20;

/// Columns of `gpu` whose few values come in no order of size. A dictionary makes 14 bytes a kernel into 9 and takes no longer.
const REPEATING: [&str; 6] = ["name", "bytes", "grid_x", "registers", "shared_static", "shared_dynamic"];

fn properties(table: Table) -> WriterPropertiesPtr {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("inferscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_compression(Compression::UNCOMPRESSED)
        .set_write_batch_size(8192)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(usize::MAX);
    for column in table.columns().iter().filter(|column| column.kind == ColumnType::Text) {
        let path = ColumnPath::from(column.name);
        builder = builder
            .set_column_encoding(path.clone(), Encoding::PLAIN)
            .set_column_compression(path.clone(), Compression::SNAPPY)
            // Names are distinct already; everything else repeats.
            .set_column_dictionary_enabled(path, (table, column.name) != (Table::Names, "text"));
    }
    if table == Table::Gpu {
        for column in REPEATING {
            builder = builder.set_column_dictionary_enabled(ColumnPath::from(column), true);
        }
    }
    Arc::new(builder.build())
}

/// Schema and properties of a table, made once.
fn shape(table: Table) -> Result<(TypePtr, WriterPropertiesPtr)> {
    static SHAPES: OnceLock<Vec<(TypePtr, WriterPropertiesPtr)>> = OnceLock::new();
    if SHAPES.get().is_none() {
        let made = Table::ALL.map(|table| schema(table).map(|schema| (schema, properties(table))));
        let _ = SHAPES.set(made.into_iter().collect::<Result<_>>()?);
    }
    let shapes = SHAPES.get().map(Vec::as_slice).unwrap_or_default();
    shapes.get(table as usize).cloned().ok_or_else(|| ParquetError::General("unknown table".into()))
}

/// One Parquet file being written.
pub(super) struct Writer<W: Write + Send> {
    inner: SerializedFileWriter<W>,
}

impl<W: Write + Send> Writer<W> {
    pub fn new(table: Table, to: W) -> Result<Writer<W>> {
        let (schema, properties) = shape(table)?;
        Ok(Writer { inner: SerializedFileWriter::new(to, schema, properties)? })
    }

    pub fn write(&mut self, columns: &Columns) -> Result<()> {
        let mut group = self.inner.next_row_group()?;
        for column in &columns.data {
            let levels = column.levels.as_deref();
            let mut writer = group.next_column()?.ok_or_else(|| ParquetError::General("no such column".into()))?;
            match &column.values {
                Values::Int(values) => writer.typed::<Int32Type>().write_batch(values, levels, None)?,
                Values::Long(values) => writer.typed::<Int64Type>().write_batch(values, levels, None)?,
                Values::Text(values) => writer.typed::<ByteArrayType>().write_batch(values, levels, None)?,
            };
            writer.close()?;
        }
        group.close().map(|_| ())
    }

    /// Takes a row group over byte for byte.
    pub fn copy<R: ChunkReader>(&mut self, from: &R, rows: &parquet::file::metadata::RowGroupMetaData) -> Result<()> {
        let mut group = self.inner.next_row_group()?;
        for column in rows.columns() {
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: rows.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            group.append_column(from, close)?;
        }
        group.close().map(|_| ())
    }

    pub fn finish(mut self, covered: &Covered) -> Result<()> {
        if !covered.is_empty() {
            self.inner.append_key_value_metadata(KeyValue::new(COVERED.to_owned(), covered.to_string()));
        }
        self.inner.close().map(|_| ())
    }
}

pub(super) fn open(file: File) -> Result<SerializedFileReader<File>> {
    SerializedFileReader::new(file)
}

/// What a slices file says about the rings.
pub(super) fn covered(reader: &SerializedFileReader<File>) -> Covered {
    let entries = reader.metadata().file_metadata().key_value_metadata();
    let text = entries.into_iter().flatten().find(|entry| entry.key == COVERED).and_then(|entry| entry.value.as_ref());
    text.map(|text| Covered::parse(text)).unwrap_or_default()
}

/// Appends a row group to columns.
pub(super) fn read(group: &dyn RowGroupReader, into: &mut Columns) -> Result<()> {
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let mut text_bytes = 0;
    for (number, column) in into.data.iter_mut().enumerate() {
        let levels = column.levels.as_mut();
        let reader = group.get_column_reader(number)?;
        let mut read = 0;
        match (reader, &mut column.values) {
            (ColumnReader::Int32ColumnReader(mut reader), Values::Int(values)) => {
                read += reader.read_records(rows, levels, None, values)?.0;
            }
            (ColumnReader::Int64ColumnReader(mut reader), Values::Long(values)) => {
                read += reader.read_records(rows, levels, None, values)?.0;
            }
            (ColumnReader::ByteArrayColumnReader(mut reader), Values::Text(values)) => {
                let before = values.len();
                read += reader.read_records(rows, levels, None, values)?.0;
                text_bytes += values[before..].iter().map(|text| text.len()).sum::<usize>();
            }
            _ => return Err(ParquetError::General("unexpected column type".into())),
        }
        if read != rows {
            return Err(ParquetError::General(format!("{read} of {rows} rows")));
        }
    }
    into.grown(rows, text_bytes);
    Ok(())
}

/// The error of the system underneath, if it was one: callers act on "no space" and "no such folder".
pub(super) fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
