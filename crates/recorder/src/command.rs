//! What the user asked to run: found on PATH before anything is recorded, and described without its arguments, which
//! may hold secrets.

use crate::outcome::Error;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    pub program: PathBuf,
    /// The program as the user wrote it; programs look at it.
    pub called: OsString,
    pub arguments: Vec<OsString>,
    /// Program and script, for the manifest.
    pub described: String,
    /// One word for the trace's name.
    pub short: String,
}

impl Command {
    /// Finds the program. A script that ends in `.py` is run by the Python on PATH.
    pub fn resolve(words: &[OsString]) -> Result<Command, Error> {
        let first = words.first().ok_or_else(|| Error::CommandNotFound { program: "(nothing)".into() })?;
        let mut words = words.to_vec();
        let is_script = Path::new(first).extension().is_some_and(|extension| extension == "py");
        if is_script {
            if !Path::new(first).exists() {
                return Err(Error::CommandNotFound { program: first.to_string_lossy().into_owned() });
            }
            let python = ["python3", "python"].iter().find(|name| find(OsStr::new(name)).is_ok());
            if first.as_bytes().starts_with(b"-") {
                // Python would take it for an option.
                words[0] = Path::new(".").join(first).into_os_string();
            }
            words
                .insert(0, OsString::from(python.ok_or_else(|| Error::CommandNotFound { program: "python3".into() })?));
        }
        let (described, short) = describe(&words);
        let (program, arguments) = (find(&words[0])?, words.split_off(1));
        Ok(Command { program, called: words.remove(0), arguments, described, short })
    }
}

/// The file that would be executed, as `execvp` finds it.
fn find(program: &OsStr) -> Result<PathBuf, Error> {
    let shown = || program.to_string_lossy().into_owned();
    let missing = || Error::CommandNotFound { program: shown() };
    let forbidden = |why: &str| Error::NotExecutable { program: shown(), why: why.into() };
    if program.is_empty() {
        return Err(missing());
    }
    let check = |path: &Path| {
        let metadata = path.metadata().map_err(|_| missing())?;
        match (metadata.is_dir(), metadata.permissions().mode() & 0o111) {
            (true, _) => Err(forbidden("it is a folder")),
            (_, 0) => Err(forbidden("it is not marked executable (chmod +x)")),
            _ => Ok(path.to_owned()),
        }
    };
    if program.to_string_lossy().contains('/') {
        return check(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut found = Err(missing());
    for folder in std::env::split_paths(&path) {
        match check(&folder.join(program)) {
            Ok(path) => return Ok(path),
            // Of several reasons, "not executable" says more than "not found".
            Err(error @ Error::NotExecutable { .. }) => found = Err(error),
            Err(_) => {}
        }
    }
    found
}

/// The description and the one word. Of the arguments only a Python script or module is named.
fn describe(words: &[OsString]) -> (String, String) {
    let base = |word: &OsStr| Path::new(word).file_name().unwrap_or(word).to_string_lossy().into_owned();
    let stem = |word: &OsStr| Path::new(word).file_stem().unwrap_or(word).to_string_lossy().into_owned();
    let program = base(&words[0]);
    if !program.starts_with("python") {
        return (program.clone(), program);
    }
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        match word.to_string_lossy().as_ref() {
            "-m" => {
                let module = rest.next().map(|module| module.to_string_lossy().into_owned()).unwrap_or_default();
                return (format!("{program} -m {module}"), module);
            }
            "-c" => return (format!("{program} -c"), program),
            "-" => break,
            "-W" | "-X" | "--check-hash-based-pycs" => _ = rest.next(),
            option if option.starts_with('-') => {}
            script => return (format!("{program} {script}"), stem(OsStr::new(script))),
        }
    }
    (program.clone(), program)
}

/// The same for a process that runs already. Its arguments are looked at in memory only.
pub(crate) fn describe_process(pid: u32) -> (String, String) {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<OsString> = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
    if words.is_empty() { (crate::proc::program(pid), crate::proc::program(pid)) } else { describe(&words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(words: &[&str]) -> (String, String) {
        describe(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_never_described() {
        let pairs = [
            (
                &["/usr/bin/python3", "-X", "dev", "-u", "a/serve.py", "--token", "x"][..],
                ("python3 a/serve.py", "serve"),
            ),
            (&["python", "-m", "http.server", "secret"], ("python -m http.server", "http.server")),
            (&["python3.12", "-c", "secret"], ("python3.12 -c", "python3.12")),
            (&["./server", "--password=x"], ("server", "server")),
        ];
        for (words, (long, short)) in pairs {
            assert_eq!(described(words), (long.into(), short.into()));
        }
    }

    #[test]
    fn what_cannot_be_started_is_said_as_a_shell_says_it() {
        let code = |word: &str| Command::resolve(&[word.into()]).map_err(|error| error.exit_code());
        assert_eq!(code("no-such-command-anywhere"), Err(127));
        assert_eq!(code("/no/such.py"), Err(127));
        assert_eq!(code("/tmp"), Err(126));
        assert_eq!(code("/etc/passwd"), Err(126));
        assert_eq!(code(""), Err(127));
        assert!(code("sh").unwrap().program.is_absolute());
    }
}
