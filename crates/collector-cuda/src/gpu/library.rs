//! Which libcupti belongs to this process: the one that matches its CUDA runtime. Looked for among what is mapped already
//! (PyTorch brings its own), then beside the runtime, then where toolkits put it.

use super::api::{Cupti, Driver, SUCCESS};
use super::dynamic::{Library, major, mapped_files};
use std::path::{Path, PathBuf};
use trace::codes::{Reason, ReasonCode};
use trace::settings::internal;

pub struct Found {
    pub cupti: Cupti,
    pub path: PathBuf,
    pub number: u32,
    /// 13000 is 13.0.
    pub driver: i32,
    /// What a reader of the report has to know.
    pub warning: Option<Reason>,
}

/// The driver's functions, if its library is in this process already. We never start CUDA for a program that has not: its forked
/// children could no longer use it.
pub fn mapped_driver() -> Option<Driver> {
    Library::mapped(Path::new("libcuda.so.1")).map(|driver| Driver::load(&driver))
}

/// Loads libcupti, for a program that has started CUDA or is just doing so. Without a driver libcupti is not even touched: some
/// versions crash then.
pub fn find() -> Result<Found, String> {
    let driver = Library::open(Path::new("libcuda.so.1")).map_err(|why| format!("no NVIDIA driver: {why}"))?;
    let table = Driver::load(&driver);
    let mut driver = 0;
    if let Some(version) = table.version {
        // SAFETY: it only stores a number.
        unsafe { version(&mut driver) };
    }
    let runtime = mapped_files("libcudart").iter().find_map(|path| major(path));
    let (library, path) = choose(runtime, driver)?;
    let cupti = Cupti::load(&library);
    let number = cupti.number();
    let warning = mismatch(&path, number, runtime, driver);
    Ok(Found { cupti, path, number, driver, warning })
}

fn choose(runtime: Option<u32>, driver: i32) -> Result<(Library, PathBuf), String> {
    if let Some(asked) = std::env::var_os(internal::CUPTI).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(asked);
        return match Library::open(&path) {
            Ok(library) => Ok((library, path)),
            Err(why) => Err(format!("{} cannot be loaded: {why}", internal::CUPTI)),
        };
    }
    let mapped = mapped_files("libcupti.so");
    let fits = |path: &&PathBuf| runtime.is_none() || file_major(path) == runtime;
    // Two libcupti in one process disturb each other, so one that is there is taken even if it does not fit.
    if let Some(path) = mapped.iter().find(fits).or(mapped.first())
        && let Some(library) = Library::mapped(path)
    {
        return Ok((library, path.clone()));
    }
    let majors: Vec<u32> = match runtime {
        Some(runtime) => vec![runtime],
        // A runtime that is linked in: the driver's version is the newest that it can be.
        None => (11..=(driver / 1000) as u32).rev().collect(),
    };
    let mut last = None;
    for path in candidates(&majors) {
        match Library::open(&path) {
            Ok(library) => return Ok((library, whole(path))),
            Err(why) if path.is_absolute() => last = Some(why),
            Err(why) => last = last.or(Some(why)),
        }
    }
    let why = last.unwrap_or_else(|| "there is none".to_owned());
    Err(format!(
        "no libcupti for this program's CUDA ({why}); install nvidia-cuda-cupti, or say where it is with {}",
        internal::CUPTI
    ))
}

/// The path that the loader found a bare name at.
fn whole(path: PathBuf) -> PathBuf {
    if path.is_absolute() {
        return path;
    }
    let mapped = mapped_files("libcupti.so");
    mapped.iter().find(|file| file_major(file) == file_major(&path)).or(mapped.first()).cloned().unwrap_or(path)
}

/// Where libcupti may be, the likeliest first. Relative names are for the loader's own search.
fn candidates(majors: &[u32]) -> Vec<PathBuf> {
    let mut names: Vec<String> = Vec::new();
    for major in majors {
        names.push(if *major == 11 { "libcupti.so.11.8".into() } else { format!("libcupti.so.{major}") });
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for runtime in mapped_files("libcudart") {
        // Wheels: nvidia/cuda_runtime/lib beside nvidia/cuda_cupti/lib; since CUDA 13 all in nvidia/cu13/lib.
        if let Some(folder) = runtime.parent() {
            folders.push(folder.to_owned());
            folders.push(folder.join("../../cuda_cupti/lib"));
            folders.push(folder.join("../extras/CUPTI/lib64"));
        }
    }
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let versioned = majors.iter().map(|major| PathBuf::from(format!("/usr/local/cuda-{major}")));
    for toolkit in toolkits.chain(versioned).chain([PathBuf::from("/usr/local/cuda")]) {
        folders.push(toolkit.join("extras/CUPTI/lib64"));
        folders.push(toolkit.join("lib64"));
    }
    let mut all: Vec<PathBuf> = Vec::new();
    for name in &names {
        let there = folders.iter().map(|folder| folder.join(name)).filter(|path| path.exists());
        all.extend(there);
        all.push(name.into());
    }
    all
}

/// The CUDA version that a libcupti is of, by its file: toolkits name the file itself by year (libcupti.so.2025.3.0).
fn file_major(path: &Path) -> Option<u32> {
    let number = major(path)?;
    if number < 1000 {
        return Some(number);
    }
    match number {
        2021..=2022 => Some(11),
        2023..=2024 => Some(12),
        // 2025.1 and .2 are of 12.8 and 12.9, .3 of 13.0.
        2025 => Some(if path.to_string_lossy().contains(".2025.1") || path.to_string_lossy().contains(".2025.2") {
            12
        } else {
            13
        }),
        _ => Some(13),
    }
}

/// CUPTI 12.6 under CUDA 13 silently lost 39 % of the kernels' times: a mismatch is worth a sentence.
fn mismatch(path: &Path, number: u32, runtime: Option<u32>, driver: i32) -> Option<Reason> {
    let own = if number >= 100_000 { Some(number / 10_000) } else { file_major(path) }?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    match runtime {
        Some(runtime) if runtime != own => {
            Some(Reason::new(ReasonCode::CuptiOfAnotherCuda).with(file).with(own).with(runtime))
        }
        None if driver > 0 && own > (driver / 1000) as u32 => {
            Some(Reason::new(ReasonCode::CuptiNewerThanDriver).with(file).with(own).with(driver / 1000))
        }
        _ => None,
    }
}

impl Found {
    /// One line for the status page: what is used, and where it is.
    pub fn describe(&self) -> String {
        let (driver, file) = (self.driver, self.path.file_name().unwrap_or_default().to_string_lossy());
        let folder = self.path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let number = match self.number {
            0 => "CUPTI of a version that it does not tell".to_owned(),
            number => format!("CUPTI {number}"),
        };
        format!("{file}, {number}, driver for CUDA {}.{}, in {folder}", driver / 1000, driver % 1000 / 10)
    }

    /// Of before 12.6: those count up to 23. One that does not tell is judged by its file's name.
    pub fn is_old(&self) -> bool {
        match self.number {
            0 => file_major(&self.path).is_some_and(|major| major < 12),
            number => number < 24,
        }
    }

    /// The functions without which there is nothing to record.
    pub fn complete(&self) -> Result<(), String> {
        let cupti = &self.cupti;
        let needed = [
            ("cuptiSubscribe", cupti.subscribe.is_some()),
            ("cuptiEnableCallback", cupti.enable_callback.is_some()),
            ("cuptiActivityEnable", cupti.activity_enable.is_some()),
            ("cuptiActivityRegisterCallbacks", cupti.register_callbacks.is_some()),
            ("cuptiActivityGetNextRecord", cupti.next_record.is_some()),
            ("cuptiActivityFlushAll", cupti.flush_all.is_some()),
        ];
        match needed.iter().find(|(_, there)| !there) {
            Some((name, _)) => {
                Err(format!("{} has no {name}: it is not a libcupti that we can use", self.path.display()))
            }
            None => Ok(()),
        }
    }
}

/// Whether a call of CUPTI went well; the error says which one did not.
pub fn check(cupti: &Cupti, what: &str, code: u32) -> Result<(), String> {
    if code == SUCCESS { Ok(()) } else { Err(format!("{what}: {}", cupti.words(code))) }
}
