//! How the CUDA library of the package gets into a program: the CUDA driver loads what `CUDA_INJECTION64_PATH` names, NVTX
//! what `NVTX_INJECTION64_PATH` names. Both belong to whoever set them first.

use crate::settings::{GpuDetail, Settings};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use trace::codes::{Note, NoteCode};

/// The variable, and what is not recorded when somebody else has it.
const VARIABLES: [(&str, NoteCode); 2] =
    [("CUDA_INJECTION64_PATH", NoteCode::GpuInjectionTaken), ("NVTX_INJECTION64_PATH", NoteCode::NvtxInjectionTaken)];

#[derive(Default)]
pub(crate) struct Injection {
    pub variables: Vec<(&'static str, OsString)>,
    /// What is not recorded, and why.
    pub notes: Vec<Note>,
}

impl Injection {
    /// `variable` reads the environment that the command will inherit.
    pub fn plan(
        settings: &Settings,
        package: Option<&Path>,
        variable: impl Fn(&'static str) -> Option<OsString>,
    ) -> Injection {
        let mut plan = Injection::default();
        if settings.gpu_detail == GpuDetail::Off {
            return plan;
        }
        let Some(library) = package.and_then(library) else {
            if package.is_some() && has_nvidia_driver() {
                plan.notes.push(Note::new(NoteCode::NoCudaLibrary));
            }
            return plan;
        };
        for (name, code) in VARIABLES {
            match variable(name).filter(|value| !value.is_empty() && !is_ours(value)) {
                Some(taken) => plan.notes.push(taken_by(code, &taken)),
                None => plan.variables.push((name, library.clone().into())),
            }
        }
        plan
    }
}

fn taken_by(code: NoteCode, path: &OsStr) -> Note {
    let path = Path::new(path);
    let who = if path.to_string_lossy().to_lowercase().contains("nsight") { "Nsight" } else { "" };
    Note::new(code).with(path.display()).with(who)
}

/// The library of another `inferscope run` around us, whose recorder is gone.
fn is_ours(path: &OsStr) -> bool {
    let path = Path::new(path);
    let named = path.file_name().is_some_and(|name| is_library(&name.to_string_lossy()));
    named && path.parent().is_some_and(|folder| folder.join("_inject").is_dir())
}

fn is_library(name: &str) -> bool {
    name.starts_with("_cuda") && name.ends_with(".so")
}

/// The CUDA library in a package's folder.
pub(crate) fn library(package: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(package).ok()?.flatten();
    let mut found: Vec<PathBuf> =
        entries.filter(|entry| is_library(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect();
    found.sort();
    found.into_iter().next()
}

/// Whether the kernel has NVIDIA's driver (under WSL it is elsewhere, and NVML tells).
pub(crate) fn has_nvidia_driver() -> bool {
    ["/proc/driver/nvidia/version", "/dev/nvidiactl"].iter().any(|path| Path::new(path).exists())
}

/// Whether a program on this machine may use CUDA. What WSL has instead of the driver's files serves every GPU.
pub(crate) fn may_use_cuda() -> bool {
    has_nvidia_driver() || Path::new("/dev/dxg").exists()
}

/// Injection variables that are set to something that is not ours, with what they are set to: for `doctor`.
pub(crate) fn taken() -> Vec<(&'static str, PathBuf)> {
    let set = |name: &'static str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty() && !is_ours(value))?;
        Some((name, PathBuf::from(value)))
    };
    VARIABLES.iter().filter_map(|(name, _)| set(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn plan(package: &Path, detail: GpuDetail, set: &[(&str, &str)]) -> Injection {
        let settings = Settings { gpu_detail: detail, ..Settings::default() };
        Injection::plan(&settings, Some(package), |name| {
            set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn a_variable_that_somebody_has_set_is_left_to_them_and_said() {
        let root = std::env::temp_dir().join(format!("inferscope-inject-{}", std::process::id()));
        let package = root.join("inferscope");
        fs::create_dir_all(package.join("_inject")).unwrap();
        assert!(plan(&package, GpuDetail::Launch, &[]).variables.is_empty(), "there is no library");
        let library = package.join("_cuda.abi3.so");
        fs::write(&library, "").unwrap();
        fs::write(package.join("_native.abi3.so"), "").unwrap();
        assert!(plan(&package, GpuDetail::Off, &[]).variables.is_empty());
        let both = plan(&package, GpuDetail::Kernel, &[("CUDA_INJECTION64_PATH", "")]);
        assert_eq!(both.variables.iter().map(|(_, value)| value).collect::<Vec<_>>(), [&library, &library]);
        assert!(both.notes.is_empty());
        let nsight = "/opt/nvidia/nsight-systems/libToolsInjection64.so";
        let taken = plan(&package, GpuDetail::Launch, &[("CUDA_INJECTION64_PATH", nsight)]);
        assert_eq!(taken.variables.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["NVTX_INJECTION64_PATH"]);
        assert!(taken.notes.len() == 1 && taken.notes[0].said().contains("(Nsight)"), "{:?}", taken.notes);
        // Left behind by a recorder around us: ours to replace.
        let ours = library.to_str().unwrap();
        let again = plan(&package, GpuDetail::Launch, &[("CUDA_INJECTION64_PATH", ours)]);
        assert_eq!((again.variables.len(), again.notes.len()), (2, 0));
        fs::remove_dir_all(root).unwrap();
    }
}
