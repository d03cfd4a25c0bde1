//! GPUs: whether there is a driver, which of them answer, which libcupti would be loaded, and who may use it. On a machine
//! without a GPU this is two lines.

use super::{Line, Mark, cupti};
use std::ffi::CStr;
use std::fs::read_to_string;

pub fn gpus() -> Vec<Line> {
    let report = recorder::devices();
    let kernel = read_to_string("/proc/driver/nvidia/version").ok();
    let mut lines = Vec::new();
    // A container may have the driver's library and nothing else of it.
    let nvidia = kernel.is_some() || report.nvml.is_ok() || loads(c"libcuda.so.1").is_ok();
    match (&kernel, &report.nvml) {
        (None, Err(why)) => lines.push(Line::new(Mark::Note, "NVIDIA", why.as_str())),
        (kernel, nvml) => {
            let version = kernel.as_deref().and_then(module_version);
            let text = version.map_or("of the host (no /proc/driver/nvidia in this container)".into(), |text| {
                format!("version {text}")
            });
            lines.push(Line::new(Mark::Yes, "NVIDIA driver", text));
            lines.push(Line::of(
                nvml.clone().map(|version| format!("clocks, power and memory; driver {version}")),
                "NVML",
            ));
        }
    }
    let amd = report.devices.iter().filter(|device| device.kind == "amd").count();
    lines.push(match amd {
        0 => Line::new(Mark::Note, "AMD", "no amdgpu device in /sys/class/drm"),
        count => Line::new(
            Mark::Yes,
            "amdgpu",
            format!("clocks, power and memory of {count}, from sysfs; their kernels are not recorded"),
        ),
    });
    report.devices.iter().for_each(|device| lines.push(device_line(device)));
    if nvidia {
        lines.extend(cuda());
    }
    for (variable, path) in recorder::taken_injections() {
        let text = format!("set to {}: unset it to record CUDA with inferscope", path.display());
        lines.push(Line::new(Mark::No, variable, text));
    }
    lines
}

fn device_line(device: &recorder::DeviceReport) -> Line {
    let what = format!("{} device {}", device.kind, device.index);
    let mut text = format!("{} at {}", device.name, device.pci_bus_id);
    if !device.missing.is_empty() {
        let missing: Vec<String> = device.missing.iter().map(|(counter, why)| format!("{counter} ({why})")).collect();
        text += &format!("; not reported: {}", missing.join(", "));
    }
    Line::new(Mark::Yes, what, text)
}

/// What recording kernels needs beside a driver.
fn cuda() -> Vec<Line> {
    let library = recorder::cuda_library().map(|path| path.display().to_string());
    let library = library.ok_or("this package was built without its CUDA library: kernels are not recorded".to_owned());
    let driver = match loads(c"libcuda.so.1") {
        Ok(()) => Ok("libcuda.so.1".to_owned()),
        Err(why) => Err(format!("{why} (a container needs NVIDIA_DRIVER_CAPABILITIES with compute)")),
    };
    let found = cupti::search();
    let first = match found.first() {
        Some(first) => match first.path.exists() {
            true => Ok(format!("{} from {}, unless the program loads another", first.path.display(), first.from)),
            false => Err(format!("{} names {}, which does not exist", first.from, first.path.display())),
        },
        None => Err("no libcupti in the Python on PATH or a CUDA toolkit: programs that bring none are not recorded; \
                     `pip install nvidia-cuda-cupti` for CUDA 13, nvidia-cuda-cupti-cu12 for 12"
            .to_owned()),
    };
    let mut lines =
        vec![Line::of(driver, "CUDA driver"), Line::of(library, "CUDA library"), Line::of(first, "libcupti")];
    lines.extend(
        found
            .iter()
            .skip(1)
            .map(|other| Line::new(Mark::Note, "", format!("also {} from {}", other.path.display(), other.from))),
    );
    let parameters = read_to_string("/proc/driver/nvidia/params").unwrap_or_default();
    lines.extend(restricted(&parameters).map(|restricted| permission(restricted, administrator())));
    lines
}

/// Whether the loader finds a library. Opening the driver's is harmless; nothing in it is called.
fn loads(name: &CStr) -> Result<(), String> {
    // SAFETY: a name with a zero at its end; the handle is dropped unused.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(format!("{} cannot be loaded", name.to_string_lossy())) } else { Ok(()) }
}

/// The version in the first line of /proc/driver/nvidia/version: a word of numbers and points.
fn module_version(text: &str) -> Option<String> {
    let words = text.lines().next()?.split_whitespace();
    let number = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    words.into_iter().find(number).map(str::to_owned)
}

/// NVreg_RestrictProfilingToAdminUsers, as the loaded module has it.
fn restricted(parameters: &str) -> Option<bool> {
    let value = parameters.lines().find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))?;
    Some(value.trim() != "0")
}

/// CAP_SYS_ADMIN is bit 21.
fn administrator() -> bool {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 1 << 21 != 0)
}

fn permission(restricted: bool, administrator: bool) -> Line {
    let (mark, text) = match (restricted, administrator) {
        (false, _) => (Mark::Yes, "every user may read hardware counters"),
        (true, true) => {
            (Mark::Yes, "only administrators may read hardware counters, and this user is one (CAP_SYS_ADMIN)")
        }
        (true, false) => (
            Mark::Note,
            "only administrators may read hardware counters (NVreg_RestrictProfilingToAdminUsers=1). Kernels and copies do not \
             need them; if CUPTI refuses all the same, run as root, or the container with CAP_SYS_ADMIN",
        ),
    };
    Line::new(mark, "profiling", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_files_are_read() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs)\nGCC version: 12\n";
        assert_eq!(module_version(open).as_deref(), Some("580.65.06"));
        assert_eq!(module_version(""), None);
        let parameters = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n";
        assert_eq!(
            (restricted(parameters), restricted("RmProfilingAdminOnly: 0\n"), restricted("")),
            (Some(true), Some(false), None)
        );
        assert!(permission(true, false).text.contains("NVreg_RestrictProfilingToAdminUsers"));
        assert!(permission(true, true).mark == Mark::Yes && permission(false, false).mark == Mark::Yes);
    }
}
