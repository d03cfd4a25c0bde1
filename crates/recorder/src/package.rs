//! Finds the Python package that was installed together with this command: its `_inject` folder, put on PYTHONPATH,
//! brings the collectors into the workload.

use std::path::{Path, PathBuf};
use trace::settings::internal;

/// The `inferscope` package folder, if it is where installers put it.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(internal::PACKAGE).filter(|value| !value.is_empty()) {
        return is_package(Path::new(&named)).then(|| named.into());
    }
    let command = std::env::current_exe().ok()?;
    // A wheel's command may be a link into the environment's bin folder.
    let command = command.canonicalize().unwrap_or(command);
    beside(&command).or_else(user_site).map(|found| found.canonicalize().unwrap_or(found))
}

fn is_package(folder: &Path) -> bool {
    folder.join("_inject").is_dir()
}

fn beside(command: &Path) -> Option<PathBuf> {
    let bin = command.parent()?;
    let prefix = bin.parent()?;
    let installed = ["lib", "lib64", "local/lib"].iter().flat_map(|lib| site_packages(&prefix.join(lib)));
    // An unpacked wheel: inferscope-0.1.0.data/scripts/inferscope beside inferscope/.
    let unpacked = prefix.parent().map(Path::to_owned).into_iter();
    // `pip install --target`: bin/inferscope beside inferscope/.
    let target = std::iter::once(prefix.to_owned());
    // The repository: python/inferscope above target/release.
    let repository = command.ancestors().skip(1).map(|folder| folder.join("python"));
    installed
        .chain(unpacked)
        .chain(target)
        .chain(repository)
        .map(|folder| folder.join("inferscope"))
        .find(|folder| is_package(folder))
}

/// `python3*/site-packages` and `dist-packages` under a lib folder, newest version first.
fn site_packages(lib: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(lib).into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path())
        .collect();
    versions.sort_by_key(|path| std::cmp::Reverse(minor_version(path)));
    versions.iter().flat_map(|version| ["site-packages", "dist-packages"].map(|name| version.join(name))).collect()
}

fn minor_version(path: &Path) -> u32 {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix("python3.").and_then(|minor| minor.parse().ok()).unwrap_or(0)
}

fn user_site() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    site_packages(&home.join(".local/lib"))
        .into_iter()
        .map(|site| site.join("inferscope"))
        .find(|site| is_package(site))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn it_is_found_wherever_an_installer_puts_it() {
        let root = std::env::temp_dir().join(format!("inferscope-package-{}", std::process::id()));
        for (command, package) in [
            ("venv/bin/inferscope", "venv/lib/python3.12/site-packages/inferscope"),
            ("usr/bin/inferscope", "usr/local/lib/python3.11/dist-packages/inferscope"),
            ("wheel/inferscope-0.1.0.data/scripts/inferscope", "wheel/inferscope"),
            ("target/bin/inferscope", "target/inferscope"),
            ("repository/target/release/inferscope", "repository/python/inferscope"),
        ] {
            let (command, package) = (root.join(command), root.join(package));
            fs::create_dir_all(command.parent().unwrap()).unwrap();
            assert_eq!(beside(&command), None);
            fs::create_dir_all(package.join("_inject")).unwrap();
            assert_eq!(beside(&command), Some(package));
        }
        fs::remove_dir_all(root).unwrap();
    }
}
