//! Why a replay has no answer: a name that is not there, with the one that may have been meant; a recording that cannot say it; steps that it does
//! not reproduce.

use super::replay::{SYNC, refused};
use replay::{Near, NotThere, Refusal, Unknown};
use timeline::RecordedBy;

#[test]
fn what_is_not_there_is_refused_with_the_nearest_name() {
    let alike = |name: &str| Near::Alike(name.into());
    let not_there = |what: NotThere| Refusal::NotThere(what);
    let near = not_there(NotThere::Kernel("secnod".into(), alike("second")));
    assert_eq!(refused(SYNC, "remove kernel:secnod"), near);
    let near = not_there(NotThere::Call("cudaLaunchKernle".into(), alike("cudaLaunchKernel")));
    assert_eq!(refused(SYNC, "scale api:cudaLaunchKernle 0.5"), near);
    let none = not_there(NotThere::Copy("h2d".into(), Near::Longest(Vec::new())));
    assert_eq!(refused(SYNC, "remove copy:h2d"), none);
    assert_eq!(refused(SYNC, "scale sync-api 0.5"), not_there(NotThere::LengthOfWait));
    let unlinked = "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0";
    assert_eq!(refused(unlinked, "remove kernel:k"), Refusal::Unknown(Unknown::Launches(RecordedBy::InferScope)));
}

/// Half of the step the kernel did not start, and nothing that was recorded held it back.
#[test]
fn a_step_that_the_graph_does_not_explain_gets_no_answer() {
    let mut text = String::from("track main\n");
    for step in 0..10 {
        let (at, late) = (step * 10, step * 10 + if step % 2 == 0 { 0 } else { 4 });
        text.push_str(&format!("step token {at}ms..{0}.1ms\n api cudaLaunchKernel {at}ms..{at}.01ms\n", late + 1));
        text.push_str(&format!("stream 7\n kernel k {late}.1ms..{}ms\n", late + 1));
        text.push_str(&format!(
            "api cudaStreamSynchronize {at}.02ms..{0}.05ms\n sync stream {at}.02ms..{0}.05ms\n",
            late + 1
        ));
    }
    let Refusal::Unknown(Unknown::Missed(check)) = refused(&text, "scale kernel:k 0.5") else { panic!("answered") };
    assert!((0.59..0.61).contains(&check.off), "{check:?}");
}
