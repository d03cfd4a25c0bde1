//! Many small files into one. Large row groups are taken over byte for byte; small ones are gathered into larger ones.
//! The result is renamed into place before its inputs are removed, so a kill at any moment leaves a readable trace.

use super::columns::Columns;
use super::covered::Covered;
use super::files::{Files, SegmentFile};
use super::parquet_file::{self, Writer, io_error};
use crate::private;
use parquet::file::reader::FileReader;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use trace::tables::{Table, file_name};

/// Row groups from this size on are not worth reading again.
const LARGE_GROUP: i64 = 1 << 16;

/// Makes one file of neighbours of one table. `segments` is where rings may still hold records.
pub(super) fn merge(files: &Files, inputs: &[Arc<SegmentFile>], segments: Option<&Path>) -> io::Result<()> {
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { return Ok(()) };
    let name = files.folder().join(file_name(first.table, first.first, last.last));
    let unfinished = name.with_extension("parquet.tmp");
    let made = write(first.table, inputs, segments, &unfinished).and_then(|file| {
        std::fs::rename(&unfinished, &name)?;
        files.replace(inputs, file)
    });
    if made.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    made
}

fn write(table: Table, inputs: &[Arc<SegmentFile>], segments: Option<&Path>, to: &Path) -> io::Result<File> {
    let file = private::create(to)?;
    let mut writer = Writer::new(table, file.try_clone()?).map_err(io_error)?;
    let mut gathered = Columns::new(table);
    let mut covered = Covered::default();
    for input in inputs {
        let source = input.reopen()?;
        let reader = parquet_file::open(source.try_clone()?).map_err(io_error)?;
        covered.merge(&parquet_file::covered(&reader));
        for (number, group) in reader.metadata().row_groups().iter().enumerate() {
            if group.num_rows() >= LARGE_GROUP {
                writer.copy(&source, group).map_err(io_error)?;
                continue;
            }
            let group = reader.get_row_group(number).map_err(io_error)?;
            parquet_file::read(group.as_ref(), &mut gathered).map_err(io_error)?;
            if gathered.rows() >= 2 * LARGE_GROUP as usize || gathered.is_full() {
                writer.write(&gathered).map_err(io_error)?;
                gathered.clear();
            }
        }
    }
    if gathered.rows() > 0 {
        writer.write(&gathered).map_err(io_error)?;
    }
    covered.retain(|segment| {
        segments.is_some_and(|folder| folder.join(format!("{segment}{}", trace::segment::SUFFIX)).exists())
    });
    writer.finish(&covered).map_err(io_error)?;
    Ok(file)
}
