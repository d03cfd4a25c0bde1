//! Memory as it is now, for those who watch without recording: of devices, of a process and its children, of the group that limits them, of
//! the machine. A recording has the same over time, from its own samplers.

use crate::device::{self, Device, Question};
pub use crate::memory::group::{Group, GroupMemory};
use crate::proc;
use std::fs;

/// The devices of this machine, ready to be asked again and again.
pub struct Devices {
    devices: Vec<Box<dyn Device>>,
    /// The version of NVIDIA's driver; else why it does not answer.
    pub nvidia: Result<String, String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceMemory {
    pub index: u32,
    pub name: String,
    /// None: the device does not say.
    pub used: Option<u64>,
    pub total: Option<u64>,
    /// What each process holds, by pid. None: this driver, or this user, cannot tell, or it tells the numbers of another PID namespace.
    pub processes: Option<Vec<(u32, u64)>>,
}

impl Devices {
    pub fn find() -> Devices {
        let (devices, nvidia) = device::all();
        Devices { devices, nvidia: nvidia.map_err(|why| why.why().to_owned()) }
    }

    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Asks the drivers; nothing is run on a device, and none is waited for.
    pub fn read(&mut self) -> Vec<DeviceMemory> {
        let read = |device: &mut Box<dyn Device>| DeviceMemory {
            index: device.about().index,
            name: device.about().name.clone(),
            used: device.ask(Question::MemoryUsed).ok(),
            total: device.ask(Question::MemoryTotal).ok(),
            processes: device.processes().ok().filter(|listed| device::are_of_our_namespace(listed)),
        };
        self.devices.iter_mut().map(read).collect()
    }
}

/// A process and what it started, the process first. Bounded: a fork bomb is not followed to its end.
pub fn with_children(root: u32) -> Vec<u32> {
    const MOST: usize = 4096;
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied().filter(|_| found.len() < MOST) {
        next += 1;
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    found.truncate(MOST);
    found
}

/// Resident memory of a process. None: it is gone.
pub fn resident(pid: u32) -> Option<u64> {
    // SAFETY: a plain question.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64;
    proc::stat(pid).filter(|stat| !matches!(stat.state, b'Z' | b'X')).map(|stat| stat.resident_pages * page)
}

/// The memory of the machine: all of it, and what programs could still have.
pub fn machine() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().split(' ').next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    };
    Some((value("MemTotal:")?, value("MemAvailable:")?))
}

/// What the machine is.
pub fn host() -> crate::host::Host {
    crate::host::describe()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Silence;

    /// Lists these processes.
    struct Lists(crate::manifest::Device, Vec<(u32, u64)>);

    impl Device for Lists {
        fn about(&self) -> &crate::manifest::Device {
            &self.0
        }

        fn ask(&mut self, _: Question) -> Result<u64, Silence> {
            Err(Silence::Now)
        }

        fn processes(&mut self) -> Result<Vec<(u32, u64)>, Silence> {
            Ok(self.1.clone())
        }

        fn twin(&self) -> Box<dyn Device> {
            Box::new(Lists(self.0.clone(), self.1.clone()))
        }
    }

    #[test]
    fn processes_of_another_pid_namespace_are_not_taken_for_ours() {
        let me = std::process::id();
        let listed = |processes: Vec<(u32, u64)>| {
            let device: Box<dyn Device> = Box::new(Lists(crate::manifest::Device::default(), processes));
            let mut devices = Devices { devices: vec![device], nvidia: Ok(String::new()) };
            devices.read().remove(0).processes
        };
        assert_eq!(listed(vec![(me, 7)]), Some(vec![(me, 7)]));
        // No process has this number: the list is of the host, where ours is somebody else's.
        assert_eq!(listed(vec![(me, 7), (u32::MAX >> 1, 9)]), None);
    }

    #[test]
    fn a_pid_that_is_used_again_is_another_process() {
        let me = std::process::id();
        let start = proc::stat(me).unwrap().start_ticks;
        assert!(proc::alive(me, start) && !proc::alive(me, start + 1));
    }

    #[test]
    fn this_process_has_memory_and_children() {
        let me = std::process::id();
        assert!(resident(me).is_some_and(|bytes| bytes > 1 << 20));
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(with_children(me).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(resident(u32::MAX >> 1), None);
        assert!(machine().is_some_and(|(total, available)| total >= available && available > 0));
    }
}
