//! What of a command line is ours, and what belongs to the recorded command.

use super::*;
use clap::CommandFactory;

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn what_follows_the_command_is_the_commands_own() {
    let parsed = Arguments::try_parse_from(["inferscope", "run", "--rate", "50", "serve.py", "--rate", "9", "-q"]);
    let Command::Run(run) = parsed.unwrap().command else { panic!("run") };
    assert_eq!(run.argv, ["serve.py", "--rate", "9", "-q"]);
    assert_eq!(run.recording.rate.as_deref(), Some("50"));
}

#[test]
fn an_unknown_flag_is_not_taken_for_the_command() {
    assert!(Arguments::try_parse_from(["inferscope", "run", "--rat", "5", "serve.py"]).is_err());
    let parsed = Arguments::try_parse_from(["inferscope", "run", "--", "--odd-name", "-x"]).unwrap();
    let Command::Run(run) = parsed.command else { panic!("run") };
    assert_eq!(run.argv, ["--odd-name", "-x"]);
}

#[test]
fn calls_take_a_value_only_with_an_equals_sign() {
    let parsed = Arguments::try_parse_from(["inferscope", "run", "--calls", "c"]).unwrap();
    let Command::Run(run) = parsed.command else { panic!("run") };
    assert_eq!((run.recording.calls.as_deref(), run.argv), (Some("true"), vec!["c".into()]));
}
