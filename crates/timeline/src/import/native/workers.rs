//! Processes that `multiprocessing` started by itself: their command line is Python's own (`python -c`, and one of its modules), so
//! they are named after the program that started them, with what they are: `python serve.py: worker`.

use crate::Process;
use std::collections::HashMap;

/// What stands in a trace after the interpreter, and what such a process is.
const ROLES: [(&str, Role); 4] = [
    (" -c multiprocessing.spawn", Role::Worker),
    (" -c multiprocessing.forkserver", Role::ForkServer),
    (" -c multiprocessing.resource_tracker", Role::Tracker),
    // Before Python 3.8.
    (" -c multiprocessing.semaphore_tracker", Role::Tracker),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Worker,
    ForkServer,
    Tracker,
}

impl Role {
    fn of(program: &str) -> Option<(&str, Role)> {
        ROLES.iter().find_map(|(end, role)| Some((program.strip_suffix(end)?, *role)))
    }

    fn name(self) -> &'static str {
        match self {
            Role::Worker => "worker",
            Role::ForkServer => "fork server",
            Role::Tracker => "resource tracker",
        }
    }
}

/// No program nests workers in workers deeper; a damaged list of parents may go round.
const DEEPEST: usize = 16;

pub fn name(processes: &mut [Process]) {
    let places: HashMap<i64, usize> = processes.iter().enumerate().map(|(place, one)| (one.pid, place)).collect();
    let parent = |place: usize| {
        let pid = processes[place].parent_pid;
        places.get(&pid).copied().filter(|_| pid > 0)
    };
    let named = |place: usize| {
        let (interpreter, mut role) = Role::of(&processes[place].program)?;
        let mut at = parent(place);
        // What a fork server forks keeps its command line.
        let of_parent = at.and_then(|at| Role::of(&processes[at].program)).map(|(_, role)| role);
        if role == Role::ForkServer && of_parent == Some(Role::ForkServer) {
            role = Role::Worker;
        }
        for _ in 0..DEEPEST {
            match at.map(|at| &processes[at].program) {
                Some(program) if Role::of(program).is_some() => at = at.and_then(parent),
                Some(program) if !program.is_empty() => return Some(format!("{program}: {}", role.name())),
                _ => break,
            }
        }
        Some(format!("{interpreter} multiprocessing: {}", role.name()))
    };
    let names: Vec<Option<String>> = (0..processes.len()).map(named).collect();
    for (process, name) in processes.iter_mut().zip(names) {
        if let Some(name) = name {
            process.program = name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(processes: &[(i64, i64, &str)]) -> Vec<String> {
        let process = |(pid, parent_pid, program): &(i64, i64, &str)| Process {
            pid: *pid,
            parent_pid: *parent_pid,
            program: (*program).into(),
            ..Process::default()
        };
        let mut all: Vec<Process> = processes.iter().map(process).collect();
        name(&mut all);
        all.into_iter().map(|process| process.program).collect()
    }

    #[test]
    fn what_multiprocessing_starts_is_named_after_the_program() {
        let all = [
            (10, 1, "python uvicorn"),
            (11, 10, "python -c multiprocessing.resource_tracker"),
            (12, 10, "python -c multiprocessing.spawn"),
            // A worker's own worker, and a program that a worker runs.
            (13, 12, "python -c multiprocessing.spawn"),
            (14, 12, "python convert.py"),
        ];
        let named = ["uvicorn", "uvicorn: resource tracker", "uvicorn: worker", "uvicorn: worker", "convert.py"];
        assert_eq!(names(&all), named.map(|name| format!("python {name}")));
    }

    #[test]
    fn what_a_fork_server_forks_is_a_worker_of_the_program_that_started_the_server() {
        let server = "python3 -c multiprocessing.forkserver";
        let all = [(10, 1, "python3 -m app"), (11, 10, server), (12, 11, server)];
        assert_eq!(names(&all), ["python3 -m app", "python3 -m app: fork server", "python3 -m app: worker"]);
    }

    #[test]
    fn a_parent_that_was_not_recorded_is_not_made_up_and_a_circle_ends() {
        let spawned = "python -c multiprocessing.spawn";
        assert_eq!(names(&[(12, 10, spawned)]), ["python multiprocessing: worker"]);
        assert_eq!(names(&[(0, 0, spawned)]), ["python multiprocessing: worker"]);
        let circle = names(&[(1, 2, spawned), (2, 1, spawned)]);
        assert_eq!(circle, ["python multiprocessing: worker", "python multiprocessing: worker"]);
        assert_eq!(names(&[(5, 1, "python -c"), (6, 5, "")]), ["python -c", ""]);
    }
}
