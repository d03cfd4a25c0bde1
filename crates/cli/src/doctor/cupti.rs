//! Which libcupti the collector in a CUDA program would load, looked for in the same places: what is asked for, what the
//! Python on PATH brings (torch's own), toolkits, the loader's path.

use super::python;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use trace::settings::internal;

/// A libcupti, and where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub path: PathBuf,
    pub from: &'static str,
}

/// All that were found, the one that would be loaded first.
pub fn search() -> Vec<Found> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(asked) = variable(internal::CUPTI) {
        return vec![Found { path: asked.into(), from: internal::CUPTI }];
    }
    let mut toolkits: Vec<PathBuf> =
        ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).map(Into::into).collect();
    toolkits.extend(installed(Path::new("/usr/local")));
    let paths = variable("LD_LIBRARY_PATH").unwrap_or_default();
    look(&python::site_packages(), &toolkits, &std::env::split_paths(&paths).collect::<Vec<_>>())
}

/// `cuda`, then `cuda-13.0` before `cuda-12.8`.
fn installed(folder: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<(Vec<u32>, PathBuf)> = entries(folder)
        .into_iter()
        .filter_map(|path| {
            let version = path.file_name()?.to_str()?.strip_prefix("cuda-")?;
            Some((version.split('.').map(|part| part.parse().unwrap_or(0)).collect(), path))
        })
        .collect();
    versions.sort();
    [folder.join("cuda")].into_iter().chain(versions.into_iter().rev().map(|(_, path)| path)).collect()
}

fn look(packages: &[PathBuf], toolkits: &[PathBuf], loader: &[PathBuf]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut add = |folder: &Path, from: &'static str| {
        let mut here: Vec<PathBuf> =
            entries(folder).into_iter().filter(|path| path.file_name().is_some_and(is_cupti)).collect();
        here.sort();
        for path in here {
            // Links and folders that lead to the same file count once.
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            if !found.iter().any(|known| known.path.canonicalize().is_ok_and(|known| known == real)) {
                found.push(Found { path, from });
            }
        }
    };
    for package in packages {
        // nvidia/cuda_cupti/lib until CUDA 12, nvidia/cu13/lib since.
        let mut folders: Vec<PathBuf> =
            entries(&package.join("nvidia")).into_iter().map(|path| path.join("lib")).collect();
        folders.sort();
        folders.iter().for_each(|folder| add(folder, "the Python on PATH"));
        add(&package.join("torch/lib"), "the torch of the Python on PATH");
    }
    for toolkit in toolkits {
        ["extras/CUPTI/lib64", "lib64"].iter().for_each(|folder| add(&toolkit.join(folder), "a CUDA toolkit"));
    }
    loader.iter().for_each(|folder| add(folder, "LD_LIBRARY_PATH"));
    found
}

/// `libcupti.so.13`, and `libcupti-a1b2c3.so.11.8` as old wheels of torch name theirs.
fn is_cupti(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let rest = name.strip_prefix("libcupti");
    rest.is_some_and(|rest| (rest.starts_with('-') || rest.starts_with(".so")) && rest.contains(".so"))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_brings_comes_first_and_links_count_once() {
        let root = std::env::temp_dir().join(format!("inferscope-cupti-{}", std::process::id()));
        let file = |path: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let wheel = file("site/nvidia/cu13/lib/libcupti.so.13");
        file("site/nvidia/cu13/lib/libcublas.so.13");
        let toolkit = file("local/cuda-12.8/extras/CUPTI/lib64/libcupti.so.2025.1.1");
        std::os::unix::fs::symlink(&toolkit, toolkit.with_file_name("libcupti.so.12")).unwrap();
        file("local/cuda-9.0/lib64/libcudart.so");
        std::os::unix::fs::symlink(root.join("local/cuda-12.8"), root.join("local/cuda")).unwrap();
        let toolkits = installed(&root.join("local"));
        let names: Vec<_> = toolkits.iter().map(|path| path.file_name().unwrap().to_string_lossy()).collect();
        assert_eq!(names, ["cuda", "cuda-12.8", "cuda-9.0"]);
        let found = look(&[root.join("site")], &toolkits, &[]);
        let places: Vec<_> = found.iter().map(|found| (found.path.canonicalize().unwrap(), found.from)).collect();
        assert_eq!(places, [(wheel, "the Python on PATH"), (toolkit, "a CUDA toolkit")]);
        assert!(is_cupti(OsStr::new("libcupti-3e7d1c.so.11.8")) && !is_cupti(OsStr::new("libcupti_static.a")));
        std::fs::remove_dir_all(root).unwrap();
    }
}
