//! Makes models on a thread of its own, at low priority, so that a view never waits and the program that is watched loses nothing to it.

use crate::model::Model;
use crate::watcher::{Position, Watcher};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Making a model takes at most this part of a core: where one takes long, the next is later.
const SHARE: u32 = 4;
/// The lowest priority there is for a thread that has to run at all.
const NICE: libc::c_int = 19;

/// The newest model, or why there is none.
type Shown = Option<Result<Arc<Model>, String>>;

pub struct Worker {
    shown: Arc<Mutex<Shown>>,
    wishes: Option<Sender<Position>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub fn start(watcher: Watcher, position: Position, every: Duration) -> std::io::Result<Worker> {
        let shown = Arc::new(Mutex::new(None));
        let (wishes, wanted) = channel();
        let thread = std::thread::Builder::new().name("inferscope-live".into()).spawn({
            let shown = Arc::clone(&shown);
            move || work(watcher, position, every, &wanted, &shown)
        })?;
        Ok(Worker { shown, wishes: Some(wishes), thread: Some(thread) })
    }

    /// The newest model.
    pub fn shown(&self) -> Shown {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on models are of this moment.
    pub fn go(&self, position: Position) {
        // A worker that has ended shows why.
        let _ = self.wishes.as_ref().map(|wishes| wishes.send(position));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.wishes = None;
        // It ends after the model that it is at; whoever quits does not wait for that.
        drop(self.thread.take());
    }
}

fn work(
    mut watcher: Watcher,
    mut position: Position,
    every: Duration,
    wanted: &Receiver<Position>,
    shown: &Mutex<Shown>,
) {
    // SAFETY: of the calling thread alone, which Linux takes 0 for here.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    loop {
        let began = Instant::now();
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| watcher.look(position)));
        let result = match looked {
            Ok(Ok(model)) => Ok(Arc::new(model)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("this part of the trace cannot be analysed: it is damaged".to_owned()),
        };
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        let rest = every.saturating_sub(began.elapsed()).max(began.elapsed() * (SHARE - 1));
        match wanted.recv_timeout(rest) {
            Ok(wish) => position = wanted.try_iter().last().unwrap_or(wish),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
