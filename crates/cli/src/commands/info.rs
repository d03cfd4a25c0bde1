//! `inferscope info`: this machine, its GPUs with their memory, and the frameworks of the Python on PATH, without starting any of them.

use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{output, terminal};
use clap::Args;
use recorder::readings::{self, Devices, Group};
use report::{Ink, bytes};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope info
  inferscope info --format json | jq '.devices[].free_bytes'

Frameworks are found by their installed packages; none is imported. What can be
recorded here, and why not: inferscope doctor")]
pub struct Info {
    /// Output format: text or json
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

/// Packages that run models.
const FRAMEWORKS: [&str; 9] =
    ["torch", "transformers", "vllm", "sglang", "tensorflow", "keras", "jax", "onnxruntime", "triton"];

pub fn run(settings: &Settings, info: &Info) -> Result<Ending, Failure> {
    let host = readings::host();
    let (total, available) = readings::machine().unwrap_or_default();
    let group = Group::of(std::process::id()).read();
    let mut devices = Devices::find();
    let nvidia = devices.nvidia.clone();
    let memory = devices.read();
    let frameworks = frameworks();
    if info.format == "json" {
        let document = json!({
            "hostname": host.hostname, "kernel": host.kernel, "cpu_model": host.cpu_model, "cpu_count": host.cpu_count,
            "ram_total_bytes": total, "ram_available_bytes": available, "memory_limit_bytes": group.limit,
            "nvidia_driver": nvidia.as_ref().ok(), "why_no_nvidia": nvidia.as_ref().err(),
            "devices": memory.iter().map(|device| json!({
                "index": device.index, "name": device.name, "total_bytes": device.total, "used_bytes": device.used,
                "free_bytes": device.total.zip(device.used).map(|(total, used)| total.saturating_sub(used)),
                "processes": device.processes.as_ref().map(|all| all.iter().map(|(pid, held)| json!({"pid": pid, "bytes": held})).collect::<Vec<_>>()),
            })).collect::<Vec<_>>(),
            "frameworks": frameworks.iter().map(|(name, version)| json!({"name": name, "version": version})).collect::<Vec<_>>(),
        });
        output::write_to(None, |out| writeln!(out, "{document:#}"))?;
        return Ok(Ending::FINE);
    }
    let style = terminal::stdout_style(&settings.color);
    output::write_to(None, |out| {
        writeln!(out, "{}", style.ink(Ink::Heading, "This machine"))?;
        writeln!(out, "  {} · {} cores · {} · {}", host.hostname, host.cpu_count, host.cpu_model, host.kernel)?;
        writeln!(out, "  memory {}, {} free for programs", bytes(total), bytes(available))?;
        if let Some(limit) = group.limit {
            writeln!(out, "  limited to {} by its control group", bytes(limit))?;
        }
        writeln!(out, "\n{}", style.ink(Ink::Heading, "GPUs"))?;
        for device in &memory {
            let held = device.total.zip(device.used).map_or("memory not reported".into(), |(total, used)| {
                format!("{} of {} used", bytes(used), bytes(total))
            });
            writeln!(out, "  {} {}: {held}", device.index, style.plain(&device.name))?;
        }
        match (&nvidia, memory.is_empty()) {
            (Err(why), _) => writeln!(out, "  no NVIDIA GPU: {why}")?,
            (Ok(driver), _) => writeln!(out, "  NVIDIA driver {driver}")?,
        }
        writeln!(out, "\n{}", style.ink(Ink::Heading, "Frameworks of the Python on PATH"))?;
        if frameworks.is_empty() {
            writeln!(out, "  none found")?;
        }
        frameworks.iter().try_for_each(|(name, version)| writeln!(out, "  {name} {version}"))
    })?;
    Ok(Ending::FINE)
}

/// Names and versions of the packages that are installed for the first Python on PATH, from the names of their folders.
fn frameworks() -> Vec<(String, String)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let python = std::env::split_paths(&path).find(|folder| folder.join("python3").exists());
    let Some(prefix) = python.as_deref().and_then(Path::parent) else { return Vec::new() };
    let mut found: Vec<(String, String)> = site_packages(prefix)
        .into_iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten())
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (package, version) = name.strip_suffix(".dist-info")?.split_once('-')?;
            let known = FRAMEWORKS.iter().find(|known| known.eq_ignore_ascii_case(package))?;
            Some(((*known).to_owned(), version.to_owned()))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let mut found = vec![prefix.join("lib/python3/dist-packages")];
    for entry in std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("python3.") {
            found.push(entry.path().join("site-packages"));
        }
    }
    found
}
