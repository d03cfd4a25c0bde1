//! The line between supervisor and recorder: a pair of sockets. Messages to the recorder are few and of one size, so that a
//! process between fork and exec may send one too; those from it are one letter, and text up to its end.

use crate::outcome::Exit;
use crate::protocol::Order;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;
use trace::codes::Note;

/// From the recorder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Completed {
    /// Nothing is needed from shared memory any more.
    pub whole: bool,
    #[serde(with = "crate::note_json")]
    pub notes: Vec<Note>,
}

/// What came from the recorder so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Nothing,
    Ready,
    Refused(String),
    Completed(Completed),
}

const READY: u8 = b'r';
const REFUSED: u8 = b'f';
const COMPLETED: u8 = b'c';

/// A letter and a number.
const ORDER_BYTES: usize = 5;

impl Order {
    fn to_bytes(self) -> [u8; ORDER_BYTES] {
        let (letter, number) = match self {
            Order::Watch(pid) => (b'w', pid as i32),
            Order::End(None) => (b'e', 0),
            Order::End(Some(Exit::Code(code))) => (b'x', code),
            Order::End(Some(Exit::Signal(signal))) => (b's', signal),
            Order::Discard => (b'd', 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [letter, a, b, c, d]
    }

    fn from_bytes([letter, a, b, c, d]: [u8; ORDER_BYTES]) -> Option<Order> {
        let number = i32::from_le_bytes([a, b, c, d]);
        match letter {
            b'w' => Some(Order::Watch(number as u32)),
            b'e' => Some(Order::End(None)),
            b'x' => Some(Order::End(Some(Exit::Code(number)))),
            b's' => Some(Order::End(Some(Exit::Signal(number)))),
            b'd' => Some(Order::Discard),
            _ => None,
        }
    }
}

/// One end. Both are closed when a command is executed.
pub(crate) struct Line {
    socket: std::fs::File,
    received: Vec<u8>,
}

impl Line {
    /// The supervisor's end and the recorder's.
    pub fn pair() -> io::Result<(Line, Line)> {
        let mut ends = [0; 2];
        // SAFETY: both descriptors are filled by the call and then owned once each.
        unsafe {
            if libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let [near, far] = ends.map(|end| OwnedFd::from_raw_fd(end).into());
            Ok((Line { socket: near, received: Vec::new() }, Line { socket: far, received: Vec::new() }))
        }
    }

    pub fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Says whether it was taken. A recorder that is gone is told again when it is back.
    pub fn order(&self, order: Order) -> bool {
        send(self.raw(), &order.to_bytes())
    }

    /// For a process between fork and exec: makes no allocation.
    pub fn announcement(&self) -> impl Fn() + Send + Sync + 'static {
        let socket = self.raw();
        move || {
            let pid = std::process::id();
            send(socket, &Order::Watch(pid).to_bytes());
        }
    }

    /// The next order. None: the supervisor is gone.
    pub fn next_order(&mut self) -> Option<Order> {
        let mut bytes = [0; ORDER_BYTES];
        self.socket.read_exact(&mut bytes).ok().and_then(|()| Order::from_bytes(bytes))
    }

    /// False: there is no supervisor any more.
    pub fn say_ready(&self) -> bool {
        send(self.raw(), &[READY])
    }

    pub fn say_refused(&self, why: &str) -> bool {
        send(self.raw(), &[&[REFUSED], why.as_bytes()].concat())
    }

    pub fn say_completed(&self, completed: &Completed) -> bool {
        let text = serde_json::to_vec(completed).unwrap_or_default();
        send(self.raw(), &[&[COMPLETED], text.as_slice()].concat())
    }

    /// Waits until something comes or the other end is closed, and takes it in. False: the other end is closed.
    pub fn listen(&mut self, timeout: Duration) -> bool {
        let mut poll = libc::pollfd { fd: self.raw(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` outlives the call.
        let came = unsafe { libc::poll(&mut poll, 1, timeout.as_millis().min(i32::MAX as u128) as i32) };
        if came <= 0 {
            return true;
        }
        let mut buffer = [0; 4096];
        match self.socket.read(&mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.received.extend(&buffer[..length]);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        }
    }

    /// Whether something can be read, be it the end.
    pub fn has_more(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.raw(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` outlives the call.
        unsafe { libc::poll(&mut poll, 1, 0) > 0 }
    }

    /// What the recorder said. Text is whole only when it has closed its end.
    pub fn answer(&self) -> Answer {
        let rest = self.received.strip_prefix(&[READY]);
        match rest.unwrap_or(&self.received) {
            [] if rest.is_some() => Answer::Ready,
            [REFUSED, text @ ..] => Answer::Refused(String::from_utf8_lossy(text).into_owned()),
            [COMPLETED, text @ ..] => serde_json::from_slice(text).map_or(Answer::Ready, Answer::Completed),
            _ => Answer::Nothing,
        }
    }
}

/// All of it, or the other end is gone. Never a SIGPIPE.
fn send(socket: RawFd, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: the bytes outlive the call.
        let sent = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_says_the_other_understands() {
        let (mut near, mut far) = Line::pair().unwrap();
        let orders =
            [Order::Watch(7), Order::End(Some(Exit::Code(3))), Order::End(Some(Exit::Signal(9))), Order::End(None)];
        orders.into_iter().for_each(|order| assert!(near.order(order)));
        orders.into_iter().for_each(|order| assert_eq!(far.next_order(), Some(order)));
        assert_eq!(near.answer(), Answer::Nothing);
        far.say_ready();
        assert!(near.listen(Duration::from_secs(60)));
        assert_eq!(near.answer(), Answer::Ready);
        // Longer than a reading, and than what a socket holds would not matter either.
        let completed = Completed { whole: true, notes: vec![Note::sentence("n".repeat(9000))] };
        assert!(far.say_completed(&completed));
        drop(far);
        while near.listen(Duration::from_secs(60)) {}
        assert_eq!(near.answer(), Answer::Completed(completed));
        assert!(!near.order(Order::Discard));
    }

    #[test]
    fn a_recorder_without_a_supervisor_knows() {
        let (near, mut far) = Line::pair().unwrap();
        drop(near);
        assert_eq!(far.next_order(), None);
        assert!(!far.say_ready());
    }
}
