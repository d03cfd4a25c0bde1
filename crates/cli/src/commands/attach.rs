//! `inferscope attach`: records a process that was not started by us, until it ends, the time is over, or Ctrl-C.

use crate::args::Attach;
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::finish::{check_report, finish, without_memory};
use analysis::phrase;

pub fn run(settings: &Settings, attach: &Attach) -> Result<Ending, Failure> {
    // In the environment or a file they may be meant for other recordings; whoever types one waits for what never comes.
    if let Some(flag) = attach.recording.inside_only() {
        return Err(Failure::usage(format_args!(
            "{flag} does nothing with `attach`: calls, layers and GPU work are recorded from inside the process. Start it with \
             `inferscope run {flag} ...`, or leave out {flag}"
        )));
    }
    let rules = crate::rule_file::load(settings, None)?;
    check_report(settings, attach.report.as_deref())?;
    let until = match attach.duration {
        Some(duration) => format!("for {}", phrase::duration(duration.as_nanos() as u64)),
        None => "until it ends, or Ctrl-C".into(),
    };
    let begun = || settings.say(format_args!("recording process {} {until}", attach.pid));
    let outcome = recorder::attach(&settings.recording, attach.pid, attach.duration, begun)?;
    let Some(trace) = &outcome.trace else {
        return Err(Failure::error(outcome.notes.join("; ")));
    };
    make_way();
    without_memory(trace, 1);
    let finished = finish(settings, trace, &outcome.notes, attach.report.as_deref(), &rules);
    Ok(if finished.report.is_some() && finished.whole { outcome.exit.into() } else { Ending::Code(1) })
}

/// The process that was recorded may go on: looking at the trace, on all cores, gets out of its way. Threads that are started
/// from here on inherit it.
fn make_way() {
    // SAFETY: concerns this thread only; a refusal changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn looking_at_the_trace_makes_way_with_all_its_threads() {
        // SAFETY: asks for a number of the calling thread.
        let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let inside = std::thread::spawn(move || {
            super::make_way();
            std::thread::spawn(nice).join().unwrap()
        });
        assert!(inside.join().unwrap() >= 10);
    }
}
