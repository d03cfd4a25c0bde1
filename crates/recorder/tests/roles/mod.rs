//! What the tests start as separate processes (a recorder, a workload that writes records without any Python), and how
//! they look at the trace that comes out.

#![allow(dead_code)] // Each test file uses a part of this.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use recorder::Settings;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trace::device::Work;
use trace::event::{Event, Kind, TextRole, text_records};
use trace::segment::{Identity, OwnedRing};
use trace::tables::{Table, current_files, file_name, parse_file_name};
use trace::{NameId, Segment};

/// A new folder of this name, and its removal.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("inferscope-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits until something is so, and fails when it does not come about at all.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(180);
    while !so() {
        assert!(Instant::now() < end, "it never came about that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The same for what gives a value.
pub fn until_some<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    until(what, || {
        found = value();
        found.is_some()
    });
    found.unwrap()
}

/// The process that writes a trace just now, or wrote it last.
pub fn recorder_pid(trace: &Path) -> Option<u32> {
    recorder::manifest::Manifest::read(trace).ok().map(|manifest| manifest.recorder_pid)
}

/// Kills whoever records: first the supervisor, which would start the recorder again.
pub fn kill_all(supervisor: &mut Child, trace: &Path) {
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    kill(recorder_pid(trace).unwrap());
}

pub fn kill(pid: u32) {
    // SAFETY: a process of this test.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    until("it is gone", || !runs(pid));
}

/// One that has ended and was not waited for does not run.
pub fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// This test binary in another role.
pub fn in_role(name: &str) -> Vec<OsString> {
    let exe = std::env::current_exe().unwrap().into_os_string();
    let role = OsString::from(format!("ROLE={name}"));
    let words = ["role", "--exact", "--nocapture", "--test-threads=1"].map(OsString::from);
    [OsString::from("env"), role, exe].into_iter().chain(words).collect()
}

pub fn spawn(name: &str, variables: &[(&str, &Path)]) -> Child {
    let words = in_role(name);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(variables.iter().copied()).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// Called by the one test that all roles are started through.
pub fn play() {
    match std::env::var("ROLE").as_deref() {
        Ok("writer") => write(),
        Ok("gpu") => write_gpu(),
        Ok("recorder") => record(),
        Ok("package's recorder") => record_for_the_package(),
        Ok("doctor") => look_at_devices(),
        _ => {}
    }
}

/// Leaves in RESULT what there is to say of the devices here.
fn look_at_devices() {
    let report = format!("{:#?}\n{:#?}", recorder::devices(), recorder::source_costs(std::process::id()));
    fs::write(variable("RESULT").unwrap(), report).unwrap();
}

/// Records the writer, or the command in COMMAND, into OUTPUT, and leaves the outcome in RESULT.
fn record() {
    let settings = settings(variable("OUTPUT").unwrap());
    let outcome = match variable("COMMAND") {
        Some(command) => recorder::run(&settings, &["sh".into(), "-c".into(), command.into()]),
        None => recorder::run(&settings, &in_role(&std::env::var("WRITER").unwrap_or("writer".into()))),
    };
    if let Some(result) = variable("RESULT") {
        fs::write(result, format!("{outcome:?}")).unwrap();
    }
    // As the command line does it.
    let code = match outcome.unwrap().exit {
        recorder::Exit::Code(code) => code,
        recorder::Exit::Signal(signal) => 128 + signal,
    };
    std::process::exit(code);
}

/// Records the process PROGRAM into OUTPUT as the package's recorder does, which it tells in READY.
fn record_for_the_package() {
    let (ready, program) = (variable("READY").unwrap(), number("PROGRAM", 0) as u32);
    let done = |trace: &Path, _: bool| Some(trace.join("report.md"));
    recorder::record(&settings(variable("OUTPUT").unwrap()), &ready, program, done).unwrap();
}

/// The most memory that a process had; 0 when it has ended.
pub fn peak_kilobytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

pub fn settings(output: PathBuf) -> Settings {
    let rate_hz = number("RATE", 0) as u32;
    Settings { output: Some(output), rate_hz, memory_hz: 0.0, ..Settings::default() }
}

/// Writes COUNT calls, in the middle waits for the file GO if it is named (and creates HALF), and ends as END says.
fn write() {
    let (count, names) = (number("COUNT", 1000), number("NAMES", 10));
    let folder = variable("INFERSCOPE_SEGMENTS").unwrap();
    if variable("CUDA").is_some() {
        // Beside that of Python, and first: the clock is that of the segment made last.
        write_kernels(&folder, &Identity { program: "python3".into(), python: String::new(), ..myself() }, 100);
    }
    let mut writer = Writer::new(&folder, number("SIZE_MB", 100) as usize);
    writer.scope_begin(1, 0, "outer", "{\"model\":\"gpt2\"}");
    for call in 0..count {
        rest_at(call, count / 2);
        writer.call(call, names);
    }
    variable("WRITTEN").into_iter().for_each(|written| fs::write(written, "").unwrap());
    match std::env::var("END").as_deref() {
        // SAFETY: ends this process.
        Ok("kill") => unsafe { _ = libc::kill(libc::getpid(), libc::SIGKILL) },
        Ok("wait") => until("the writer may end", || variable("LEAVE").unwrap().exists()),
        _ => {}
    }
    writer.scope_end(1, "outer");
}

fn rest_at(now: u64, half: u64) {
    if now == half {
        variable("HALF").into_iter().for_each(|half| fs::write(half, "").unwrap());
        variable("GO").into_iter().for_each(|go| until("the writer may go on", || go.exists()));
    }
}

/// A program without Python whose CUDA library writes COUNT kernels and their launches; rests as `write` does.
fn write_gpu() {
    let (count, folder) = (number("COUNT", 1000), variable("INFERSCOPE_SEGMENTS").unwrap());
    write_kernels(&folder, &Identity { program: "cuda-server".into(), python: String::new(), ..myself() }, count);
    variable("WRITTEN").into_iter().for_each(|written| fs::write(written, "").unwrap());
    if std::env::var("END").is_ok_and(|end| end == "kill") {
        // SAFETY: ends this process.
        unsafe { _ = libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

fn write_kernels(folder: &Path, who: &Identity, count: u64) {
    let segment = Segment::create_with(folder, 64 << 20, who, trace::Source::Monotonic).unwrap();
    let mut names = trace::names::NameWriter::new(|bytes| segment.names(bytes)).unwrap();
    let (gemm, launch) = (names.intern("gemm"), names.intern("cudaLaunchKernel"));
    let [mut work, mut calls] = [1, 2].map(|thread| segment.claim(thread).unwrap());
    let say = |ring: &mut OwnedRing, kind: Kind, text: &str| {
        let mut records: Vec<_> = text_records(TextRole::Name, text).collect();
        let (kind, name, flags) = (kind as u16, NameId::INLINE, records.len() as u16);
        records.push(Event { time: 1, value: 0, thread: 1, name, kind, flags, extra: 0 }.to_words());
        ring.push_all(&records);
    };
    let device = trace::device_facts::DeviceFacts { name: "NVIDIA H200".into(), ..Default::default() };
    work.push_all(&device.records(1, 1));
    say(&mut work, Kind::Note, "libcupti 13 was loaded");
    segment.status(trace::status::Collector::Gpu).set(trace::status::State::On, "CUPTI 130001");
    for kernel in 0..count {
        if who.program == "cuda-server" {
            rest_at(kernel, count / 2);
        }
        let (start, correlation) = (trace::clock::monotonic().0, kernel as u32 + 1);
        let (shared_static, name) = (kernel as u32 % 2 * 512, gemm);
        let one = Work { start, dur: 900, name, correlation, grid: [8, 1, 1], shared_static, ..Work::default() };
        let (records, some) = one.records(Kind::Kernel);
        work.push_all(&records[..some]);
        let (kind, name) = (Kind::ApiCall as u16, launch);
        let call = Event { time: start, value: 100, thread: 77, name, kind, flags: 0, extra: correlation };
        calls.push(call.to_words());
    }
}

/// This process, as a segment of Python's would say it.
fn myself() -> Identity {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start_ticks = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    Identity {
        pid: std::process::id(),
        parent: 1,
        start_ticks,
        program: "writer".into(),
        python: "3.12.1".into(),
        ..Identity::default()
    }
}

/// A workload without Python.
pub struct Writer {
    ring: OwnedRing,
    names: trace::names::NameWriter<'static>,
    started: u64,
}

impl Writer {
    pub fn new(folder: &Path, size_mb: usize) -> Writer {
        let segment = Segment::create(folder, size_mb << 20, &myself()).unwrap();
        let names = trace::names::NameWriter::new(|bytes| segment.names(bytes)).unwrap();
        Writer { ring: segment.claim(std::process::id()).unwrap(), names, started: trace::clock::now() }
    }

    /// A call whose duration is its number, so that a reader can tell that each is there once.
    pub fn call(&mut self, number: u64, names: u64) {
        let name = format!("function{}\u{1f}/app.py\u{1f}{}", number % names, number % 100);
        let id = self.names.intern(&name);
        let texts: Vec<_> =
            if id == NameId::INLINE { text_records(TextRole::Name, &name).collect() } else { Vec::new() };
        self.push(texts, Kind::Call, id, trace::clock::now(), number, 0);
    }

    pub fn scope_begin(&mut self, id: u32, parent: u64, name: &str, args: &str) {
        let texts: Vec<_> = text_records(TextRole::Args, args).collect();
        self.started = trace::clock::now();
        let name = self.names.intern(name);
        self.push(texts, Kind::ScopeBegin, name, self.started, parent, id);
    }

    pub fn scope_end(&mut self, id: u32, name: &str) {
        let name = self.names.intern(name);
        self.push(Vec::new(), Kind::ScopeEnd, name, trace::clock::now(), self.started, id);
    }

    fn push(&mut self, mut texts: Vec<[u64; 4]>, kind: Kind, name: NameId, time: u64, value: u64, extra: u32) {
        let (thread, kind, flags) = (std::process::id(), kind as u16, texts.len() as u16);
        texts.push(Event { time, value, thread, name, kind, flags, extra }.to_words());
        self.ring.push_all(&texts);
    }
}

/// The rows of a table, as any Parquet reader sees them.
pub fn rows(trace: &Path, table: Table) -> Vec<Row> {
    let names = fs::read_dir(trace).unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let files = current_files(names.filter_map(|name| parse_file_name(&name)).collect());
    let files = files.into_iter().filter(|file| file.0 == table);
    let readers = files.map(|(table, first, last)| {
        SerializedFileReader::new(File::open(trace.join(file_name(table, first, last))).unwrap()).unwrap()
    });
    readers.flat_map(|reader| reader.get_row_iter(None).unwrap().map(Result::unwrap).collect::<Vec<_>>()).collect()
}

pub fn field(row: &Row, name: &str) -> Field {
    row.get_column_iter().find(|(column, _)| *column == name).unwrap().1.clone()
}

pub fn integer(row: &Row, name: &str) -> Option<i64> {
    match field(row, name) {
        Field::Int(value) => Some(value.into()),
        Field::Long(value) => Some(value),
        _ => None,
    }
}

pub fn text(row: &Row, name: &str) -> Option<String> {
    match field(row, name) {
        Field::Str(value) => Some(value),
        _ => None,
    }
}

/// How many calls are in a trace; fails if one is there twice.
pub fn calls(trace: &Path) -> u64 {
    let of_kind = |row: &Row| integer(row, "kind") == Some(trace::tables::SliceKind::Call as i64);
    let rows = rows(trace, Table::Slices);
    let starts: std::collections::HashSet<i64> =
        rows.iter().filter(|row| of_kind(row)).map(|row| integer(row, "start_ns").unwrap()).collect();
    let count = rows.iter().filter(|row| of_kind(row)).count();
    assert!(starts.len() * 10 >= count * 9, "calls at {} moments, but {count} rows", starts.len());
    count as u64
}

/// Records that the trace says are missing.
pub fn lost(trace: &Path) -> u64 {
    rows(trace, Table::Losses).iter().map(|row| integer(row, "count").unwrap() as u64).sum()
}

pub fn state(trace: &Path) -> recorder::manifest::Manifest {
    recorder::manifest::Manifest::read(trace).unwrap()
}

pub fn sentences(notes: &[trace::codes::Note]) -> Vec<String> {
    notes.iter().map(trace::codes::Note::said).collect()
}
