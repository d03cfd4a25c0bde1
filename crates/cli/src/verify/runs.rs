//! One run of the command: our own `inferscope run` as a child, with its output in files, and what its trace says about how
//! long it took and whether the fix was there.

use crate::config::Settings;
use crate::failure::Failure;
use crate::{interrupt, open};
use analysis::{StepSource, Steps};
use diagnosis::verify::{FixState, Run, RunTimes};
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use timeline::{FixMoment, Timeline};
use trace::settings::internal;

/// Of what a failed command said.
const LAST_LINES: usize = 5;

/// What to run, and where its recordings go.
pub struct Runner<'a> {
    pub settings: &'a Settings,
    pub argv: &'a [OsString],
    pub folder: &'a Path,
    /// The step or scope to time.
    pub step: Option<&'a str>,
}

/// How much is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// As `inferscope run` does: for the prediction.
    Full,
    /// The steps that the program marks, and nothing that costs anything.
    Steps,
    /// Also NVTX ranges, for steps that are marked by those; the GPU's kernels come with them.
    Nvtx,
    /// Also kernels and the calls that launch them, for steps that only their sequence shows.
    Launches,
}

impl Runner<'_> {
    /// Runs the command once and keeps the recording under this name. The error says how it failed.
    pub fn record(&self, name: &str, detail: Detail, variables: &[(OsString, OsString)]) -> Result<PathBuf, Failure> {
        let trace = self.folder.join(name);
        let status = self.start(name, &trace, detail, variables)?;
        if let Some(signal) = interrupt::came() {
            return Err(Failure::interrupted(signal));
        }
        if status.success() && trace.is_dir() {
            return Ok(trace);
        }
        let said = fs::read(self.file(name, "err")).unwrap_or_default();
        let with = if variables.is_empty() { "the command" } else { "with the fix, the command" };
        Err(Failure::error(format_args!("{with} {}{}", ended(status), last_lines(&String::from_utf8_lossy(&said)))))
    }

    /// Runs the command and measures it.
    pub fn measure(&self, name: &str, detail: Detail, variables: &[(OsString, OsString)]) -> Result<Run, Failure> {
        let trace = self.record(name, detail, variables)?;
        let timeline = open::read(self.settings, &trace)?;
        let output = digest(&self.file(name, "out")).unwrap_or_default();
        Ok(Run { times: times(&timeline, self.step)?, fix: state(&timeline), output })
    }

    fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    fn start(
        &self,
        name: &str,
        trace: &Path,
        detail: Detail,
        variables: &[(OsString, OsString)],
    ) -> Result<ExitStatus, Failure> {
        let failed = |error: io::Error| Failure::error(format_args!("the command cannot be started: {error}"));
        let mut run = Command::new(std::env::current_exe().map_err(failed)?);
        run.args(["run", "--quiet", "--output"]).arg(trace);
        if detail != Detail::Full {
            let gpu = match detail {
                Detail::Launches => "launch",
                Detail::Nvtx => "kernel",
                Detail::Steps | Detail::Full => "off",
            };
            run.args(["--no-stacks", "--memory-hz", "0", "--device-hz", "0", "--gpu-detail", gpu]);
            // Windows would have some of the steps pay for being recorded and others not, with the fix more or fewer of them.
            run.args(["--overhead-budget", "none"]);
            // What a file or the environment may ask for, and no flag takes back.
            run.envs([("INFERSCOPE_CALLS", "false"), ("INFERSCOPE_LAYERS", "false")]);
            // Has the package say when the program begins, in both sorts of runs.
            run.env(internal::FIX, "none");
        }
        run.envs(variables.iter().cloned()).arg("--").args(self.argv);
        // They are no runs that the user asked for: the newest trace stays the newest.
        run.env(internal::UNLISTED, "1");
        // A recorder around us would take these runs for its own.
        run.env_remove(internal::RECORDER_PID).env_remove(internal::SEGMENTS);
        let file = |ending| File::create(self.file(name, ending)).map_err(failed);
        run.stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?);
        interrupt::wait(&mut run).map_err(failed)
    }
}

fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => "left no recording".into(),
        (Some(code), _) => format!("fails with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "failed".into(),
    }
}

/// The end of what was said, for the user to see why; our own words as they would have been.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if last.is_empty() {
        return " and says nothing".into();
    }
    format!(":\n{}", last.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))
}

fn digest(path: &Path) -> io::Result<u64> {
    let (mut file, mut hasher, mut buffer) = (File::open(path)?, DefaultHasher::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => buffer[..count].iter().for_each(|byte| byte.hash(&mut hasher)),
        }
    }
}

fn times(timeline: &Timeline, step: Option<&str>) -> Result<RunTimes, Failure> {
    let steps = Steps::find(timeline, step);
    if let Some(missing) = &steps.not_found {
        return Err(crate::step_name::not_found(timeline, missing, "the recorded run"));
    }
    let marked = steps.source != StepSource::Whole && steps.count() > 0;
    // Loading an interpreter and our own collectors is no part of the program. Without Python nothing says where it begins.
    let of = |wanted: FixMoment| moments(timeline).filter(move |(.., said, _)| *said == wanted).map(|(at, ..)| at);
    let began = of(FixMoment::Begin).min().unwrap_or(timeline.start);
    let noticed = timeline.processes.iter().filter_map(|process| process.ended_ns).max().unwrap_or(timeline.end);
    let ended = of(FixMoment::End).max().unwrap_or(noticed);
    Ok(RunTimes {
        step: if marked { steps.name.clone() } else { String::new() },
        steps: if marked { steps.count() } else { 0 },
        step_mean_ns: if marked { steps.total() as f64 / steps.count() as f64 } else { 0.0 },
        step_p50_ns: if marked { steps.p50() as f64 } else { 0.0 },
        process_ns: ended.saturating_sub(began) as f64,
    })
}

/// What the package says of the fix: when, in which process, what, and in which words.
fn moments(timeline: &Timeline) -> impl Iterator<Item = (u64, u32, FixMoment, &str)> {
    timeline.tracks.iter().flat_map(move |track| {
        track.slices.clone().filter_map(move |index| {
            let (moment, slice) = (timeline.slices.fix(index)?, timeline.slices.get(index));
            Some((slice.start, track.process.0, moment, timeline.names.text(slice.name)))
        })
    })
}

/// The last word of every process; one that has it is enough.
fn state(timeline: &Timeline) -> FixState {
    let mut all: Vec<_> = moments(timeline).collect();
    all.sort_by_key(|(at, process, ..)| (*process, *at));
    let mut last: Vec<(u32, FixState)> = Vec::new();
    for (_, process, moment, said) in all {
        let state = match moment {
            FixMoment::Begin | FixMoment::End => continue,
            FixMoment::Applied => FixState::Applied(said.to_owned()),
            FixMoment::Waiting | FixMoment::Failed => FixState::NotApplied(said.to_owned()),
        };
        match last.last_mut() {
            Some((known, last)) if *known == process => *last = state,
            _ => last.push((process, state)),
        }
    }
    let applied = last.iter().find(|(_, state)| matches!(state, FixState::Applied(_)));
    applied.or(last.first()).map_or(FixState::Unknown, |(_, state)| state.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_fix_is_known_by_its_kind() {
        let told = Timeline::from_text(
            "track main\nfix begin 1\nfix waiting 2 nothing yet\nfix applied 3 it is on\nfix end 9",
        )
        .unwrap();
        assert_eq!(state(&told), FixState::Applied("it is on".into()));
        assert_eq!(times(&told, None).unwrap().process_ns, 8.0);
        let failed = Timeline::from_text("track main\nfix applied 3 it was on\nfix failed 4 no more").unwrap();
        assert_eq!(state(&failed), FixState::NotApplied("no more".into()));
    }

    #[test]
    fn a_mark_of_the_program_says_nothing_of_a_fix() {
        let plain = Timeline::from_text("track main\nfix begin 1\nfix waiting 2 nothing yet\nfix end 9").unwrap();
        let marked = Timeline::from_text(
            "track main\nfix begin 1\nfix waiting 2 nothing yet\nmark inferscope.fix 3\nmark applied 4\nfix end 9\nmark end 9",
        )
        .unwrap();
        assert_eq!(state(&marked), state(&plain));
        assert_eq!(times(&marked, None).unwrap().process_ns, times(&plain, None).unwrap().process_ns);
        assert_eq!(state(&Timeline::from_text("track main\nmark inferscope.fix 3").unwrap()), FixState::Unknown);
    }
}
