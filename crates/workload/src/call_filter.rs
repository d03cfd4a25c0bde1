//! Which functions are recorded, by module or by file. It needs no Python, so it is here, where a test can link it.

/// What one `--include` or `--exclude` says.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Pattern {
    /// A module or a package with all its modules.
    Module(String),
    /// A file, a folder, or a shell pattern over the whole path.
    Path(String),
}

impl Pattern {
    fn new(text: &str) -> Pattern {
        let path = text.contains(['/', '*', '?']) || text.ends_with(".py");
        if path { Pattern::Path(text.trim_end_matches('/').to_owned()) } else { Pattern::Module(text.to_owned()) }
    }

    fn matches(&self, module: &str, file: &str) -> bool {
        match self {
            Pattern::Module(name) => {
                let inside = |module: &str| {
                    module.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                // Of a script people know the file's name; Python calls the module something else.
                inside(module) || (module == "__main__" && stem(file) == name)
            }
            Pattern::Path(pattern) if pattern.contains(['*', '?']) => {
                glob(pattern, file) || (!pattern.starts_with('/') && glob(&format!("*/{pattern}"), file))
            }
            Pattern::Path(path) => {
                let end = |rest: &str| rest.is_empty() || rest.starts_with('/');
                file.strip_prefix(path.as_str()).is_some_and(end)
                    || (!path.starts_with('/')
                        && file
                            .match_indices(path.as_str())
                            .any(|(at, _)| file[..at].ends_with('/') && end(&file[at + path.len()..])))
            }
        }
    }
}

fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".py").unwrap_or(name)
}

/// Shell patterns: `*` any text, `?` one character.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on when the last star has to take one character more.
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star, from)) = retry else { return false };
                retry = Some((star, from + 1));
                p = star + 1;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[derive(Clone, Debug, Default)]
pub struct Filter {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    /// The folder of our own package, with a slash at its end.
    own: String,
}

impl Filter {
    pub fn new(include: &[String], exclude: &[String], own: &str) -> Filter {
        let patterns = |list: &[String]| list.iter().map(|text| Pattern::new(text)).collect();
        let own = format!("{}/", own.trim_end_matches('/'));
        Filter { include: patterns(include), exclude: patterns(exclude), own }
    }

    /// Whether the module's name makes a difference; finding it costs something.
    pub fn asks_for_module(&self) -> bool {
        !(self.include.is_empty() && self.exclude.is_empty())
    }

    /// Without an include everything is wanted, except the machinery of `import` and ourselves.
    pub fn wants(&self, module: &str, file: &str) -> bool {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(module, file));
        let hidden = file.starts_with("<frozen importlib") || (self.own.len() > 1 && file.starts_with(&self.own));
        !hidden && (self.include.is_empty() || matches(&self.include)) && !matches(&self.exclude)
    }
}
