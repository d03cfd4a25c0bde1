//! Recording as a user meets it: exits, bad commands, nested and doubled recorders, many processes, memory.

mod roles;

use recorder::{Error, Exit, Settings, attach, run};
use roles::*;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use trace::tables::Table;

#[test]
fn role() {
    play();
}

fn words(line: &[&str]) -> Vec<OsString> {
    line.iter().map(OsString::from).collect()
}

/// A Python script that runs until it is killed.
struct Python(Child);

impl Python {
    fn start(folder: &Folder, script: &str) -> Python {
        let (path, ready) = (folder.path("script.py"), folder.path("ready"));
        fs::write(&path, format!("{script}\nopen({ready:?}, 'w').close()\nwork()\n")).unwrap();
        let child = Command::new("python3").arg(path).stdout(Stdio::null()).spawn().unwrap();
        until("the script runs", || ready.exists());
        Python(child)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const BUSY: &str = "
import threading
def inner():
    return sum(range(2000))
def work():
    while True:
        inner()
threading.Thread(target=threading.Event().wait, name='sleeper', daemon=True).start()
";

#[test]
fn the_exit_passes_through() {
    let folder = Folder::new("exits");
    for (number, (line, exit)) in
        [("exit 7", Exit::Code(7)), ("kill -9 $$", Exit::Signal(9)), ("true", Exit::Code(0))].into_iter().enumerate()
    {
        let trace = folder.path(&number.to_string());
        let outcome = run(&settings(trace.clone()), &words(&["sh", "-c", line])).unwrap();
        assert_eq!((outcome.exit, outcome.trace), (exit, Some(trace.clone())));
        let manifest = state(&trace);
        assert_eq!((manifest.exit, manifest.command.as_str()), (Some(exit), "sh"));
    }
}

#[test]
fn a_command_that_cannot_start_leaves_nothing_behind() {
    let folder = Folder::new("bad-command");
    let interpreter = folder.path("script");
    fs::write(&interpreter, "#!/no/such/interpreter\n").unwrap();
    assert!(Command::new("chmod").arg("+x").arg(&interpreter).status().unwrap().success());
    let trace = folder.path("trace");
    for (word, code) in [("no-such-command-at-all", 127), ("/tmp", 126), (interpreter.to_str().unwrap(), 126)] {
        let error = run(&settings(trace.clone()), &words(&[word])).unwrap_err();
        assert_eq!(error.exit_code(), code, "{error}");
        assert!(error.to_string().starts_with(word), "{error}");
        assert!(!trace.exists());
    }
}

#[test]
fn an_unusable_output_is_an_error_before_the_command_runs() {
    let folder = Folder::new("bad-output");
    let (ran, full) = (folder.path("ran"), folder.path("full"));
    fs::create_dir(&full).unwrap();
    fs::write(full.join("something"), "").unwrap();
    for output in [PathBuf::from("/proc/no/such"), full, folder.path("full/something/below")] {
        let error = run(&settings(output), &words(&["touch", ran.to_str().unwrap()])).unwrap_err();
        assert!(matches!(error, Error::Output { .. }) && error.exit_code() == 1, "{error}");
        assert!(!ran.exists());
    }
}

#[test]
fn a_recorder_inside_a_recorder_leaves_the_work_to_the_outer_one() {
    let folder = Folder::new("nested");
    let (outer, inner, result) = (folder.path("outer"), folder.path("inner"), folder.path("result"));
    let words: Vec<String> = in_role("recorder").iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = format!("OUTPUT={} RESULT={} COMMAND='exit 5' {}", inner.display(), result.display(), words.join(" "));
    let outcome = run(&settings(outer.clone()), &[OsString::from("sh"), "-c".into(), line.into()]).unwrap();
    assert_eq!(outcome.exit, Exit::Code(5));
    assert!(outer.exists() && !inner.exists());
    assert!(fs::read_to_string(result).unwrap().contains("already records this command"));
}

#[test]
fn hundreds_of_short_processes_are_all_there() {
    let folder = Folder::new("many");
    let (trace, words) = (folder.path("trace"), in_role("writer"));
    let writer: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = format!("for i in $(seq 200); do COUNT=50 SIZE_MB=2 {} > /dev/null & done; wait", writer.join(" "));
    let outcome = run(&settings(trace.clone()), &[OsString::from("sh"), "-c".into(), line.into()]).unwrap();
    assert_eq!(outcome.exit, Exit::Code(0));
    assert!(!outcome.notes.iter().any(|note| note.contains("segment")), "{:?}", outcome.notes);
    assert_eq!((calls(&trace), lost(&trace)), (200 * 50, 0));
    let manifest = state(&trace);
    assert_eq!(manifest.processes.iter().filter(|process| process.program == "writer").count(), 200);
    assert!(manifest.processes.iter().all(|process| process.ended_ns.is_some()));
}

#[test]
fn memory_stays_bounded_with_millions_of_records_and_names() {
    let folder = Folder::new("bounded");
    let trace = folder.path("trace");
    let variables: [(&str, &Path); 3] =
        [("OUTPUT", &trace), ("COUNT", Path::new("1500000")), ("NAMES", Path::new("700000"))];
    let mut supervisor = spawn("recorder", &variables);
    let (mut own, mut peak) = (0, 0);
    let ended = until_some("the command has ended", || {
        own = peak_kilobytes(supervisor.id()).max(own);
        peak = recorder_pid(&trace).map_or(0, peak_kilobytes).max(peak);
        supervisor.try_wait().unwrap()
    });
    assert_eq!(ended.code(), Some(0));
    assert!(0 < peak && peak < 150 << 10, "the recorder took {peak} kB");
    // A test binary and its libraries; nothing of the trace.
    assert!(0 < own && own < 30 << 10, "the supervisor took {own} kB");
    // A call whose name did not fit into the table is several records, so a lost one may count more than once.
    assert!(calls(&trace) + lost(&trace) >= 1_500_000);
}

#[test]
fn a_process_that_runs_already_is_recorded_from_outside() {
    let folder = Folder::new("attach");
    let python = Python::start(&folder, BUSY);
    let trace = folder.path("trace");
    let settings = Settings { output: Some(trace.clone()), ..Settings::default() };
    let outcome = attach(&settings, python.0.id(), Some(Duration::from_secs(2)), || ()).unwrap();
    assert_eq!(outcome.exit, Exit::Code(0));
    let names = rows(&trace, Table::Names);
    let id = |name: &str| {
        let found = names.iter().filter(|row| text(row, "text").as_deref() == Some(name));
        found.map(|row| integer(row, "id").unwrap()).collect::<Vec<_>>()
    };
    let leaves: Vec<_> = rows(&trace, Table::Samples).iter().map(|row| integer(row, "stack").unwrap()).collect();
    let (inner, stacks) = (id("inner"), rows(&trace, Table::Stacks));
    let busy = stacks.iter().filter(|row| inner.contains(&integer(row, "name").unwrap()));
    let busy: Vec<_> =
        busy.filter(|row| integer(row, "line") == Some(4)).map(|row| integer(row, "id").unwrap()).collect();
    assert!(leaves.iter().any(|leaf| busy.contains(leaf)), "{:?}", outcome.notes);
    let threads: Vec<_> = rows(&trace, Table::Threads).iter().map(|row| text(row, "name").unwrap()).collect();
    assert!(["MainThread", "sleeper"].iter().all(|name| threads.iter().any(|thread| thread == name)), "{threads:?}");
    let counters: Vec<_> = rows(&trace, Table::Counters).iter().map(|row| integer(row, "counter").unwrap()).collect();
    for counter in ["rss_bytes", "pss_bytes", "cpu_ns", "runqueue_wait_ns", "voluntary_switches"] {
        assert!(id(counter).iter().any(|id| counters.contains(id)), "no {counter}");
    }
}

#[test]
fn two_recorders_do_not_meet() {
    let folder = Folder::new("two");
    let python = Python::start(&folder, BUSY);
    let pid = python.0.id();
    let (first, second) = (settings(folder.path("first")), settings(folder.path("second")));
    std::thread::scope(|scope| {
        let attached = scope.spawn(|| attach(&first, pid, Some(Duration::from_secs(2)), || ()));
        until("the first one records", || folder.path("first/manifest.json").exists());
        let error = attach(&second, pid, Some(Duration::ZERO), || ()).unwrap_err();
        let me = std::process::id();
        assert!(matches!(error, Error::AlreadyRecorded { holder, .. } if holder == me), "{error}");
        attached.join().unwrap().unwrap();
    });
    assert!(!folder.path("second").exists());
}

#[test]
fn what_is_not_there_cannot_be_attached_to() {
    let folder = Folder::new("nobody");
    let error = attach(&settings(folder.path("trace")), u32::MAX >> 1, None, || panic!("begun")).unwrap_err();
    assert!(matches!(error, Error::NoSuchProcess { .. }) && error.exit_code() == 1);
}

#[test]
fn an_isolated_python_is_sampled_and_its_missing_scopes_are_explained() {
    let folder = Folder::new("isolated");
    let (package, script, trace) = (folder.path("inferscope"), folder.path("script.py"), folder.path("trace"));
    fs::create_dir_all(package.join("_inject")).unwrap();
    fs::write(&script, format!("import time\nend = time.time() + 3{BUSY}\nwhile time.time() < end: inner()\n"))
        .unwrap();
    let settings = Settings { output: Some(trace.clone()), ..Settings::default() };
    let mut recorder = spawn_example(&settings, &package, &["python3", "-I", script.to_str().unwrap()]);
    let notes = recorder.notes();
    assert!(notes.contains("started with -I"), "{notes}");
    assert!(!rows(&trace, Table::Samples).is_empty(), "{notes}");
}

/// A recorder of its own process, so that the package can be named in its environment.
fn spawn_example(settings: &Settings, package: &Path, command: &[&str]) -> Recorded {
    let (output, command) = (settings.output.clone().unwrap(), format!("exec {}", command.join(" ")));
    let result = output.with_extension("result");
    let variables: [(&str, &Path); 5] = [
        ("OUTPUT", &output),
        ("RESULT", &result),
        ("INFERSCOPE_PACKAGE", package),
        ("RATE", Path::new("100")),
        ("COMMAND", Path::new(&command)),
    ];
    Recorded { child: spawn("recorder", &variables), result }
}

struct Recorded {
    child: Child,
    result: PathBuf,
}

impl Recorded {
    fn notes(&mut self) -> String {
        self.child.wait().unwrap();
        fs::read_to_string(&self.result).unwrap()
    }
}

#[test]
fn the_package_is_told_when_recording_begins_and_where_the_report_is() {
    let folder = Folder::new("protocol");
    let (trace, ready) = (folder.path("trace"), folder.path("ready"));
    let (leave, written) = (folder.path("leave"), folder.path("written"));
    // In a process of its own, as the package starts it: it takes the lowest priority in the end, which would starve other tests.
    let me = std::process::id().to_string();
    let mut recorder =
        spawn("package's recorder", &[("OUTPUT", &trace), ("READY", &ready), ("PROGRAM", Path::new(&me))]);
    until("it is ready", || ready.exists());
    let told = fs::read_to_string(&ready).unwrap();
    let segments = told.split('\0').find_map(|line| line.strip_prefix("INFERSCOPE_SEGMENTS=")).unwrap();
    let variables = [("INFERSCOPE_SEGMENTS", Path::new(segments)), ("LEAVE", &leave), ("WRITTEN", &written)];
    let mut writer = spawn("writer", &[&variables[..], &[("END", Path::new("wait"))]].concat());
    until("the writer has written", || written.exists());
    fs::write(Path::new(segments).join("stop"), "").unwrap();
    until("it is done", || Path::new(segments).join("done").exists());
    let report = fs::read_to_string(Path::new(segments).join("done")).unwrap();
    fs::write(&leave, "").unwrap();
    writer.wait().unwrap();
    // As the package does when it has read what it was told.
    fs::remove_dir_all(segments).unwrap();
    assert!(recorder.wait().unwrap().success());
    assert_eq!(report, trace.join("report.md").to_string_lossy());
    assert_eq!(calls(&trace), 1000);
}
