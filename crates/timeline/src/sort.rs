//! Puts events in the order that everything after relies on: by track, then start, then longer first, so that a parent
//! comes before its children. Works on indexes, so that each column moves once.

use crate::parallel::{self, PIECE, Task};
use std::cmp::Ordering;
use std::ops::Range;

pub struct Sorted {
    /// Where each track's events are.
    pub ranges: Vec<Range<usize>>,
    /// The old place of each event; None when they are in order already.
    pub order: Option<Vec<u32>>,
}

/// `longer` is asked only where two events of a track start together. Where that is equal too, the later row comes first: a
/// recorder writes a slice when it ends, so of two that start and end together the inner one was written first.
pub fn by_track(track: &[u32], start: &[u64], longer: impl Fn(usize) -> u64 + Sync, tracks: usize) -> Sorted {
    let mut counts = vec![0usize; tracks + 1];
    track.iter().for_each(|track| counts[*track as usize + 1] += 1);
    for index in 0..tracks {
        counts[index + 1] += counts[index];
    }
    let ranges = (0..tracks).map(|index| counts[index]..counts[index + 1]).collect();
    let in_order = |a: usize, b: usize| match (track[a], start[a]).cmp(&(track[b], start[b])) {
        Ordering::Less => true,
        Ordering::Equal => longer(a) > longer(b),
        Ordering::Greater => false,
    };
    if (1..track.len()).all(|index| in_order(index - 1, index)) {
        return Sorted { ranges, order: None };
    }
    let mut order = vec![0u32; track.len()];
    let mut next = counts.clone();
    for (index, track) in track.iter().enumerate() {
        let place = &mut next[*track as usize];
        order[*place] = index as u32;
        *place += 1;
    }
    let (mut rest, longer) = (order.as_mut_slice(), &longer);
    let tasks = counts.windows(2).map(|ends| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(ends[1] - ends[0]);
        rest = after;
        // Rows come nearly in order, so the times that are compared lie near each other: no keys need to be copied.
        let start = |index: &u32| start[*index as usize];
        Box::new(move || {
            nearly_sorted(part, start);
            longer_first(part, start, longer);
        }) as Task
    });
    let tasks: Vec<Task> = tasks.collect();
    parallel::run(track.len(), tasks, || {});
    Sorted { ranges, order: Some(order) }
}

/// Puts those of sorted rows that start together in order.
fn longer_first(rows: &mut [u32], start: impl Fn(&u32) -> u64 + Sync, longer: &(impl Fn(usize) -> u64 + Sync)) {
    let (size, start) = (rows.len(), &start);
    let (mut rest, mut tasks): (&mut [u32], Vec<Task>) = (rows, Vec::new());
    while !rest.is_empty() {
        // Those that start together are in one piece.
        let mut end = rest.len().min(PIECE);
        end += rest[end..].iter().take_while(|row| start(row) == start(&rest[end - 1])).count();
        let (piece, after) = std::mem::take(&mut rest).split_at_mut(end);
        rest = after;
        tasks.push(Box::new(move || {
            for same in piece.chunk_by_mut(|a, b| start(a) == start(b)).filter(|same| same.len() > 1) {
                same.sort_by_key(|index| (u64::MAX - longer(*index as usize), u32::MAX - index));
            }
        }));
    }
    parallel::run(size, tasks, || {});
}

/// Sorts rows of which most are in order. Where two are equal, they stay as they are. No key is below its default.
pub fn nearly_sorted<K: Ord + Copy + Default>(rows: &mut [u32], key: impl Fn(&u32) -> K + Sync) {
    let (size, key) = (rows.len(), &key);
    let tasks = rows.chunks_mut(PIECE).map(|piece| Box::new(move || late_into_rest(piece, key)) as Task);
    parallel::run(size, tasks.collect(), || {});
    let mut width = PIECE;
    while width < size {
        let pairs = rows.chunks_mut(width * 2).filter(|pair| pair.len() > width);
        let tasks = pairs.map(|pair| Box::new(move || join(pair, width, key)) as Task);
        parallel::run(size, tasks.collect(), || {});
        width *= 2;
    }
}

/// Makes one of two sorted lists that lie one after the other. They mix only where they meet, as a rule.
fn join<K: Ord>(rows: &mut [u32], middle: usize, key: &impl Fn(&u32) -> K) {
    let (left, right) = rows.split_at(middle);
    let (last, first) = (key(&left[middle - 1]), key(&right[0]));
    if last > first {
        let from = left.partition_point(|row| key(row) <= first);
        let to = middle + right.partition_point(|row| key(row) < last);
        rows[from..to].sort_by_key(key);
    }
}

/// Where more than one in so many rows comes late, as with calls in calls, sorting all of them costs less.
const MANY: usize = 8;

/// Sorts the rows that come late, and merges them into the rest. A recorder writes a slice when it ends, so only those come late that
/// have others inside.
fn late_into_rest<K: Ord + Copy + Default>(rows: &mut [u32], key: &impl Fn(&u32) -> K) {
    let mut latest = K::default();
    let late = rows.iter().filter(|row| {
        let here = key(row);
        let late = here < latest;
        latest = latest.max(here);
        late
    });
    match late.count() {
        0 => return,
        late if late > rows.len() / MANY => return rows.sort_by_key(key),
        _ => {}
    }
    let (mut kept, mut late) = (0, Vec::new());
    latest = K::default();
    for place in 0..rows.len() {
        let (row, here) = (rows[place], key(&rows[place]));
        if here >= latest {
            (rows[kept], latest) = (row, here);
            kept += 1;
        } else {
            late.push(row);
        }
    }
    late.sort_by_key(key);
    // From the end, where the late ones have left room. None that was kept and equals a late one came after it.
    let (mut left, mut place) = (kept, rows.len());
    while let Some(row) = late.last() {
        place -= 1;
        if left > 0 && key(&rows[left - 1]) > key(row) {
            left -= 1;
            rows[place] = rows[left];
        } else {
            rows[place] = *row;
            late.pop();
        }
    }
}

pub fn gather<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
    *column = order.iter().map(|index| column[*index as usize]).collect();
}

/// The same as a job, for columns that are put in order side by side.
pub fn gathering<'j, T: Copy + Send>(column: &'j mut Vec<T>, order: &'j [u32]) -> Task<'j> {
    Box::new(move || gather(column, order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_then_start_then_longer_then_the_later_row() {
        let track = [1, 0, 0, 0, 1];
        let start = [5, 7, 7, 7, 1];
        let dur = [1, 2, 9, 2, 1];
        let sorted = by_track(&track, &start, |index| dur[index], 3);
        assert_eq!(sorted.ranges, [0..3, 3..5, 5..5]);
        assert_eq!(sorted.order, Some(vec![2, 3, 1, 4, 0]));
    }

    #[test]
    fn late_rows_go_where_they_belong_however_many_there_are() {
        for step in [1u64, 7, 93, 517, 999] {
            let start: Vec<u64> = (0..1000u64).map(|row| row * step % 1000 / 3).collect();
            let dur: Vec<u64> = (0..1000u64).map(|row| row % 5).collect();
            let mut wanted: Vec<u32> = (0..1000).collect();
            wanted.sort_by_key(|row| (start[*row as usize], u64::MAX - dur[*row as usize], u32::MAX - row));
            let sorted = by_track(&[0; 1000], &start, |index| dur[index], 1);
            assert_eq!(sorted.order, Some(wanted), "{step}");
        }
    }

    #[test]
    fn many_rows_are_sorted_in_pieces_as_few_are_at_once() {
        // In every piece some rows come late by a little, by a piece, and one by all of them; many start together.
        let count = PIECE * 3 + 1000;
        let late = |row: usize| match row {
            _ if row == PIECE * 3 => 0,
            _ if row.is_multiple_of(50_021) => row.saturating_sub(PIECE),
            _ if row.is_multiple_of(11) => row - 5,
            _ => row,
        };
        let start: Vec<u64> = (0..count).map(|row| late(row) as u64 / 3).collect();
        let dur: Vec<u64> = (0..count as u64).map(|row| row % 5).collect();
        let mut wanted: Vec<u32> = (0..count as u32).collect();
        wanted.sort_by_key(|row| (start[*row as usize], u64::MAX - dur[*row as usize], u32::MAX - row));
        let sorted = by_track(&vec![0; count], &start, |index| dur[index], 1);
        assert!(sorted.order == Some(wanted), "not in order");
        let (mut rows, mut wanted): (Vec<u32>, Vec<u32>) = ((0..count as u32).collect(), (0..count as u32).collect());
        nearly_sorted(&mut rows, |row| start[*row as usize]);
        wanted.sort_by_key(|row| start[*row as usize]);
        assert!(rows == wanted, "equal rows have changed places");
    }

    #[test]
    fn equal_rows_stay_as_they_are() {
        let keys: Vec<u32> = (0..500u32).map(|row| row * 83 % 500 / 7).collect();
        let (mut rows, mut wanted): (Vec<u32>, Vec<u32>) = ((0..500).collect(), (0..500).collect());
        nearly_sorted(&mut rows, |row| keys[*row as usize]);
        wanted.sort_by_key(|row| keys[*row as usize]);
        assert_eq!(rows, wanted);
    }

    #[test]
    fn what_is_in_order_stays() {
        assert!(by_track(&[0, 0, 1], &[1, 2, 0], |_| 0, 2).order.is_none());
        assert!(by_track(&[], &[], |_| 0, 0).order.is_none());
        assert!(by_track(&[0, 0], &[1, 1], |index| 9 - index as u64, 1).order.is_none());
    }
}
