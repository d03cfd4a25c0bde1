//! The cores that have nothing to do while the steps run: what is to be given to more threads or processes needs them.

use crate::action::Precondition;
use crate::measures::own_load;
use crate::measures::thread_load;
use crate::rule::Case;
use analysis::phrase;

/// Threads that wait longer than this part of their time on a core do not get more by being more.
const MOST_WAITED: f64 = 0.1;

pub struct Cores {
    pub all: u64,
    /// On average, by the program's own threads.
    pub busy: f64,
    /// How long those that ran waited for a core, for each nanosecond on one.
    waited: f64,
}

/// None: one core, or the threads' time was not recorded.
pub fn find(case: &Case) -> Option<Cores> {
    let all = case.timeline.info.host.cpu_count.filter(|count| *count > 1)?;
    let steps = case.windows.across(|_| true);
    let threads = thread_load::threads(case, &steps);
    if threads.is_empty() {
        return None;
    }
    let ran: f64 = threads.iter().map(|one| one.ran).sum();
    let waited: f64 = threads.iter().map(|one| one.waited).sum();
    let total = steps.total().max(1) as f64;
    // What waited for the recorder's core waits for none without it.
    let waited = (waited - own_load::cores(case) * total).max(0.0) / ran.max(1.0);
    Some(Cores { all, busy: ran / total, waited })
}

impl Cores {
    pub fn gets_them(&self) -> bool {
        self.waited <= MOST_WAITED
    }

    /// For work that is moved to other processes: what it takes of a core now, it takes there.
    pub fn for_moved(&self, load: f64) -> f64 {
        (self.all as f64 - self.busy + load).max(0.0)
    }

    /// That there is a core for work that is moved to another process.
    pub fn one_more(&self, load: f64) -> Precondition {
        match self.gets_them() && self.for_moved(load) >= 1.0 {
            true => Precondition::Holds,
            false => Precondition::Fails(format!(
                "no core is free: {:.1} of {} are busy in the steps, and threads that could run wait {} of that time for one",
                self.busy,
                self.all,
                phrase::percent(self.waited / (1.0 + self.waited))
            )),
        }
    }
}
