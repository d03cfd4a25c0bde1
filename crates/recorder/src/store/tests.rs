//! The store by itself: what goes in comes out, compaction keeps every row, and leftovers of a kill do no harm.

use super::*;
use std::fs;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("inferscope-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A slice that is open if its number is odd, with args if it is a multiple of 3.
fn push_slice(store: &mut Store, number: i32) {
    let duration = if number % 2 == 0 { Cell::Long(7) } else { Cell::Null };
    let args = if number % 3 == 0 { Cell::Text("{}") } else { Cell::Null };
    let ints = [1, 2, 4, number].map(Cell::Int);
    let start = Cell::Long(i64::from(number));
    let cells = [start, duration, ints[0], ints[1], ints[2], ints[3], Cell::Int(number), Cell::Null, args];
    assert!(store.push(Table::Slices, &cells));
}

fn covered(text: &str) -> Covered {
    Covered::parse(text)
}

/// Ids of the slices that were left open, by what a recovery sees.
fn open_ids(store: &Store) -> (Vec<i32>, Covered) {
    let left = scan(&store.files());
    assert_eq!(left.unreadable, Vec::<String>::new());
    let mut ids: Vec<i32> = left.open.keys().map(|(_, _, id)| *id).collect();
    ids.sort();
    (ids, left.covered.slices)
}

fn odd(most: i32) -> Vec<i32> {
    (0..most).filter(|number| number % 2 == 1).collect()
}

#[test]
fn what_goes_in_comes_out() {
    let folder = Folder::new("round-trip");
    let mut store = Store::open(&folder.0).unwrap();
    (0..100).for_each(|number| push_slice(&mut store, number));
    store.push(Table::Names, &[Cell::Int(41), Cell::Text("naïve"), Cell::Text("a.py"), Cell::Int(3)]);
    store.push(Table::Names, &[Cell::Int(42), Cell::Text(""), Cell::Null, Cell::Null]);
    store.close(&covered("1-2:0:55")).unwrap();
    assert_eq!(folder.names(), ["names.000001-000001.parquet", "slices.000001-000001.parquet"]);
    assert_eq!(open_ids(&store), (odd(100), covered("1-2:0:55")));
    let left = scan(&store.files());
    assert_eq!(left.last_name, 42);
    let slice = &left.open[&(1, 4, 3)];
    assert_eq!((slice.start, slice.thread, slice.name, slice.args.as_deref()), (3, 2, 3, Some("{}")));
    assert_eq!(left.open[&(1, 4, 5)].args, None);
}

#[test]
fn compaction_keeps_every_row_and_how_far_the_rings_are_covered() {
    let folder = Folder::new("compact");
    let segments = Folder::new("compact-segments");
    fs::write(segments.0.join(format!("1-2{}", trace::segment::SUFFIX)), "").unwrap();
    let mut store = Store::open(&folder.0).unwrap();
    for number in 0..40 {
        push_slice(&mut store, number);
        store.close(&covered(&format!("1-2:0:{number};9-9:0:1"))).unwrap();
    }
    while compact_once(&store.files(), Some(&segments.0)).unwrap() {}
    assert_eq!(folder.names().len(), 2 + 8);
    assert_eq!(open_ids(&store).0, odd(40));
    store.finish(Some(&segments.0)).unwrap();
    assert_eq!(folder.names(), ["slices.000001-000040.parquet"]);
    // The segment that is gone needs no entry any more.
    assert_eq!(open_ids(&store), (odd(40), covered("1-2:0:39")));
    // And another recorder goes on after it.
    let mut store = Store::open(&folder.0).unwrap();
    push_slice(&mut store, 41);
    store.close(&Covered::default()).unwrap();
    assert_eq!(folder.names()[1], "slices.000041-000041.parquet");
}

#[test]
fn large_row_groups_are_taken_over_unchanged() {
    let folder = Folder::new("large");
    let mut store = Store::open(&folder.0).unwrap();
    let many = 70_000;
    for file in 0..3 {
        (file * many..(file + 1) * many).for_each(|number| push_slice(&mut store, number));
        store.close(&Covered::default()).unwrap();
        push_slice(&mut store, 3 * many + file);
        store.close(&Covered::default()).unwrap();
    }
    store.finish(None).unwrap();
    let reader = parquet_file::open(store.files().of(Table::Slices)[0].reopen().unwrap()).unwrap();
    let groups: Vec<i64> = parquet::file::reader::FileReader::metadata(&reader)
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .collect();
    assert_eq!(groups, [70_000, 70_000, 70_000, 3]);
    assert_eq!(open_ids(&store).0, odd(3 * many + 3));
}

#[test]
fn the_end_copies_no_large_file() {
    let folder = Folder::new("end");
    let mut store = Store::open(&folder.0).unwrap();
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random as i64
    };
    for rows in [3, 5, 250_000, 4, 6] {
        for _ in 0..rows {
            let ints = [1, 2, 4, next() as i32].map(Cell::Int);
            let (start, dur) = (Cell::Long(next()), Cell::Long(next()));
            let cells = [start, dur, ints[0], ints[1], ints[2], ints[3], Cell::Null, Cell::Null, Cell::Null];
            assert!(store.push(Table::Slices, &cells));
        }
        store.close(&Covered::default()).unwrap();
    }
    store.finish(None).unwrap();
    let joined = ["slices.000001-000002.parquet", "slices.000003-000003.parquet", "slices.000004-000005.parquet"];
    assert_eq!(folder.names(), joined);
}

#[test]
fn leftovers_of_a_killed_compactor_do_no_harm() {
    let folder = Folder::new("leftovers");
    let mut store = Store::open(&folder.0).unwrap();
    for number in 0..3 {
        push_slice(&mut store, number);
        store.close(&Covered::default()).unwrap();
    }
    // Killed before the rename, and between the rename and the removal of what was replaced.
    fs::write(folder.0.join("slices.000001-000003.parquet.tmp"), "half").unwrap();
    let kept: Vec<_> = folder.names().into_iter().filter(|name| name.ends_with("parquet")).collect();
    for name in &kept {
        fs::copy(folder.0.join(name), folder.0.join(format!("{name}.kept"))).unwrap();
    }
    store.finish(None).unwrap();
    for name in &kept {
        fs::rename(folder.0.join(format!("{name}.kept")), folder.0.join(name)).unwrap();
    }
    fs::write(folder.0.join("slices.000004-000004.parquet.tmp"), "half").unwrap();
    let store = Store::open(&folder.0).unwrap();
    assert_eq!(folder.names(), ["slices.000001-000003.parquet"]);
    assert_eq!(open_ids(&store).0, [1]);
}

#[test]
fn a_damaged_file_is_named_and_the_rest_is_read() {
    let folder = Folder::new("damaged");
    let mut store = Store::open(&folder.0).unwrap();
    for number in [1, 3] {
        push_slice(&mut store, number);
        store.close(&Covered::default()).unwrap();
    }
    let file = folder.0.join("slices.000001-000001.parquet");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let left = scan(&Store::open(&folder.0).unwrap().files());
    assert_eq!(left.unreadable, ["slices.000001-000001.parquet"]);
    assert_eq!(left.open.len(), 1);
}

#[test]
fn what_was_removed_is_put_back() {
    let folder = Folder::new("restore");
    let mut store = Store::open(&folder.0).unwrap();
    push_slice(&mut store, 1);
    store.close(&Covered::default()).unwrap();
    fs::remove_dir_all(&folder.0).unwrap();
    push_slice(&mut store, 3);
    store.close(&Covered::default()).unwrap();
    assert_eq!(store.restored, 1);
    fs::remove_file(folder.0.join("slices.000002-000002.parquet")).unwrap();
    store.finish(None).unwrap();
    assert_eq!((store.restored, open_ids(&store).0), (2, vec![1, 3]));
    assert_eq!(folder.names(), ["slices.000001-000002.parquet"]);
}

#[test]
fn a_batch_that_the_disk_does_not_take_stays_and_stays_bounded() {
    let folder = Folder::new("bounded");
    let mut store = Store::open(&folder.0).unwrap();
    push_slice(&mut store, 1);
    // Nothing can be created in a folder that is a file.
    fs::remove_dir_all(&folder.0).unwrap();
    fs::write(&folder.0, "").unwrap();
    assert!(store.close(&Covered::default()).is_err());
    let text = "x".repeat(4096);
    let mut added = 0;
    while store.push(Table::Threads, &[Cell::Long(1), Cell::Int(1), Cell::Int(1), Cell::Text(&text)]) {
        added += 1;
    }
    assert!(added < 3000 && store.any_full());
    fs::remove_file(&folder.0).unwrap();
    store.close(&Covered::default()).unwrap();
    assert_eq!(open_ids(&store).0, [1]);
}
