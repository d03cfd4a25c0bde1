//! Signals, and all else that a command inherits, with the recorder as the main thread of a process of its own. So this
//! has a `main` and no test harness, which runs tests in threads.

mod roles;

use roles::*;
use std::fs;
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

fn main() {
    if std::env::var_os("ROLE").is_some() {
        return play();
    }
    let defaults = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM, libc::SIGUSR1];
    defaults.into_iter().for_each(children_do_not_ignore);
    signals_sent_to_the_recorder_reach_the_command();
    an_interrupt_from_the_terminal_reaches_the_command_once();
    a_signal_to_the_group_reaches_the_command_once();
    the_command_gets_everything_as_it_was();
    println!("signals: ok");
}

/// Started in the background or by `nohup`, this process ignores some signals; so would the commands here, and a shell
/// cannot trap what it was started to ignore. A handler that does nothing still ignores, and is not inherited.
fn children_do_not_ignore(signal: i32) {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the handler touches nothing, and a disposition that was not "ignore" is put back at once.
    unsafe {
        let before = libc::signal(signal, nothing as extern "C" fn(i32) as libc::sighandler_t);
        if before != libc::SIG_IGN {
            libc::signal(signal, before);
        }
    }
}

/// A recorder of a shell command. It counts the signals that it names in `traps`, and ends at the second line.
fn recorder(folder: &Folder, command: &str) -> Command {
    let exe = std::env::current_exe().unwrap();
    let mut recorder = Command::new(exe);
    recorder.env("ROLE", "recorder").env("OUTPUT", folder.path("trace")).env("COMMAND", command);
    recorder
}

fn send(child: &Child, signal: i32) {
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(child.id() as i32, signal) };
}

fn signals_sent_to_the_recorder_reach_the_command() {
    let folder = Folder::new("signals");
    let (ready, noted) = (folder.path("ready"), folder.path("noted"));
    let (ready_path, noted_path) = (ready.display(), noted.display());
    let line = format!(
        "trap 'echo usr1 >> {noted_path}' USR1; trap 'echo int >> {noted_path}' INT; trap 'exit 42' TERM; \
         touch {ready_path}; while :; do sleep 0.01; done"
    );
    let mut child = recorder(&folder, &line).spawn().unwrap();
    until("the command is ready", || ready.exists());
    let count = |what: &str| fs::read_to_string(&noted).unwrap_or_default().matches(what).count();
    send(&child, libc::SIGUSR1);
    until("the first signal came", || count("usr1") == 1);
    // Sent by a process, not by a terminal: the command cannot have got it otherwise.
    send(&child, libc::SIGINT);
    until("the second signal came", || count("int") == 1);
    send(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(42));
    assert_eq!(state(&folder.path("trace")).exit, Some(recorder::Exit::Code(42)));
}

fn an_interrupt_from_the_terminal_reaches_the_command_once() {
    let folder = Folder::new("terminal");
    let (ready, noted) = (folder.path("ready"), folder.path("noted"));
    let (ready_path, noted_path) = (ready.display(), noted.display());
    // Waits long enough after the first to see a second.
    let line = format!(
        "n=0; trap 'echo int >> {noted_path}; n=1' INT; touch {ready_path}; \
         while [ $n = 0 ]; do sleep 0.01; done; sleep 0.3; exit 43"
    );
    let (mut near, far) = terminal();
    let mut command = recorder(&folder, &line);
    let far_number = std::os::fd::AsRawFd::as_raw_fd(&far);
    // SAFETY: async-signal-safe calls only: a session of its own with this terminal.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::ioctl(far_number, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    until("the command is ready", || ready.exists());
    near.write_all(b"\x03").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(43));
    assert_eq!(fs::read_to_string(&noted).unwrap(), "int\n");
    assert_eq!(state(&folder.path("trace")).exit, Some(recorder::Exit::Code(43)));
}

fn a_signal_to_the_group_reaches_the_command_once() {
    let folder = Folder::new("group");
    let (ready, noted) = (folder.path("ready"), folder.path("noted"));
    let (ready_path, noted_path) = (ready.display(), noted.display());
    let line = format!(
        "trap 'echo usr1 >> {noted_path}' USR1; trap 'echo usr2 >> {noted_path}' USR2; trap 'exit 44' TERM; \
         touch {ready_path}; while :; do sleep 0.01; done"
    );
    let mut child = recorder(&folder, &line).process_group(0).spawn().unwrap();
    until("the command is ready", || ready.exists());
    let count = |what: &str| fs::read_to_string(&noted).unwrap_or_default().matches(what).count();
    for round in 1..=20 {
        // SAFETY: the group of our own child, not waited for yet.
        unsafe { libc::kill(-(child.id() as i32), libc::SIGUSR1) };
        until("the signal to the group came", || count("usr1") >= round);
        // One to the supervisor alone is passed on all the same. What was passed on before it would be there before it.
        send(&child, libc::SIGUSR2);
        until("the signal to the supervisor came", || count("usr2") == round);
        assert_eq!(count("usr1"), round);
    }
    send(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(44));
}

fn terminal() -> (fs::File, OwnedFd) {
    let (mut near, mut far) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: both descriptors are filled by the call and then owned once each.
    unsafe {
        assert_eq!(libc::openpty(&mut near, &mut far, null, null.cast(), null.cast()), 0);
        (fs::File::from_raw_fd(near), OwnedFd::from_raw_fd(far))
    }
}

fn the_command_gets_everything_as_it_was() {
    let folder = Folder::new("untouched");
    let seen = folder.path("seen");
    let line = format!(
        "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status > {0}; env | sort >> {0}; ls /proc/self/fd >> {0}; ulimit -a >> {0}; \
         pwd >> {0}; umask >> {0}",
        seen.display()
    );
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    let before = fs::read_to_string(&seen).unwrap();
    assert!(recorder(&folder, &line).status().unwrap().success());
    let after = fs::read_to_string(&seen).unwrap();
    let added = ["INFERSCOPE_", "PYTHONPATH=", "_=", "ROLE=", "OUTPUT=", "COMMAND="];
    let clean = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !added.iter().any(|name| line.starts_with(name)));
        // Signals 32 and 33 belong to the C library, which changes them as soon as a process has threads.
        lines.map(|line| if line.starts_with("Sig") { line[line.len() - 7..].into() } else { line.into() }).collect()
    };
    assert_eq!(clean(&before), clean(&after));
    assert!(after.contains("INFERSCOPE_SEGMENTS=") && after.contains("INFERSCOPE_CALLS=false"));
    assert!(Path::new(&folder.path("trace")).exists());
}
