//! The processes that descend from the one that is recorded, and which of them are Python. New processes are looked at
//! once, and again only when they become another program or might have loaded Python since.

use crate::proc;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(crate) struct Tree {
    members: HashMap<u32, Member>,
    /// All processes of the machine at the last look: only new ones need a closer one.
    seen: HashSet<u32>,
}

struct Member {
    start_ticks: u64,
    program: Option<PathBuf>,
    /// See [`proc::Stat`]: another means another program, also if it is the same file.
    stack: u64,
    /// It still runs what its parent runs: most such processes become another program in a moment.
    forked: bool,
    python: bool,
    replaced: bool,
    again: Instant,
    pause: Duration,
}

/// A process of the tree that runs Python.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub pid: u32,
    pub parent: u32,
    pub start_ticks: u64,
    /// It was another program of its own before.
    pub replaced: bool,
}

const FIRST_PAUSE: Duration = Duration::from_millis(400);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Tree {
    pub fn new(root: u32) -> Tree {
        let mut tree = Tree { members: HashMap::new(), seen: HashSet::new() };
        tree.add(root);
        tree
    }

    fn add(&mut self, pid: u32) {
        let Some(stat) = proc::stat(pid) else { return };
        let (start_ticks, stack, again) = (stat.start_ticks, stat.stack, Instant::now());
        let forked = self.members.contains_key(&stat.parent)
            && proc::stat(stat.parent).is_some_and(|parent| parent.stack == stack);
        let (program, python, pause) = (None, false, FIRST_PAUSE);
        let member = Member { start_ticks, program, stack, forked, python, replaced: false, again, pause };
        self.members.insert(pid, member);
    }

    /// Looks at all processes, and returns those that have turned out to be Python.
    pub fn look(&mut self) -> Vec<Found> {
        let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
        let now: HashSet<u32> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        let new = now.difference(&self.seen).filter(|pid| !self.members.contains_key(pid));
        let mut new: Vec<(u32, u32)> = new.filter_map(|pid| Some((*pid, proc::stat(*pid)?.parent))).collect();
        // A parent may be listed after its child: until nothing joins any more.
        loop {
            let (joined, rest): (Vec<_>, Vec<_>) =
                new.into_iter().partition(|(_, parent)| self.members.contains_key(parent));
            if joined.is_empty() {
                break;
            }
            joined.iter().for_each(|(pid, _)| self.add(*pid));
            new = rest;
        }
        self.members.retain(|pid, _| now.contains(pid));
        self.seen = now;
        self.members.iter_mut().filter_map(|(pid, member)| member.check(*pid)).collect()
    }

    /// Whether this process runs Python, as far as was looked.
    pub fn is_python(&self, pid: u32) -> bool {
        self.members.get(&pid).is_some_and(|member| member.python)
    }
}

impl Member {
    fn check(&mut self, pid: u32) -> Option<Found> {
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
        let stack = proc::stat(pid).map_or(0, |stat| stat.stack);
        let other_stack = stack != 0 && self.stack != 0 && stack != self.stack;
        // Without one it has ended or may not be looked at: that makes it no other program.
        if program.is_some() && (program != self.program || other_stack) {
            let replaced = self.python && other_stack && !self.forked;
            let (forked, stack) = (self.forked && !other_stack, if stack == 0 { self.stack } else { stack });
            let (python, again, pause) = (false, Instant::now(), FIRST_PAUSE);
            *self = Member { program, stack, forked, python, replaced, again, pause, ..*self };
        }
        if self.python || Instant::now() < self.again {
            return None;
        }
        self.again += self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let stat = proc::stat(pid).filter(|stat| stat.start_ticks == self.start_ticks)?;
        self.python = looks_like_python(pid);
        let (start_ticks, replaced) = (self.start_ticks, self.replaced);
        self.python.then_some(Found { pid, parent: stat.parent, start_ticks, replaced })
    }
}

/// By the name of its program, or because it has loaded Python's library.
fn looks_like_python(pid: u32) -> bool {
    proc::program(pid).contains("python")
        || fs::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| String::from_utf8_lossy(&maps).contains("libpython"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_has_ended_is_not_found_again() {
        let folder = std::env::temp_dir().join(format!("inferscope-test-{}-tree", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // By its name it is Python, also after its end, when nothing but the name can be read.
        let program = folder.join("python-of-a-kind");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("600").spawn().unwrap();
        let mut tree = Tree::new(child.id());
        let found = tree.look();
        assert_eq!(found.iter().map(|found| found.pid).collect::<Vec<_>>(), [child.id()]);
        child.kill().unwrap();
        let ended = || fs::read_link(format!("/proc/{}/exe", child.id())).is_err();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !ended() {
            assert!(Instant::now() < deadline, "the process never ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(proc::program(child.id()), "python-of-a-kin");
        assert_eq!(tree.look(), []);
        assert!(tree.is_python(child.id()));
        child.wait().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
