//! What a replay tells a person who asks: how sure it is where only samples show a function, in words that fit the recording,
//! and which names there are where the one that was asked for is not.

use analysis::steps::Steps;
use diagnosis::wording::replay as wording;
use replay::{Answer, Refusal, parse, replay};
use timeline::Timeline;

fn ask(text: &str, changes: &str) -> Result<Answer, Refusal> {
    let timeline = Timeline::from_text(text).unwrap();
    replay(&timeline, &Steps::find(&timeline, None), &parse(changes).unwrap())
}

/// Sixty samples, twelve of them of the function: a fifth of the recording, give or take what so few can tell.
#[test]
fn a_recording_without_steps_says_what_its_samples_can_tell() {
    let text = "track main\n samples 0..480ms every 10ms active gil main>other\n samples 480ms..600ms every 10ms active gil main>matmul";
    let answer = ask(text, "remove host:matmul").unwrap();
    let (low, mid, high) = (answer.low_ns / 1000, answer.mid_ns / 1000, answer.high_ns / 1000);
    assert!((105_000..=125_000).contains(&mid), "{answer:?}");
    // Wilson's 95 % bounds of 12 in 60 are 12 and 32 %.
    assert!((60_000..=80_000).contains(&low) && (170_000..=200_000).contains(&high), "{low} {high}");
    assert_eq!(wording::limit(&answer.before[0]), "CPU code");
    let assumed: Vec<String> = answer.assumed.iter().map(wording::assumption).collect();
    assert!(assumed.iter().all(|said| !said.contains("CUDA") && !said.contains("launch")), "{answer:?}");
    assert!(assumed.iter().any(|said| said.starts_with("only one step was measured")), "{answer:?}");
}

#[test]
fn a_name_that_is_not_there_is_answered_with_one_that_is_near_or_with_the_largest() {
    let text = "track main\n repeat 9 every 10ms\n step token 0..8ms\n stream 7\n api cudaLaunchKernel 0..10us\n kernel first 10us..3ms\n api cudaLaunchKernel 5ms..5.01ms\n kernel second 5.01ms..7.9ms\n end";
    let refused = |changes: &str| wording::refusal(&ask(text, changes).unwrap_err());
    let near = refused("remove kernel:secund");
    assert!(near.ends_with("; did you mean \"second\"?"), "{near}");
    let far = refused("remove kernel:nope");
    assert!(far.ends_with("; the longest are \"first\", \"second\""), "{far}");
    assert!(refused("remove copy:x").contains("the steps have none"));
}
