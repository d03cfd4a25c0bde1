//! Nobody reads what a command says, or what it says cannot be written: it ends with the exit code that it would have had.

use crate::support::Place;
use std::fs::File;
use std::process::Stdio;
use timeline::fixture::Fixture;

/// Ten steps with a kernel each.
fn trace(step_us: u64) -> String {
    let mut text = String::from("process 100 serve.py 3.12.1\nthread 0 100 MainThread\n");
    for index in 0..10u64 {
        let at = index * 20_000;
        text += &format!("step 0 100 {at}..{} request #{}\n", at + step_us, 500 + index);
        text += &format!("api 0 100 {}..{} cudaLaunchKernel #{}\n", at + 10, at + 20, index + 1);
        text += &format!("kernel 0 0 7 {}..{} gemm #{}\n", at + 50, at + 2050, index + 1);
    }
    text
}

/// Commands with the exit code that their result asks for.
const ENDS: [(&[&str], i32); 7] = [
    (&["check", "after", "--max-kernels", "0", "--max-step-ms", "1"], 4),
    (&["check", "after", "--max-kernels", "0", "--max-mib", "1"], 4),
    (&["check", "after", "--max-mib", "1"], 5),
    (&["check", "after", "--max-kernels", "9"], 0),
    (&["diff", "before", "after", "--fail-on", "step_p50 > +5%"], 4),
    (&["diff", "before", "after", "--fail-on", "gpu_memory_mib > 1"], 5),
    (&["diff", "before", "after", "--fail-on", "step_p50 > +5%", "--output", "/dev/stdout"], 4),
];

fn place(name: &str) -> Place {
    let place = Place::new(name);
    Fixture::parse(&trace(8000)).write(&place.at("before"));
    Fixture::parse(&trace(9000)).write(&place.at("after"));
    place
}

/// A pipe whose reader has left.
fn left() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_reader_of_stdout_who_left_changes_no_exit_code() {
    let place = place("left-stdout");
    for (arguments, code) in ENDS {
        let output = place.command(arguments).stdout(left()).stderr(Stdio::piped()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {err}");
        assert_eq!(err.is_empty(), code == 0, "{arguments:?}: {err}");
    }
}

#[test]
fn a_stderr_that_cannot_be_written_changes_no_exit_code() {
    let place = place("left-stderr");
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for (arguments, code) in ENDS {
        for (stdout, stderr) in [(Stdio::null(), full()), (Stdio::null(), left()), (left(), left())] {
            let status = place.command(arguments).stdout(stdout).stderr(stderr).status().unwrap();
            assert_eq!(status.code(), Some(code), "{arguments:?}");
        }
    }
    // What is said beside the result, and what is said when there is none.
    for (arguments, code) in [(["--verbose", "analyze", "after"], 0), (["analyze", "after", "--tea"], 2)] {
        let status = place.command(arguments).stdout(Stdio::null()).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}
