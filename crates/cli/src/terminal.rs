//! What stdout and stderr are: a terminal of some width that shows colours, or a pipe that shows nothing of the kind. Also what
//! is told on stderr, and the line of progress, which only a terminal gets.

use report::Style;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// Narrower, tables do not fit; wider, lines get hard to follow.
const NARROWEST: usize = 60;
const WIDEST: usize = 160;

/// Everything for stderr goes this way. Nobody may be left to read it, or the disk that takes it may be full: that changes
/// nothing about how a command ends.
pub fn tell(text: fmt::Arguments) {
    // Whole, so that lines of other processes do not come in between.
    _ = std::io::stderr().lock().write_all(text.to_string().as_bytes());
}

/// A line on stderr, under our name.
pub fn say(text: impl fmt::Display) {
    tell(format_args!("inferscope: {text}\n"));
}

pub fn stdout_style(colour: &str) -> Style {
    style(std::io::stdout().is_terminal(), std::io::stdout().as_raw_fd(), colour)
}

pub fn stderr_style(colour: &str) -> Style {
    style(std::io::stderr().is_terminal(), std::io::stderr().as_raw_fd(), colour)
}

fn style(terminal: bool, descriptor: RawFd, colour: &str) -> Style {
    let colour = match colour {
        "always" => true,
        "never" => false,
        _ => terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb"),
    };
    let plain = Style::default();
    let width =
        terminal.then(|| width(descriptor)).flatten().map_or(plain.width, |width| width.clamp(NARROWEST, WIDEST));
    Style { colour, unicode: unicode(), width }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Unicode, unless the locale was set to something that has none.
fn unicode() -> bool {
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default().to_uppercase();
    locale.is_empty() || locale.contains("UTF-8") || locale.contains("UTF8")
}

fn width(descriptor: RawFd) -> Option<usize> {
    // SAFETY: `size` is plain data that the call fills.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size) == 0).then_some(size)?
    };
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}

/// A line on stderr that is written over again and again, and gone at the end. Nothing for what is quick.
pub struct Progress {
    what: &'static str,
    shown: bool,
    next: Option<Instant>,
}

const QUICK: Duration = Duration::from_millis(400);
const REFRESH: Duration = Duration::from_millis(100);

impl Progress {
    pub fn new(what: &'static str) -> Progress {
        Progress { what, shown: false, next: std::io::stderr().is_terminal().then(|| Instant::now() + QUICK) }
    }

    pub fn at(&mut self, state: impl FnOnce() -> String) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            tell(format_args!("\r\x1b[2K{} {}", self.what, state()));
            self.shown = true;
            self.next = Some(Instant::now() + REFRESH);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            tell(format_args!("\r\x1b[2K"));
        }
    }
}
