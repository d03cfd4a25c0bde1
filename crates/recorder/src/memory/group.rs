//! The control group that limits a process: how much memory it may have, how much its group has, and how often the kernel killed for it.
//! Both versions of cgroups; of nested groups the one that leaves least counts.

use std::fs;
use std::path::Path;

/// None: there is no limit, or it cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupMemory {
    pub limit: Option<u64>,
    /// Without pages of files that the kernel takes back before it kills: a program that reads much fills its group with them.
    pub used: Option<u64>,
    /// Processes that were killed because the group ran out of memory.
    pub oom_kills: Option<u64>,
}

/// The names of the files of one version.
struct Version {
    root: &'static str,
    limit: &'static str,
    used: &'static str,
    events: &'static str,
    /// The line of `memory.stat` with file pages that were not used lately.
    inactive: &'static str,
}

const V2: Version = Version {
    root: "",
    limit: "memory.max",
    used: "memory.current",
    events: "memory.events",
    inactive: "inactive_file ",
};
const V1: Version = Version {
    root: "memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    events: "memory.oom_control",
    inactive: "total_inactive_file ",
};
/// Version 1 says a number near 2^63 where there is no limit.
const NO_LIMIT: u64 = 1 << 60;

/// The groups of a process. They can still be read when the process is gone.
#[derive(Clone, Debug, Default)]
pub struct Group(String);

impl Group {
    pub fn of(pid: u32) -> Group {
        Group(fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default())
    }

    pub fn read(&self) -> GroupMemory {
        read(&self.0, Path::new("/sys/fs/cgroup"))
    }
}

fn read(cgroup: &str, mounted: &Path) -> GroupMemory {
    let mut found = GroupMemory::default();
    for (version, path) in cgroup.lines().filter_map(parse) {
        let root = mounted.join(version.root);
        let own = root.join(path.trim_start_matches('/'));
        found.oom_kills = found.oom_kills.or_else(|| killed(&own, version));
        for folder in own.ancestors().take_while(|folder| folder.starts_with(&root)) {
            let Some(limit) = number(folder, version.limit).filter(|limit| *limit < NO_LIMIT) else { continue };
            let used = used(folder, version);
            let left = |limit: u64, used: Option<u64>| limit.saturating_sub(used.unwrap_or(0));
            if found.limit.is_none_or(|known| left(limit, used) < left(known, found.used)) {
                (found.limit, found.used) = (Some(limit), used);
            }
        }
        found.used = found.used.or_else(|| used(&own, version));
    }
    found
}

/// `4:memory:/a/b` of version 1, `0::/a/b` of version 2.
fn parse(line: &str) -> Option<(&'static Version, &str)> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    if controllers.split(',').any(|controller| controller == "memory") {
        return Some((&V1, path));
    }
    (number == "0" && controllers.is_empty()).then_some((&V2, path))
}

fn number(folder: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
}

fn used(folder: &Path, version: &Version) -> Option<u64> {
    let inactive = line(&folder.join("memory.stat"), version.inactive).unwrap_or(0);
    number(folder, version.used).map(|used| used.saturating_sub(inactive))
}

fn killed(own: &Path, version: &Version) -> Option<u64> {
    line(&own.join(version.events), "oom_kill ")
}

/// The number on the line that begins so.
fn line(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("inferscope-cgroup-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_group_that_leaves_least_counts() {
        let root = tree(
            "v2",
            &[
                ("a/memory.max", "1000\n"),
                ("a/memory.current", "950\n"),
                ("a/memory.stat", "anon 880\ninactive_file 50\nactive_file 20\n"),
                ("a/b/memory.max", "500\n"),
                ("a/b/memory.current", "100\n"),
                ("a/b/memory.events", "low 0\noom 3\noom_kill 2\n"),
            ],
        );
        let found = read("0::/a/b\n", &root);
        assert_eq!(found, GroupMemory { limit: Some(1000), used: Some(900), oom_kills: Some(2) });
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn version_one_and_no_limit() {
        let root = tree(
            "v1",
            &[
                ("memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/x/memory.usage_in_bytes", "77\n"),
                ("memory/x/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
            ],
        );
        let found = read("9:name=systemd:/\n4:memory:/x\n0::/\n", &root);
        assert_eq!(found, GroupMemory { limit: None, used: Some(77), oom_kills: Some(1) });
        assert_eq!(read("nonsense\n::\n", &root), GroupMemory::default());
        fs::remove_dir_all(root).unwrap();
    }
}
