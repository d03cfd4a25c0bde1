//! `inferscope top`: the diagnosis of the last seconds while a program runs, in the terminal or as JSON. What it shows comes from the files of
//! the trace; a program or a process that nobody records yet is recorded by a child of ours, as `run` and `attach` do it.

use crate::args::{Reading, seconds};
use crate::config::Settings;
use crate::confine::Needs;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::interrupt;
use crate::{memory, newest, output, rule_file, terminal};
use clap::Args;
use diagnosis::RuleSettings;
use live::tui::{self, Look};
use live::{Model, Position, WINDOW, Watcher, Worker};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trace::tables::MANIFEST;

/// A model a second.
const EVERY: Duration = Duration::from_secs(1);
/// A recorder that has not begun by then never will.
const START_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope top                           the newest run of this folder
  inferscope top -- python serve.py        record a program and watch it
  inferscope top 4711                      record a running process and watch it
  inferscope top trace                     join a recording, or play a finished one
  inferscope top trace --once              the last 30 seconds of it, as text
  inferscope top trace --json | jq .answer  a line of JSON a second

Keys: 1 to 8 choose a pane, ? shows all keys, q quits. Quitting leaves a recording
that was joined alone; what `top` started itself ends as with Ctrl-C. The output
of a program that `top` starts goes to a file beside its trace.")]
pub struct Top {
    /// A trace folder, or the number of a running process [default: the newest run of this folder]
    #[arg(value_name = "TRACE|PID", conflicts_with = "command")]
    what: Option<PathBuf>,

    /// How much is looked at: the last so many seconds [default: 30]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    window: Option<Duration>,

    /// Print the window once as text (with --json: as JSON), and end
    #[arg(long)]
    once: bool,

    /// Print JSON, a line for every second, instead of showing anything
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pub reading: Reading,

    /// The command to record, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn run(settings: &Settings, top: &Top) -> Result<Ending, Failure> {
    let rules = rule_file::load(settings, None)?.ours;
    let shows = !top.once && !top.json;
    if shows && !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        let why = "stdin or stdout is no terminal, so nothing can be shown";
        return Err(Failure::usage(why).with_hint("add --once for text, or --json for a line of JSON a second"));
    }
    let mut recording = Recording::begin(settings, top)?;
    let trace = recording.trace.clone();
    if recording.recorder.is_none() {
        // Of somebody else, maybe: as for every command that only reads.
        let mut needs = Needs::default();
        needs.read(&trace);
        memory::limit(settings.max_memory);
        let confined = needs.confine();
        settings.debug(|| format!("confined by Landlock: {confined}"));
    }
    let result = watch(settings, top, &trace, rules);
    recording.end(settings);
    result
}

fn watch(settings: &Settings, top: &Top, trace: &Path, rules: RuleSettings) -> Result<Ending, Failure> {
    let lives = {
        let trace = trace.to_owned();
        move || recorder::is_recording(&trace)
    };
    let played = !lives();
    let mut watcher = Watcher::new(trace, top.window.unwrap_or(WINDOW), rules, Box::new(lives));
    if top.once {
        let model = watcher.look(Position::Newest)?;
        print(settings, top, &model)?;
        return Ok(Ending::FINE);
    }
    if top.json {
        return follow(&mut watcher);
    }
    // A finished recording plays from its start: its end is what `analyze` shows.
    let position = if played { Position::At(0) } else { Position::Newest };
    let worker = Worker::start(watcher, position, EVERY).map_err(Failure::error)?;
    let options = tui::Options { look: look(settings), plays: played };
    match tui::run(&worker, &options, || interrupt::came().is_some()) {
        Ok(_) => Ok(Ending::FINE),
        Err(error) => Err(Failure::error(format_args!("the terminal cannot be used: {error}"))),
    }
}

/// A line of JSON for every second, until the recording ends or nobody reads any more.
fn follow(watcher: &mut Watcher) -> Result<Ending, Failure> {
    loop {
        let began = Instant::now();
        let model = watcher.look(Position::Newest)?;
        let mut out = std::io::stdout().lock();
        match json(&model, &mut out).and_then(|()| out.flush()) {
            Ok(()) if model.state == live::model::State::Recording => {}
            // Nobody reads any more, which is how one stops it.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                return Err(Failure::writing("the result", &error));
            }
            _ => return Ok(Ending::FINE),
        }
        drop(out);
        std::thread::sleep(EVERY.saturating_sub(began.elapsed()));
    }
}

fn print(settings: &Settings, top: &Top, model: &Model) -> Result<(), Failure> {
    output::write_to(None, |out| match top.json {
        true => json(model, out),
        false => {
            let style = terminal::stdout_style(&settings.color);
            let text = tui::once(model, look(settings), u16::try_from(style.width).unwrap_or(u16::MAX));
            out.write_all(text.trim_end().as_bytes())?;
            out.write_all(b"\n")
        }
    })
}

fn json(model: &Model, out: &mut dyn Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, model)?;
    out.write_all(b"\n")
}

fn look(settings: &Settings) -> Look {
    let style = terminal::stdout_style(&settings.color);
    Look { color: style.colour, unicode: style.unicode }
}

/// The recording that is watched, and who makes it, where that is a child of ours.
struct Recording {
    trace: PathBuf,
    recorder: Option<Child>,
}

impl Recording {
    fn begin(settings: &Settings, top: &Top) -> Result<Recording, Failure> {
        if let Some(program) = top.command.first() {
            let name = Path::new(program).file_name().map_or("program".into(), |name| name.to_string_lossy());
            let mut words: Vec<OsString> = vec!["run".into(), "--quiet".into()];
            words.extend(["--output".into(), recorder::new_trace(&name).into(), "--".into()]);
            words.extend(top.command.iter().cloned());
            return Recording::made(words, 3, top);
        }
        let Some(what) = &top.what else {
            return Ok(Recording { trace: newest::find(settings)?, recorder: None });
        };
        let pid = what.to_str().and_then(|word| word.parse::<u32>().ok()).filter(|_| !what.exists());
        match pid {
            Some(pid) => {
                let trace = recorder::new_trace(&format!("pid{pid}"));
                let words =
                    ["attach".into(), "--quiet".into(), "--output".into(), trace.into(), pid.to_string().into()];
                Recording::made(words.into(), 3, top)
            }
            None => Ok(Recording { trace: what.clone(), recorder: None }),
        }
    }

    /// Starts a command of ours that records, and waits until it does. `place`: of the trace's path among the words.
    fn made(words: Vec<OsString>, place: usize, top: &Top) -> Result<Recording, Failure> {
        if top.once {
            let why = "--once shows a recording that is there: it cannot start one";
            return Err(Failure::usage(why).with_hint("name a trace, or leave --once out"));
        }
        let trace = PathBuf::from(&words[place]);
        let ours = std::env::current_exe().map_err(Failure::error)?;
        let log = log_of(&trace);
        let folder = trace.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|error| Failure::writing(folder.display(), &error))?;
        let file = std::fs::File::create(&log).map_err(|error| Failure::writing(log.display(), &error))?;
        let errors = file.try_clone().map_err(Failure::error)?;
        let mut recorder = Command::new(ours)
            .args(&words)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(Failure::error)?;
        let began = Instant::now();
        while !(trace.join(MANIFEST).is_file() && recorder::is_recording(&trace)) {
            let over = recorder.try_wait().ok().flatten().is_some();
            // One that was quick has left its trace.
            if over && trace.join(MANIFEST).is_file() {
                break;
            }
            if over || began.elapsed() > START_TIMEOUT {
                let _ = recorder.kill();
                let _ = recorder.wait();
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let _ = std::fs::remove_file(&log);
                let said = said.trim().trim_start_matches("inferscope: ");
                return Err(Failure::error(if said.is_empty() { "recording did not begin" } else { said }));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Recording { trace, recorder: Some(recorder) })
    }

    /// Ends what was started here, as Ctrl-C does, and says where everything is.
    fn end(&mut self, settings: &Settings) {
        let Some(recorder) = &mut self.recorder else { return };
        if !recorder.try_wait().is_ok_and(|ended| ended.is_some()) {
            // SAFETY: a plain system call; the child was not waited for yet, so the pid is still its own.
            unsafe { libc::kill(recorder.id() as i32, libc::SIGINT) };
            let _ = recorder.wait();
        }
        let (trace, log) = (self.trace.display(), log_of(&self.trace));
        settings.say(format_args!("recorded to {trace}; what the program printed is in {}", log.display()));
    }
}

/// Beside the trace: in it, a reader would ask what it is.
fn log_of(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".output.txt");
    name.into()
}
