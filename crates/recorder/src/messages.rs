//! What the samplers send to the drain. The queue is bounded: a sampler never waits, it drops and counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use trace::codes::{CollectorCode, LossReason};

pub(crate) enum Message {
    Samples(Vec<Sample>),
    Counters(Vec<Counter>),
    Thread { process: i32, thread: i32, name: String },
    Loss { process: i32, collector: CollectorCode, reason: LossReason, count: u64 },
}

impl Message {
    fn rows(&self) -> u64 {
        match self {
            Message::Samples(rows) => rows.len() as u64,
            Message::Counters(rows) => rows.len() as u64,
            _ => 1,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sample {
    pub time: i64,
    pub process: i32,
    pub thread: i32,
    pub stack: i32,
    pub state: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counter {
    pub time: i64,
    pub process: i32,
    pub thread: i32,
    pub counter: i32,
    pub value: i64,
}

#[derive(Clone)]
pub(crate) struct Outbox {
    sender: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

pub(crate) struct Inbox {
    receiver: Receiver<Message>,
    dropped: Arc<AtomicU64>,
}

/// A thousand samples wait for the drain at most: ten seconds at the default rate, a megabyte or two.
const MOST_WAITING: usize = 1024;

pub(crate) fn channel() -> (Outbox, Inbox) {
    let (sender, receiver) = sync_channel(MOST_WAITING);
    let dropped = Arc::new(AtomicU64::new(0));
    (Outbox { sender, dropped: Arc::clone(&dropped) }, Inbox { receiver, dropped })
}

impl Outbox {
    pub fn send(&self, message: Message) {
        let rows = message.rows();
        if self.sender.try_send(message).is_err() {
            self.dropped.fetch_add(rows, Ordering::Relaxed);
        }
    }
}

impl Inbox {
    pub fn next(&self) -> Option<Message> {
        self.receiver.try_recv().ok()
    }

    /// Rows dropped since the last time.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}
