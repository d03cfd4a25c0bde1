//! The Pythons on PATH: which version each is, and what works with it.

use super::{Line, Mark};
use std::collections::HashSet;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trace::settings::internal;

/// Said by each Python: implementation, version, whether it has no GIL, whether it finds our package, and where it really
/// is (a virtual environment counts for itself).
const ASK: &str = "import os, sys, sysconfig, importlib.util as u; print(sys.implementation.name, \
     '%d.%d.%d' % sys.version_info[:3], int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), \
     int(u.find_spec('inferscope') is not None), \
     sys.executable if sys.prefix != sys.base_prefix else os.path.realpath(sys.executable), sep='|')";

const ASK_PACKAGES: &str = "import site, sysconfig; print(*dict.fromkeys([sysconfig.get_path('purelib'), \
     sysconfig.get_path('platlib'), *site.getsitepackages(), site.getusersitepackages()]), sep='\\n')";

/// A Python that has not answered by then hangs (a stuck network home, a broken wrapper).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

pub fn pythons() -> Vec<Line> {
    let mut seen = HashSet::new();
    let (mut lines, mut silent) = (Vec::new(), Vec::new());
    for path in candidates() {
        let Ok(answer) = ask(&path, ASK) else {
            silent.push(path);
            continue;
        };
        let parts: Vec<&str> = answer.trim().split('|').collect();
        let [name, version, free_threaded, package, executable] = parts[..] else { continue };
        if seen.insert(executable.to_owned()) {
            lines.push(judge(&path.display().to_string(), name, version, free_threaded == "1", package == "1"));
        }
    }
    if lines.is_empty() {
        lines.push(Line::new(Mark::No, "python", "none on PATH: give `inferscope run` the path of a program"));
    }
    if !silent.is_empty() {
        // Wrappers of version managers, mostly, for versions that are not chosen.
        let names = silent.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy());
        lines.push(Line::new(Mark::Note, "fail to start", names.collect::<Vec<_>>().join(", ")));
    }
    lines
}

fn judge(executable: &str, name: &str, version: &str, free_threaded: bool, package: bool) -> Line {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let release = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let found = if package { "" } else { " (only under `inferscope run`: the package is not installed here)" };
    let (mark, text) = match release {
        _ if name != "cpython" => (Mark::No, format!("{name} {version}: not supported, only CPython is")),
        _ if free_threaded => {
            (Mark::No, format!("{version} free-threaded: no scopes and calls (they need the GIL); stacks may work"))
        }
        (3, 12..) => (Mark::Yes, format!("{version}: stacks, scopes, calls by sys.monitoring{found}")),
        (3, 10 | 11) => (Mark::Yes, format!("{version}: stacks, scopes, calls by the profile hook{found}")),
        _ => (Mark::No, format!("{version}: stacks only; scopes and calls need 3.10 or later")),
    };
    Line::new(mark, executable, text)
}

/// Where the Python that `inferscope run` would take has its packages. Empty where there is none, or it does not answer.
pub fn site_packages() -> Vec<PathBuf> {
    let found = candidates();
    let named = |name: &str| found.iter().find(|path| path.file_name().is_some_and(|file| file == name));
    let answer = named("python3").or_else(|| named("python")).and_then(|path| ask(path, ASK_PACKAGES).ok());
    answer.unwrap_or_default().lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect()
}

/// `python`, `python3` and `python3.N` in every folder of PATH.
fn candidates() -> Vec<PathBuf> {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let mut found = Vec::new();
    for folder in folders {
        let mut here: Vec<PathBuf> = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(is_python))
            .map(|entry| entry.path())
            .filter(|path| executable(path))
            .collect();
        here.sort();
        found.append(&mut here);
    }
    found
}

fn is_python(name: &str) -> bool {
    let Some(version) = name.strip_prefix("python") else { return false };
    version.is_empty() || version.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 't')
}

fn executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Runs one Python, for a bounded time.
fn ask(path: &Path, script: &str) -> Result<String, ()> {
    let child = Command::new(path)
        .args(["-c", script])
        // It must not record itself.
        .env_remove("INFERSCOPE_ENABLE")
        .env_remove(internal::SEGMENTS)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.map_err(drop)?;
    let end = Instant::now() + ANSWER_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(_)) => return Err(()),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                _ = child.kill();
                _ = child.wait();
                return Err(());
            }
        }
    }
    let mut text = String::new();
    _ = child.stdout.take().map(|mut stdout| stdout.read_to_string(&mut text));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pythons() {
        let is = |names: &[&str]| names.iter().map(|name| is_python(name)).collect::<Vec<_>>();
        assert!(is(&["python", "python3", "python3.12", "python3.13t"]).iter().all(|yes| *yes));
        assert!(!is(&["python3-config", "pythonw", "ipython", "python3.12-gdb"]).iter().any(|yes| *yes));
    }

    #[test]
    fn each_version_is_told_what_works() {
        let told = |version| judge("/bin/python", "cpython", version, false, true);
        assert!(told("3.12.1").text.contains("sys.monitoring") && told("3.12.1").mark == Mark::Yes);
        assert!(told("3.10.0").text.contains("profile hook"));
        assert!(told("3.9.1").mark == Mark::No && told("2.7.18").mark == Mark::No);
        assert!(judge("/bin/pypy", "pypy", "3.10.0", false, true).mark == Mark::No);
        assert!(judge("/bin/python", "cpython", "3.13.0", true, true).mark == Mark::No);
    }
}
