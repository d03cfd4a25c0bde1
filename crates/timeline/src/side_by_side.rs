//! Things that do not depend on each other, on all cores. What they are is left to the caller.

use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// One thing to compute; it keeps its result itself.
pub type Job<'j> = Box<dyn FnOnce() + Send + 'j>;

/// For fewer pieces of work than this, threads cost more than they save.
pub const WORTH_THREADS: usize = 200_000;

/// Does `own` on this thread and the jobs on others, in their order; this thread then helps with those that are left. On one
/// core, and for a small `size`, all is done here, one after the other.
pub fn run(size: usize, jobs: Vec<Job>, own: impl FnOnce()) {
    let cores = if size < WORTH_THREADS { 1 } else { available_parallelism().map_or(1, usize::from) };
    let helpers = jobs.len().min(cores - 1);
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(job) = next() {
            job();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_however_many_cores_there_are() {
        for size in [0, WORTH_THREADS] {
            let mut results = [0; 40];
            let mut own = 0;
            let jobs = results.iter_mut().zip(1..).map(|(result, number)| Box::new(move || *result += number) as Job);
            run(size, jobs.collect(), || own += 1);
            assert_eq!((results.iter().sum::<i32>(), own), (820, 1));
        }
    }
}
