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
                return Err(Error::NoSuchFile { file: first.to_string_lossy().into_owned() });
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
    let is_path = program.to_string_lossy().contains('/');
    let missing = || match is_path {
        true => Error::NoSuchFile { file: shown() },
        false if Path::new(program).is_file() => Error::NotOnPath { program: shown() },
        false => Error::CommandNotFound { program: shown() },
    };
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
    if is_path {
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
    let texts: Vec<_> = words[1..].iter().map(|word| word.to_string_lossy()).collect();
    match script(texts.iter().map(AsRef::as_ref)) {
        Script::File(script) => (format!("{program} {script}"), stem(OsStr::new(script))),
        Script::Module(module) => (format!("{program} -m {module}"), module.to_owned()),
        Script::Code(Some(module)) => (format!("{program} -c {module}"), program),
        Script::Code(None) => (format!("{program} -c"), program),
        Script::None => (program.clone(), program),
    }
}

/// What a Python interpreter was told to run.
enum Script<'a> {
    File(&'a str),
    Module(&'a str),
    /// Code, which may hold secrets; with its module where it is multiprocessing's own.
    Code(Option<&'static str>),
    None,
}

/// How multiprocessing starts its own processes. `python/inferscope/_program.py` names them alike.
const OWN: [&str; 3] = ["multiprocessing.spawn", "multiprocessing.forkserver", "multiprocessing.resource_tracker"];

/// Reads the interpreter's own options, which may stand together: `-um app`, `-Xdev`, `-W ignore`.
fn script<'a>(mut words: impl Iterator<Item = &'a str>) -> Script<'a> {
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else {
            return if word == "-" { Script::None } else { Script::File(word) };
        };
        if option.starts_with('-') {
            let _ = (option == "-check-hash-based-pycs").then(|| words.next());
            continue;
        }
        for (place, letter) in option.char_indices() {
            let rest = &option[place + letter.len_utf8()..];
            let value = |words: &mut dyn Iterator<Item = &'a str>| match rest {
                "" => words.next().unwrap_or_default(),
                rest => rest,
            };
            match letter {
                'c' => {
                    let code = value(&mut words);
                    let own = |module: &&str| code.starts_with(&format!("from {module} import "));
                    return Script::Code(OWN.into_iter().find(own));
                }
                'm' => return Script::Module(value(&mut words)),
                'W' | 'X' => {
                    value(&mut words);
                    break;
                }
                _ => {}
            }
        }
    }
    Script::None
}

/// The same for a process that runs already. Its arguments are looked at in memory only.
pub(crate) fn describe_process(pid: u32) -> (String, String) {
    let words: Vec<OsString> = words_of(pid).into_iter().filter(|word| !word.is_empty()).collect();
    if words.is_empty() { (crate::proc::program(pid), crate::proc::program(pid)) } else { describe(&words) }
}

/// The arguments of a process that runs already, for a look in memory only.
pub(crate) fn arguments_of(pid: u32) -> Vec<OsString> {
    words_of(pid).into_iter().skip(1).collect()
}

fn words_of(pid: u32) -> Vec<OsString> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    bytes.split(|byte| *byte == 0).map(|word| OsStr::from_bytes(word).to_owned()).collect()
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
            // Options may stand together.
            (&["python3.12", "-uc", "secret"], ("python3.12 -c", "python3.12")),
            (&["python", "-Wignore", "-um", "app.main", "secret"], ("python -m app.main", "app.main")),
            (&["python", "-W", "ignore", "-Xdev", "-mapp"], ("python -m app", "app")),
            (&["python", "-csecret"], ("python -c", "python")),
            (
                &["python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(secret)"],
                ("python -c multiprocessing.spawn", "python"),
            ),
            (&["python", "-", "secret"], ("python", "python")),
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
        let said = |word: &str| Command::resolve(&[word.into()]).unwrap_err().to_string();
        assert_eq!(said("nothere.py"), "no such file: nothere.py");
        assert_eq!(said("./nothere"), "no such file: ./nothere");
        assert!(said("no-such-command-anywhere").starts_with("no-such-command-anywhere: command not found on PATH"));
    }
}
