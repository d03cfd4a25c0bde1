//! The two ends of `track --stream`: every event as a JSON line on stdout, and what the tracked program says as JSON lines on stdin. A
//! reader that is slow, or gone, costs events of the stream, which are counted, and never a sample.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use telemetry::track::Told;
use telemetry::{Counters, Event, EventType};

/// Some minutes at ten a second, and a few megabytes.
const MOST_WAITING: usize = 4096;
const LONGEST_LINE: u64 = 256 << 10;
/// For a reader that is slow at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A line of stdin.
#[derive(Deserialize, PartialEq, Debug)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Event(Box<Said>),
    /// Sample now, and not only when it is time.
    Sample,
    Thresholds {
        warning: Option<f64>,
        critical: Option<f64>,
    },
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Said {
    #[serde(rename = "type")]
    kind: String,
    time_ns: u64,
    collector: String,
    #[serde(default = "host")]
    device_id: i64,
    #[serde(default)]
    counters: SaidCounters,
    context: Option<String>,
    metadata: Option<Map<String, Value>>,
}

fn host() -> i64 {
    -1
}

#[derive(Deserialize, PartialEq, Debug, Default)]
#[serde(default, deny_unknown_fields)]
struct SaidCounters {
    allocated: Option<u64>,
    reserved: Option<u64>,
    active: Option<u64>,
    inactive: Option<u64>,
    change: Option<i64>,
    used: Option<u64>,
    free: Option<u64>,
    total: Option<u64>,
}

impl Said {
    /// None: there is no such type of event, or nobody says it.
    pub fn told(self) -> Option<Told> {
        let SaidCounters { allocated, reserved, active, inactive, change, used, free, total } = self.counters;
        Some(Told {
            time_ns: self.time_ns,
            kind: EventType::from_name(&self.kind)?,
            collector: Some(self.collector).filter(|name| !name.is_empty())?,
            device_id: self.device_id,
            counters: Counters { allocated, reserved, active, inactive, change, used, free, total },
            context: self.context,
            metadata: self.metadata.filter(|fields| !fields.is_empty()).map(|fields| Value::Object(fields).to_string()),
        })
    }
}

/// What could not be passed on, either way.
#[derive(Default, Debug)]
pub struct Missed {
    pub not_streamed: AtomicU64,
    pub refused: AtomicU64,
}

pub struct Stream {
    pub missed: Arc<Missed>,
    requests: Receiver<Request>,
    ends: Option<(Receiver<Vec<u8>>, SyncSender<Request>)>,
    written: Option<Receiver<()>>,
}

impl Stream {
    /// The stream, and who puts an event into it. Make it before anything else that may start a thread.
    pub fn new() -> (Stream, impl FnMut(&Event) + 'static) {
        block([END, HEARD]);
        let (events, lines) = sync_channel::<Vec<u8>>(MOST_WAITING);
        let (asked, requests) = sync_channel(MOST_WAITING);
        let missed = Arc::new(Missed::default());
        let counted = Arc::clone(&missed);
        let put = move |event: &Event| {
            let mut line = Vec::with_capacity(1024);
            if telemetry::json::line(event, &mut line).is_err() || events.try_send(line).is_err() {
                counted.not_streamed.fetch_add(1, Ordering::Relaxed);
            }
        };
        (Stream { missed, requests, ends: Some((lines, asked)), written: None }, put)
    }

    /// What the program said since the last call. Its threads start with the first one: by then signals are blocked, which they inherit.
    pub fn requests(&mut self) -> Vec<Request> {
        if let Some((lines, asked)) = self.ends.take() {
            let (done, written) = sync_channel(1);
            self.written = Some(written);
            let missed = Arc::clone(&self.missed);
            std::thread::spawn(move || {
                write(&lines, io::stdout(), &missed);
                _ = done.send(());
            });
            let missed = Arc::clone(&self.missed);
            std::thread::spawn(move || {
                read(BufReader::new(io::stdin()), &asked, &missed, || wake(HEARD));
                // The program ended, or wants no more.
                wake(END);
            });
        }
        self.requests.try_iter().collect()
    }

    /// Waits a little until everything is read. Whoever puts events must be gone.
    pub fn finish(self) {
        if let Some(written) = self.written {
            _ = written.recv_timeout(LAST_WORDS);
        }
    }
}

/// By this we tell ourselves that nobody has anything to say any more.
const END: i32 = libc::SIGTERM;
/// And by this, that a line came. Nobody else minds it.
const HEARD: i32 = libc::SIGURG;

/// In this thread and those that it starts, for good: it may come when nobody takes signals any more, and the last event is still to be written.
fn block(signals: [i32; 2]) {
    // SAFETY: the set is plain data that the calls fill and read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        signals.iter().for_each(|signal| _ = libc::sigaddset(&mut set, *signal));
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// Ends the waiting of the thread that takes signals.
fn wake(signal: i32) {
    // SAFETY: a signal to this process, where it is blocked and waited for.
    unsafe { libc::kill(libc::getpid(), signal) };
}

fn write(lines: &Receiver<Vec<u8>>, mut out: impl Write, missed: &Missed) {
    let mut works = true;
    for line in lines {
        works = works && out.write_all(&line).and_then(|()| out.flush()).is_ok();
        if !works {
            missed.not_streamed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn read(mut input: impl BufRead, asked: &SyncSender<Request>, missed: &Missed, heard: impl Fn()) {
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let whole = line.last() == Some(&b'\n');
        match serde_json::from_slice(&line).ok().filter(|_| whole) {
            Some(request) => {
                // A program that says more than we can take waits here: its pipe is full.
                if asked.send(request).is_err() {
                    return;
                }
                heard();
            }
            None => {
                missed.refused.fetch_add(1, Ordering::Relaxed);
                if !whole && skip_line(&mut input).is_err() {
                    return;
                }
            }
        }
    }
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (length, last) = (buffer.len(), end.is_some());
        input.consume(end.map_or(length, |end| end + 1));
        if last || length == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> (Vec<Request>, u64) {
        let (asked, requests) = sync_channel(16);
        let missed = Missed::default();
        read(text.as_bytes(), &asked, &missed, || ());
        drop(asked);
        (requests.iter().collect(), missed.refused.into_inner())
    }

    #[test]
    fn what_is_said_is_understood_or_counted() {
        let phase =
            r#"{"do":"event","type":"phase_enter","time_ns":5,"collector":"c","context":"load","metadata":{"a":1}}"#;
        let text = format!("{phase}\n{{\"do\":\"sample\"}}\nnonsense\n{{\"do\":\"dance\"}}\n{{\"do\":\"sample\"}}");
        let (mut requests, refused) = heard(&text);
        assert_eq!(refused, 3, "nonsense, an unknown request, and one without an end");
        assert_eq!(requests.pop(), Some(Request::Sample));
        let Some(Request::Event(said)) = requests.pop() else { panic!("no event") };
        let told = said.told().unwrap();
        assert_eq!((told.kind, told.device_id, told.context.as_deref()), (EventType::PhaseEnter, -1, Some("load")));
        assert_eq!(told.metadata.as_deref(), Some(r#"{"a":1}"#));
        assert!(requests.is_empty());
    }

    #[test]
    fn a_line_without_end_is_skipped() {
        let long = "x".repeat(3 * LONGEST_LINE as usize);
        assert_eq!(heard(&format!("{long}\n{{\"do\":\"sample\"}}\n")), (vec![Request::Sample], 1));
        assert_eq!(heard(&long), (vec![], 1));
    }

    #[test]
    fn a_reader_that_is_gone_is_counted() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (lines, waiting) = sync_channel(4);
        let missed = Missed::default();
        lines.send(vec![1]).unwrap();
        lines.send(vec![2]).unwrap();
        drop(lines);
        write(&waiting, Gone, &missed);
        assert_eq!(missed.not_streamed.into_inner(), 2);
    }
}
