//! What a trace on disk is called: file names, tables, columns and the numbers in them. The recorder writes them, the
//! timeline reads them, and so does any Parquet tool; docs/trace-format.md describes them for people.

mod kinds;

pub use kinds::{SliceKind, WorkKind};

/// `format_version` of manifest.json. Raised when an older reader would misread a newer trace.
pub const FORMAT_VERSION: u32 = 2;
/// The first version that has codes where the one before has sentences and marks.
pub const FIRST_WITH_CODES: u32 = 2;
pub const FORMAT_NAME: &str = "inferscope-trace";
pub const MANIFEST: &str = "manifest.json";
/// Held (flock) by the living recorder of a trace.
pub const LOCK: &str = "recorder.lock";
/// The report in a trace's folder, and the same as a page.
pub const REPORT: &str = "report.md";
pub const REPORT_PAGE: &str = "report.html";

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Table {
    Slices,
    Samples,
    Stacks,
    Names,
    Counters,
    Threads,
    Losses,
    Anchors,
    Gpu,
    Allocations,
    Blocks,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    Int32,
    Int64,
    Text,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnType,
    pub optional: bool,
    /// Values that lie near their neighbours (times, ids): stored as differences.
    pub delta: bool,
    /// What files of format version 1 call it.
    pub before: Option<&'static str>,
}

const fn time(name: &'static str) -> Column {
    Column { name, kind: ColumnType::Int64, optional: false, delta: true, before: None }
}
/// A large number that has nothing to do with its neighbours.
const fn long(name: &'static str) -> Column {
    Column { name, kind: ColumnType::Int64, optional: false, delta: false, before: None }
}
const fn int(name: &'static str) -> Column {
    Column { name, kind: ColumnType::Int32, optional: false, delta: false, before: None }
}
const fn text(name: &'static str) -> Column {
    Column { name, kind: ColumnType::Text, optional: false, delta: false, before: None }
}
const fn optional(column: Column) -> Column {
    Column { optional: true, ..column }
}

impl Table {
    pub const ALL: [Table; 11] = [
        Table::Slices,
        Table::Samples,
        Table::Stacks,
        Table::Names,
        Table::Counters,
        Table::Threads,
        Table::Losses,
        Table::Anchors,
        Table::Gpu,
        Table::Allocations,
        Table::Blocks,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Table::Slices => "slices",
            Table::Samples => "samples",
            Table::Stacks => "stacks",
            Table::Names => "names",
            Table::Counters => "counters",
            Table::Threads => "threads",
            Table::Losses => "losses",
            Table::Anchors => "anchors",
            Table::Gpu => "gpu",
            Table::Allocations => "allocations",
            Table::Blocks => "blocks",
        }
    }

    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    pub fn columns(self) -> &'static [Column] {
        const fn sequence(name: &'static str) -> Column {
            Column { name, kind: ColumnType::Int32, optional: false, delta: true, before: None }
        }
        match self {
            Table::Slices => {
                const {
                    &[
                        time("start_ns"),
                        // Null while the slice is open; a later row with the same id closes it.
                        optional(time("dur_ns")),
                        int("process"),
                        int("thread"),
                        int("kind"),
                        int("name"),
                        optional(int("id")),
                        optional(int("parent")),
                        optional(text("args")),
                    ]
                }
            }
            Table::Samples => const { &[time("time_ns"), int("process"), int("thread"), int("stack"), int("state")] },
            // A stack is a leaf of a tree of frames: follow `parent` to the root.
            Table::Stacks => const { &[sequence("id"), optional(int("parent")), int("name"), int("line")] },
            Table::Names => const { &[sequence("id"), text("text"), optional(text("file")), optional(int("line"))] },
            Table::Counters => {
                const { &[time("time_ns"), int("process"), int("thread"), int("counter"), time("value")] }
            }
            Table::Threads => const { &[time("time_ns"), int("process"), int("thread"), text("name")] },
            Table::Losses => {
                const REASON: Column = Column { before: Some("what"), ..text("reason") };
                const { &[time("time_ns"), int("process"), text("collector"), REASON, time("count")] }
            }
            Table::Anchors => const { &[time("ticks"), time("mono_ns"), time("real_ns"), time("residual_ns")] },
            // What devices did. Columns that a kind of work does not have are null.
            Table::Gpu => {
                const {
                    &[
                        time("start_ns"),
                        time("dur_ns"),
                        int("process"),
                        int("device"),
                        int("context"),
                        int("stream"),
                        int("kind"),
                        int("name"),
                        // The API call that asked for it: `slices.id` of the same process where `slices.kind` is 7.
                        sequence("correlation"),
                        optional(long("bytes")),
                        // Of a kernel the launch type, of a copy what was copied to what: see `detail` in this file.
                        int("detail"),
                        optional(int("grid_x")),
                        optional(int("grid_y")),
                        optional(int("grid_z")),
                        optional(int("block_x")),
                        optional(int("block_y")),
                        optional(int("block_z")),
                        optional(int("registers")),
                        optional(int("shared_static")),
                        optional(int("shared_dynamic")),
                        optional(int("graph")),
                        optional(long("node")),
                    ]
                }
            }
            Table::Allocations => {
                const {
                    &[
                        time("time_ns"),
                        int("process"),
                        int("device"),
                        int("context"),
                        int("stream"),
                        // A [`crate::codes::MemoryOperation`].
                        int("operation"),
                        // What kind of memory: CUPTI's `CUpti_ActivityMemoryKind`.
                        int("memory"),
                        time("address"),
                        time("bytes"),
                        int("name"),
                        // 1: out of a pool (cudaMallocAsync).
                        int("pool"),
                        sequence("correlation"),
                        // Of the virtual memory management.
                        optional(long("handle")),
                        // CUDA's code, of what failed.
                        optional(int("error")),
                    ]
                }
            }
            // What a framework's allocator handed out and took back.
            Table::Blocks => {
                const {
                    &[
                        time("time_ns"),
                        int("process"),
                        int("thread"),
                        // `HOST`: memory of the host.
                        int("device"),
                        // A [`crate::codes::BlockOperation`].
                        int("operation"),
                        time("address"),
                        // 0, of what was freed: the allocator does not say.
                        time("bytes"),
                        // What the allocator has handed out and reserved after this, where it says.
                        optional(time("allocated")),
                        optional(time("reserved")),
                        // Of some blocks, where they were allocated from: the stack, a [`crate::codes::StackReason`] of why it was asked for, and
                        // a [`crate::codes::StackMissing`] where it is not there all the same.
                        optional(int("stack")),
                        optional(int("stack_reason")),
                        optional(int("stack_missing")),
                    ]
                }
            }
        }
    }
}

/// `gpu.detail`: a byte each. For a kernel the first is CUPTI's launch type (0 plain, 1 cooperative, 2 cooperative over
/// devices). For a copy, a memset or a migration: what is copied (CUPTI's `CUpti_ActivityMemcpyKind`), the kind of memory of
/// source and target (`CUpti_ActivityMemoryKind`: 1 pageable, 2 pinned, 3 device, 4 array, 5 managed), and flags. For a wait
/// the first is CUPTI's synchronisation type (1 event, 2 stream waits for event, 3 stream, 4 context).
pub mod detail {
    pub const H2D: u8 = 1;
    pub const D2H: u8 = 2;
    pub const D2D: u8 = 8;
    pub const H2H: u8 = 9;
    pub const P2P: u8 = 10;
    pub const PAGEABLE: u8 = 1;
    pub const PINNED: u8 = 2;
    pub const DEVICE: u8 = 3;
    /// A bit of the fourth byte: asynchronous.
    pub const ASYNC: u8 = 1;

    pub fn pack(first: u8, source: u8, target: u8, flags: u8) -> i32 {
        i32::from_le_bytes([first, source, target, flags])
    }
}

/// Bits of `samples.state`.
pub mod sample_state {
    pub const ACTIVE: i32 = 1;
    pub const GIL: i32 = 2;
}

/// `process` of rows that concern the whole machine, and `thread` of rows that concern the whole process.
pub const HOST: i32 = -1;
pub const WHOLE_PROCESS: i32 = 0;

/// Segment files of a table: `slices.000001-000001.parquet`. A compacted file carries the range that it replaces,
/// so that a reader who finds both (the compactor was killed) takes the wider one.
pub fn file_name(table: Table, first: u32, last: u32) -> String {
    format!("{}.{first:06}-{last:06}.parquet", table.name())
}

/// The inverse of [`file_name`].
pub fn parse_file_name(name: &str) -> Option<(Table, u32, u32)> {
    let mut parts = name.strip_suffix(".parquet")?.split('.');
    let table = Table::from_name(parts.next()?)?;
    let (first, last) = parts.next()?.split_once('-')?;
    let range = (first.parse().ok()?, last.parse().ok()?);
    (parts.next().is_none() && range.0 <= range.1).then_some((table, range.0, range.1))
}

/// The files that a reader takes: per table, in order, without those that a wider file replaces.
pub fn current_files(mut files: Vec<(Table, u32, u32)>) -> Vec<(Table, u32, u32)> {
    files.sort_by_key(|(table, first, last)| (*table, *first, u32::MAX - *last));
    let mut kept: Vec<(Table, u32, u32)> = Vec::new();
    for file in files {
        match kept.last() {
            Some(last) if last.0 == file.0 && last.2 >= file.2 => {}
            _ => kept.push(file),
        }
    }
    kept
}

/// Key of the Parquet footer entry of a slices file that says which ring records are in it:
/// `segment:ring:next` joined by `;`, where `next` is the first record of that ring not yet on disk.
pub const COVERED: &str = "inferscope.covered";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_come_back() {
        assert_eq!(parse_file_name(&file_name(Table::Slices, 3, 17)), Some((Table::Slices, 3, 17)));
        for bad in
            ["slices.parquet", "slices.3-1.parquet", "x.1-1.parquet", "slices.1-1.parquet.tmp", "slices.1-1.2.parquet"]
        {
            assert_eq!(parse_file_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_compacted_file_replaces_what_it_covers() {
        let (s, n) = (Table::Slices, Table::Names);
        let files = vec![(s, 2, 2), (s, 1, 1), (s, 1, 2), (s, 3, 3), (n, 1, 1)];
        assert_eq!(current_files(files), [(s, 1, 2), (s, 3, 3), (n, 1, 1)]);
    }
}
