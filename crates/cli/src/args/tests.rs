//! What of a command line is ours, and what belongs to the recorded command.

use crate::command_line::{Arguments, Command};
use clap::{CommandFactory, Parser};

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn what_follows_the_command_is_the_commands_own() {
    let parsed = Arguments::try_parse_from(["inferscope", "run", "--rate", "50", "serve.py", "--rate", "9", "-q"]);
    let Command::Run(run) = parsed.unwrap().command else { panic!("run") };
    assert_eq!(run.argv, ["serve.py", "--rate", "9", "-q"]);
    assert_eq!(run.recording.layer().given("rate_hz"), Some((&["50".to_owned()][..], "--rate")));
}

#[test]
fn an_unknown_flag_is_not_taken_for_the_command() {
    assert!(Arguments::try_parse_from(["inferscope", "run", "--rat", "5", "serve.py"]).is_err());
    let parsed = Arguments::try_parse_from(["inferscope", "run", "--", "--odd-name", "-x"]).unwrap();
    let Command::Run(run) = parsed.command else { panic!("run") };
    assert_eq!(run.argv, ["--odd-name", "-x"]);
}

#[test]
fn a_process_that_runs_already_is_offered_no_flag_that_it_is_refused() {
    let help = |name: &str| {
        let mut command = Arguments::command();
        command.find_subcommand_mut(name).unwrap().render_long_help().to_string()
    };
    let (run, attach) = (help("run"), help("attach"));
    for row in trace::settings::all().filter(|row| row.inside_only) {
        let flag = format!("--{}", row.field.replace('_', "-"));
        assert!(run.contains(&flag) && !attach.contains(&flag), "{flag}");
        let value = if flag == "--layers" || flag == "--calls" { flag } else { format!("{flag}=1") };
        let parsed = Arguments::try_parse_from(["inferscope", "attach", "1", &value]).unwrap();
        let Command::Attach(attach) = parsed.command else { panic!("attach") };
        assert!(attach.recording.inside_only().is_some(), "{value}");
    }
    assert!(attach.contains("--rate") && attach.contains("--device-hz"));
}

#[test]
fn calls_take_a_value_only_with_an_equals_sign() {
    let parsed = Arguments::try_parse_from(["inferscope", "run", "--calls", "c"]).unwrap();
    let Command::Run(run) = parsed.command else { panic!("run") };
    assert_eq!(run.recording.layer().given("calls"), Some((&["true".to_owned()][..], "--calls")));
    assert_eq!(run.argv, ["c"]);
}
