//! Independent tasks on all cores, or on one where others are to have the rest. What they compute is
//! left to the caller.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// One thing to compute; it stores its result itself.
pub type Task<'j> = Box<dyn FnOnce() + Send + 'j>;

/// For fewer pieces of work than this, threads cost more than they save.
pub const WORTH_THREADS: usize = 200_000;

static ONE_CORE: AtomicBool = AtomicBool::new(false);

/// From now on this process does everything on the thread that asks for it: the cores are somebody else's.
pub fn use_one_core() {
    ONE_CORE.store(true, Ordering::Relaxed);
}

fn cores(size: usize, one: bool) -> usize {
    if one || size < WORTH_THREADS { 1 } else { available_parallelism().map_or(1, usize::from) }
}

/// Runs `own` on this thread and the tasks on others, in their order; this thread then helps with those that are left. On one
/// core, and for a small `size`, all is done here, one after the other.
pub fn run(size: usize, tasks: Vec<Task>, own: impl FnOnce()) {
    let helpers = tasks.len().min(cores(size, ONE_CORE.load(Ordering::Relaxed)) - 1);
    let tasks = Mutex::new(tasks.into_iter());
    let next = || tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(task) = next() {
            task();
        }
    };
    scope(|scope| {
        for _ in 0..helpers {
            // Where the system refuses a thread, this one does its work.
            let _ = Builder::new().spawn_scoped(scope, work);
        }
        own();
        work();
    });
}

/// So many of a long list are looked at by one task.
pub const PIECE: usize = 1 << 18;

/// A long list, in pieces.
pub fn pieces(all: Range<usize>) -> impl Iterator<Item = Range<usize>> + Clone {
    let end = all.end;
    all.step_by(PIECE).map(move |start| start..end.min(start + PIECE))
}

/// What is found for the members of some lists, in their order. Each is looked at twice: whether there is anything, and what it is.
pub fn collect<T: Copy + Default + Send>(
    lists: impl Iterator<Item = Range<usize>>,
    find: impl Fn(usize) -> Option<T> + Sync,
) -> Vec<T> {
    let (lists, find): (Vec<_>, _) = (lists.flat_map(pieces).collect(), &find);
    let size = lists.iter().map(Range::len).sum();
    let mut counts = vec![0; lists.len()];
    let tasks =
        lists.iter().cloned().zip(&mut counts).map(|(list, count)| {
            Box::new(move || *count = list.filter(|index| find(*index).is_some()).count()) as Task
        });
    run(size, tasks.collect(), || {});
    let mut all = vec![T::default(); counts.iter().sum()];
    let mut rest = all.as_mut_slice();
    let tasks = lists.into_iter().zip(counts).map(|(list, count)| {
        let (own, after) = std::mem::take(&mut rest).split_at_mut(count);
        rest = after;
        Box::new(move || own.iter_mut().zip(list.filter_map(find)).for_each(|(place, found)| *place = found)) as Task
    });
    run(size, tasks.collect(), || {});
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_in_pieces_comes_in_order() {
        let lists = [5..PIECE + 9, 0..0, 3..4, PIECE..PIECE * 2 + 1];
        let find = |index: usize| index.is_multiple_of(3).then_some(index);
        let one_by_one: Vec<usize> = lists.iter().cloned().flatten().filter_map(find).collect();
        assert!(collect(lists.into_iter(), find) == one_by_one);
    }

    #[test]
    fn one_core_is_used_for_little_work_and_where_the_others_are_not_ours() {
        let all = available_parallelism().map_or(1, usize::from);
        let used = [cores(WORTH_THREADS, false), cores(WORTH_THREADS - 1, false), cores(WORTH_THREADS, true)];
        assert_eq!(used, [all, 1, 1]);
    }

    #[test]
    fn every_job_is_done_once_however_many_cores_there_are() {
        for size in [0, WORTH_THREADS] {
            let mut results = [0; 40];
            let mut own = 0;
            let tasks = results.iter_mut().zip(1..).map(|(result, number)| Box::new(move || *result += number) as Task);
            run(size, tasks.collect(), || own += 1);
            assert_eq!((results.iter().sum::<i32>(), own), (820, 1));
        }
    }
}
