//! What a pickle refers back to by number: a plain vector while numbers are dense, as every writer's are, and a map for the rest, so that one
//! absurd number costs one entry.

use super::value::Value;
use std::collections::HashMap;

#[derive(Default)]
pub struct Memo {
    dense: Vec<Value>,
    sparse: HashMap<u64, Value>,
    /// How many were written: what the next one without a number gets.
    count: u64,
}

impl Memo {
    /// Says how many bytes it grew by.
    pub fn put(&mut self, number: u64, value: Value) -> u64 {
        let before = self.dense.capacity() as u64 * 8;
        let mut grown = 0;
        let close = number <= 2 * self.count + 1024;
        self.count += 1;
        if close {
            let place = number as usize;
            if place >= self.dense.len() {
                self.dense.resize(place + 1, Value::MISSING);
            }
            self.dense[place] = value;
        } else if self.sparse.insert(number, value).is_none() {
            grown = 32;
        }
        grown + self.dense.capacity() as u64 * 8 - before
    }

    pub fn next(&self) -> u64 {
        self.count
    }

    #[inline]
    pub fn get(&self, number: u64) -> Option<Value> {
        match self.dense.get(number as usize) {
            Some(value) if *value != Value::MISSING => Some(*value),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&number).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absurd_number_costs_one_entry() {
        let mut memo = Memo::default();
        let value = |number: i64| Value::int(number).unwrap();
        for (number, of) in [(0, 1), (1, 2), (u64::MAX, 3), (1 << 40, 4)] {
            memo.put(number, value(of));
        }
        let got = [0, 1, u64::MAX, 1 << 40].map(|number| memo.get(number).unwrap());
        assert_eq!(got, [1, 2, 3, 4].map(value));
        assert!(memo.get(7).is_none() && memo.dense.len() < 2000);
    }
}
