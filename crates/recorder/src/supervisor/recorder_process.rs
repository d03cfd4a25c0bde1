//! What the recorder's process does from its first moment to its last. It takes its orders from the supervisor; when that is
//! gone it goes on alone until the workload ends, and completes the trace by itself.

use super::line::{Completed, Line};
use crate::lock::Lock;
use crate::output::{self};
use crate::plan::{Alone, Plan};
use crate::proc;
use crate::protocol::Order;
use crate::recording::Recording;
use crate::resume::{Begun, resume};
use std::time::Duration;

/// Between two looks at the workload.
const PAUSE: Duration = Duration::from_millis(50);
/// It refused to record: the reason was told.
const REFUSED: i32 = 1;

/// The recorder's process. Returns what it exits with.
pub(super) fn record(plan: &Plan<'_>, mut line: Line, restarts: u32) -> i32 {
    // Whoever wants to end a recording has to know its supervisor.
    Lock::hold_for(plan.manifest.recorder_pid);
    let begun = match resume(&plan.output, &plan.manifest, &plan.notes, restarts) {
        Ok(Begun::Open(begun)) => begun,
        Ok(Begun::Complete(notes)) => return leave(plan, &line, &Completed { whole: true, notes }),
        Err(error) => {
            line.say_refused(&error.to_string());
            return REFUSED;
        }
    };
    let mut recording = match Recording::start(plan, *begun, restarts) {
        Ok(recording) => recording,
        Err(error) => {
            line.say_refused(&error.to_string());
            return REFUSED;
        }
    };
    line.say_ready();
    let mut root = plan.root;
    if let Some(pid) = root.filter(|_| plan.end.is_none()) {
        recording.watch(pid, lock(plan, pid));
    }
    let mut order = plan.end.map(Order::End);
    while order.is_none() {
        order = match line.next_order() {
            Some(Order::Watch(pid)) => {
                if root.is_none() {
                    recording.watch(pid, lock(plan, pid));
                }
                root = Some(pid);
                None
            }
            None => {
                plan.alone.note().into_iter().for_each(|note| recording.shared.notes.add(note));
                Some(alone(plan, root))
            }
            order => order,
        };
    }
    match order.unwrap_or(Order::Discard) {
        Order::Discard | Order::Watch(_) => {
            recording.discard();
            // The supervisor does it otherwise.
            if !line.say_ready() {
                output::discard(&plan.output.trace, &plan.output.segments);
            }
            0
        }
        Order::End(exit) => {
            if let Alone::Record { caller, .. } = &plan.alone {
                caller.make_way();
            }
            let completed = recording.finish(exit);
            leave(plan, &line, &completed)
        }
    }
}

/// Another recorder may have been first: then it samples the process, and we do not.
fn lock(plan: &Plan<'_>, pid: u32) -> Option<Lock> {
    if plan.root_lock.is_some() { None } else { Lock::process(pid).ok() }
}

/// Waits for the end of the workload.
fn alone(plan: &Plan<'_>, root: Option<u32>) -> Order {
    // Without a process nothing was started: the supervisor was killed before it came to that.
    let Some(root) = root else { return Order::Discard };
    let start_ticks = proc::stat(root).map(|stat| stat.start_ticks);
    loop {
        match &plan.alone {
            Alone::Attach => return Order::End(None),
            Alone::Record { caller, .. } => {
                if let Some(order) = caller.asks() {
                    return order;
                }
            }
            Alone::Run => {
                if !start_ticks.is_some_and(|start_ticks| proc::alive(root, start_ticks)) {
                    return Order::End(None);
                }
                proc::rest(root, PAUSE);
            }
        }
    }
}

/// Tells the supervisor that the trace is complete; does the rest itself where there is none any more.
fn leave(plan: &Plan<'_>, line: &Line, completed: &Completed) -> i32 {
    if line.say_completed(completed) {
        return 0;
    }
    if let Alone::Record { caller, report } = &plan.alone {
        plan.root_lock.iter().for_each(Lock::release);
        caller.report(&plan.output.shown, report);
    }
    if completed.whole {
        output::remove_segments(&plan.output.segments);
    }
    0
}
