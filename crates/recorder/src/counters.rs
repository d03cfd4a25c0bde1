//! Counters on their way to the drain. A row is written only when a value changed; and then also one for the last time
//! it was seen unchanged, so that a reader does not smear the change over the quiet time before.

use crate::dictionary::Dictionary;
use crate::messages::Counter;
use std::collections::HashMap;
use std::sync::Arc;
use trace::clock::monotonic;

pub(crate) struct Counters {
    dictionary: Arc<Dictionary>,
    /// By process, thread and counter: the value, and when it was last seen without a row being written.
    last: HashMap<(i32, i32, &'static str), Last>,
    rows: Vec<Counter>,
}

struct Last {
    number: i32,
    value: i64,
    quiet: Option<i64>,
}

impl Counters {
    pub fn new(dictionary: Arc<Dictionary>) -> Counters {
        Counters { dictionary, last: HashMap::new(), rows: Vec::new() }
    }

    pub fn set(&mut self, process: i32, thread: i32, counter: &'static str, value: u64) {
        let (time, value) = (monotonic().0 as i64, value as i64);
        let row = |time, number, value| Counter { time, process, thread, counter: number, value };
        match self.last.get_mut(&(process, thread, counter)) {
            Some(last) if last.value == value => last.quiet = Some(time),
            Some(last) => {
                self.rows.extend(last.quiet.take().map(|quiet| row(quiet, last.number, last.value)));
                self.rows.push(row(time, last.number, value));
                last.value = value;
            }
            None => {
                let number = self.dictionary.name(counter, None, None);
                self.rows.push(row(time, number, value));
                self.last.insert((process, thread, counter), Last { number, value, quiet: None });
            }
        }
    }

    /// The last value written, if any.
    pub fn get(&self, process: i32, thread: i32, counter: &'static str) -> Option<u64> {
        self.last.get(&(process, thread, counter)).map(|last| last.value as u64)
    }

    /// What was last seen of threads or processes that are gone is said, then forgotten.
    pub fn forget(&mut self, gone: impl Fn(i32, i32) -> bool) {
        let rows = &mut self.rows;
        self.last.retain(|(process, thread, _), last| {
            let keep = !gone(*process, *thread);
            if let Some(time) = last.quiet.filter(|_| !keep) {
                let (number, value) = (last.number, last.value);
                rows.push(Counter { time, process: *process, thread: *thread, counter: number, value });
            }
            keep
        });
    }

    pub fn take(&mut self) -> Vec<Counter> {
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_after_quiet_says_when_the_quiet_ended() {
        let mut counters = Counters::new(Arc::new(Dictionary::new(0)));
        for value in [5, 5, 5, 9] {
            counters.set(0, 1, "cpu_ns", value);
        }
        let rows = counters.take();
        assert_eq!(rows.iter().map(|row| row.value).collect::<Vec<_>>(), [5, 5, 9]);
        assert!(rows.is_sorted_by_key(|row| row.time));
        counters.set(0, 1, "cpu_ns", 9);
        counters.forget(|process, _| process == 0);
        assert_eq!((counters.take().len(), counters.get(0, 1, "cpu_ns")), (1, None));
    }
}
