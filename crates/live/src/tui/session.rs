//! Owns the terminal: draws what the worker has, hands on keys, and gives the terminal back as it was, whatever happens.

use super::app::{App, Wish};
use super::look::Look;
use super::screen::{self, Tabs};
use crate::model::State;
use crate::worker::Worker;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use std::io::{self, Stdout};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// Four frames a second are as many as anybody reads.
const FRAME: Duration = Duration::from_millis(250);

pub struct Options {
    pub look: Look,
    /// A finished recording begins to play.
    pub plays: bool,
}

/// Why watching ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    Quit,
    /// `until` said so.
    Until,
}

/// Shows what the worker has until somebody quits, or `until` is true.
pub fn run(worker: &Worker, options: &Options, mut until: impl FnMut() -> bool) -> io::Result<Ended> {
    let mut terminal = Owned::take()?;
    let mut app = App { playing: options.plays, ..App::default() };
    let (mut tabs, mut played) = (Tabs::default(), Instant::now());
    loop {
        app.take(worker.shown());
        terminal.0.draw(|frame| tabs = screen::draw(frame, &app, options.look))?;
        if until() {
            return Ok(Ended::Until);
        }
        let next = Instant::now() + FRAME;
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            match keys(left) {
                Keys::Gone => return Ok(Ended::Until),
                // What is no key, a new size of the terminal, waits for the next frame.
                _ if !event::poll(Duration::ZERO)? => continue,
                _ => {}
            }
            let wish = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => app.key(key),
                Event::Mouse(mouse) => app.mouse(mouse, &tabs.places, tabs.line),
                _ => Wish::Nothing,
            };
            match wish {
                Wish::Quit => return Ok(Ended::Quit),
                Wish::Go(position) => worker.go(position),
                Wish::Nothing => {}
            }
            terminal.0.draw(|frame| tabs = screen::draw(frame, &app, options.look))?;
        }
        let ended = app.model.as_ref().is_some_and(|model| model.state != State::Recording);
        let passed = played.elapsed();
        if ended && passed >= Duration::from_secs(1) {
            played = Instant::now();
            if let Wish::Go(position) = app.played(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)) {
                worker.go(position);
            }
        }
    }
}

enum Keys {
    Some,
    None,
    /// The terminal was closed.
    Gone,
}

/// Waits for keys. Not the library's own wait: it reads a terminal that is gone again and again, without end.
fn keys(longest: Duration) -> Keys {
    let mut terminal = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // Rounded up, so that the last part of a millisecond is no busy loop.
    let wait = longest.as_millis() as libc::c_int + 1;
    // SAFETY: one descriptor, which outlives the call.
    let asked = unsafe { libc::poll(&mut terminal, 1, wait) };
    match terminal.revents {
        _ if asked <= 0 => Keys::None,
        found if found & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 => Keys::Gone,
        _ => Keys::Some,
    }
}

/// The terminal while it is ours. Dropped, the library's own would complain on a stderr that may be gone as well, and panic for it.
struct Owned(ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>);

impl Owned {
    fn take() -> io::Result<Owned> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture).inspect_err(|_| give_back())?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| give_back())?;
        Ok(Owned(ManuallyDrop::new(terminal)))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        give_back();
    }
}

/// Where the terminal is gone, there is nothing to give back.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, DisableMouseCapture, ratatui::crossterm::cursor::Show);
    let _ = disable_raw_mode();
}
