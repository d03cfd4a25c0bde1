//! Ranges that a thread pushes and pops: a stack for each domain, of the thread alone. What lies deeper than the limit is
//! counted and not recorded, and pops are matched all the same.

use super::domains::{Args, Domain};
use super::names::Named;
use super::record::{Finished, write};
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use trace::clock;
use trace::status::Collector;
use workload::session::Session;

struct Open {
    time: u64,
    name: Named,
    args: Option<&'static Args>,
    /// Names of a parent's or an earlier recording mean nothing in this one.
    generation: u32,
}

#[derive(Default)]
struct Stack {
    open: Vec<Open>,
    /// Ranges above the limit.
    beyond: u32,
}

/// By the domain's number.
struct Stacks {
    stacks: Vec<Stack>,
    pops: u32,
}

const DEEPEST: usize = 128;
/// Room for what most programs nest, so that memory is taken once.
const USUAL: usize = 16;
/// One pop in this many is timed, for our own cost.
const TIMED: u32 = 64;

/// What NVTX answers when something is wrong.
pub const ERROR: i32 = -1;
/// What it answers when nobody follows.
pub const NOT_FOLLOWED: i32 = -2;

thread_local! {
    static STACKS: RefCell<Stacks> = const { RefCell::new(Stacks { stacks: Vec::new(), pops: 0 }) };
}

impl Stacks {
    #[cold]
    fn reach(&mut self, domain: &Domain) {
        self.stacks.resize_with(domain.number + 1, Stack::default);
        self.stacks[domain.number].open.reserve(USUAL);
    }
}

/// Ranges that their thread leaves open are counted: nobody can say when they ended.
impl Drop for Stacks {
    fn drop(&mut self) {
        let Some(session) = workload::session::current() else { return };
        let ours = |open: &&Open| open.generation == session.generation;
        let open = self.stacks.iter().map(|stack| stack.open.iter().filter(ours).count()).sum::<usize>();
        session.status(Collector::Nvtx).unpaired.fetch_add(open as u64, Ordering::Relaxed);
    }
}

/// Begins a range. The level of the range, from 0.
#[inline]
pub fn push(session: &'static Session, domain: &Domain, name: Named, args: Option<&'static Args>) -> i32 {
    let pushed = STACKS.try_with(|stacks| {
        // Taken already: a signal handler came in between.
        let mut stacks = stacks.try_borrow_mut().ok()?;
        if stacks.stacks.len() <= domain.number {
            stacks.reach(domain);
        }
        let stack = &mut stacks.stacks[domain.number];
        let level = stack.open.len() as i32 + stack.beyond as i32;
        if stack.open.len() >= DEEPEST {
            stack.beyond += 1;
            session.status(Collector::Nvtx).unpaired.fetch_add(1, Ordering::Relaxed);
        } else {
            stack.open.push(Open { time: clock::now(), name, args, generation: session.generation });
        }
        Some(level)
    });
    pushed.ok().flatten().unwrap_or(ERROR)
}

/// Ends the innermost range. The level of that range.
#[inline]
pub fn pop(session: &'static Session, domain: &Domain) -> i32 {
    let now = clock::now();
    let popped = STACKS.try_with(|stacks| {
        let mut stacks = stacks.try_borrow_mut().ok()?;
        stacks.pops = stacks.pops.wrapping_add(1);
        let timed = stacks.pops.is_multiple_of(TIMED);
        let stack = stacks.stacks.get_mut(domain.number)?;
        if stack.beyond > 0 {
            stack.beyond -= 1;
            return Some(stack.open.len() as i32 + stack.beyond as i32);
        }
        let open = stack.open.pop()?;
        let level = stack.open.len() as i32;
        if open.generation == session.generation {
            let duration = now.saturating_sub(open.time);
            write(session, &Finished { time: open.time, duration, name: &open.name, args: open.args, thread: None });
            if timed {
                // Its push cost about as much.
                workload::cost::add(session.status(Collector::Nvtx), now, 2 * u64::from(TIMED));
            }
        }
        Some(level)
    });
    match popped.ok().flatten() {
        Some(level) => level,
        None => {
            session.status(Collector::Nvtx).unpaired.fetch_add(1, Ordering::Relaxed);
            ERROR
        }
    }
}
