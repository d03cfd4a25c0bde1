//! Why a command could not do its work: one sentence, and the exit code that says of what sort it is.

use crate::ending::Ending;
use crate::terminal;
use std::fmt::Display;
use std::io;

#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
    how: How,
}

#[derive(Debug)]
enum How {
    /// A sentence under our name.
    Said,
    /// Help and version are no failure, but come the same way.
    Asked,
    /// Help for somebody who gave no command.
    Help,
}

impl Failure {
    fn new(code: u8, message: impl Display) -> Failure {
        Failure { code, message: message.to_string(), how: How::Said }
    }

    pub fn error(message: impl Display) -> Failure {
        Failure::new(1, message)
    }

    pub fn usage(message: impl Display) -> Failure {
        Failure::new(2, message)
    }

    pub fn bad_input(message: impl Display) -> Failure {
        Failure::new(5, message)
    }

    /// A signal ended it: as a shell counts those.
    pub fn interrupted(signal: i32) -> Failure {
        Failure::new(u8::try_from(128 + signal).unwrap_or(1), "interrupted")
    }

    pub fn writing(what: impl Display, error: &io::Error) -> Failure {
        Failure::error(format_args!("cannot write {what}: {error}"))
    }

    /// The same, and what to do about it.
    pub fn with_hint(mut self, hint: impl Display) -> Failure {
        self.message = format!("{}; {hint}", self.message);
        self
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn tell(self) -> Ending {
        use std::io::Write;
        match self.how {
            // A closed pipe is no reason to complain about help.
            How::Asked => _ = io::stdout().lock().write_all(self.message.as_bytes()),
            How::Help => terminal::tell(format_args!("{}", self.message)),
            How::Said => terminal::say(self.message.trim_end()),
        }
        Ending::Code(self.code.into())
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Failure {
        if !error.use_stderr() {
            let text = error.render();
            let styled = terminal::stdout_style("auto").colour;
            let message = if styled { text.ansi().to_string() } else { text.to_string() };
            return Failure { code: 0, message, how: How::Asked };
        }
        let text = error.render().to_string();
        if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Failure { code: 2, message: text, how: How::Help };
        }
        Failure::usage(text.strip_prefix("error: ").unwrap_or(&text))
    }
}

impl From<timeline::OpenError> for Failure {
    fn from(error: timeline::OpenError) -> Failure {
        match error {
            timeline::OpenError::Unreadable { .. } => Failure::error(error),
            _ => Failure::bad_input(error),
        }
    }
}

impl From<recorder::Error> for Failure {
    fn from(error: recorder::Error) -> Failure {
        Failure::new(u8::try_from(error.exit_code()).unwrap_or(1), error)
    }
}
