//! The interpreter's list of its threads, read without their stacks: which there are, and which holds the GIL. py-spy reads
//! the same list, but only together with every stack, and no more than 4096 threads.

use super::remote_memory::{read_memory, read_places, word};
use std::collections::HashMap;
use std::io;

/// Where CPython keeps what we need: the same numbers that py-spy has for a version, compared with py-spy's result before
/// they are believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// In the interpreter: the first thread of the list.
    head: usize,
    /// In a thread: what `threading.get_ident()` says, and the kernel's number (from Python 3.11 on).
    python_id: usize,
    os_id: Option<usize>,
    /// Python 3.12 and later have a lock with its last holder; before, there is a pointer to the thread that runs.
    gil_is_lock: bool,
}

// The first three words of a thread are the same in all versions.
const NEXT: usize = 8;
const INTERPRETER: usize = 16;
// Of the lock.
const LAST_HOLDER: usize = 8;
const LOCKED: usize = 16;
const GIL_BYTES: usize = 24;

/// More than any process has. A list that is longer is no list, or runs in a circle.
const MOST_THREADS: usize = 100_000;

impl Layout {
    pub fn of(major: u64, minor: u64) -> Option<Layout> {
        let (head, python_id, os_id) = match (major, minor) {
            (3, 10) => (8, 176, None),
            (3, 11) => (16, 152, Some(160)),
            (3, 12) => (72, 136, Some(144)),
            (3, 13 | 14) => (7344, 152, Some(160)),
            _ => return None,
        };
        Some(Layout { head, python_id, os_id, gil_is_lock: minor >= 12 })
    }

    /// The bytes of a thread that we read.
    fn bytes(&self) -> usize {
        self.os_id.unwrap_or(self.python_id) + size_of::<usize>()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Thread {
    /// Of its `PyThreadState`.
    pub address: usize,
    pub python_id: u64,
    pub os_id: Option<i32>,
}

/// Where py-spy has to be pointed at to read one thread only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InterpreterAddresses {
    pub interpreter: usize,
    pub gil: usize,
}

pub(super) struct ThreadList {
    pid: u32,
    layout: Layout,
    interpreter: usize,
    gil: usize,
    threads: Vec<Thread>,
    gil_holder: usize,
    head: usize,
    after_head: usize,
    buffer: Vec<u8>,
}

impl ThreadList {
    /// `interpreter` and `gil` are the addresses that py-spy found.
    pub fn new(pid: u32, layout: Layout, interpreter: usize, gil: usize) -> ThreadList {
        let (threads, buffer) = (Vec::new(), Vec::new());
        ThreadList { pid, layout, interpreter, gil, threads, gil_holder: 0, head: 0, after_head: 0, buffer }
    }

    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    pub fn owns_gil(&self, thread: &Thread) -> bool {
        thread.address == self.gil_holder
    }

    /// Reads who holds the GIL and which thread is the first. Says whether another is: new ones come to the front.
    pub fn read_head(&mut self) -> io::Result<bool> {
        let mut gil = [0; GIL_BYTES];
        if self.gil != 0 {
            let length = if self.layout.gil_is_lock { GIL_BYTES } else { size_of::<usize>() };
            read_memory(self.pid, self.gil, &mut gil[..length])?;
        }
        let is_locked = gil[LOCKED..LOCKED + 4] != [0; 4];
        self.gil_holder = match self.layout.gil_is_lock {
            true if is_locked => word(&gil, LAST_HOLDER),
            true => 0,
            false => word(&gil, 0),
        };
        let mut head = [0; 2 * size_of::<usize>()];
        read_memory(self.pid, self.interpreter + self.layout.head, &mut head)?;
        (self.head, self.after_head) = (word(&head, 0), word(&head, size_of::<usize>()));
        Ok(self.head != self.threads.first().map_or(0, |first| first.address))
    }

    /// Reads the whole list again.
    pub fn read(&mut self) -> io::Result<()> {
        self.read_head()?;
        self.read_known();
        self.threads = self.walk()?;
        Ok(())
    }

    /// Reads the threads of the last time in one call: nearly always they are those of this time.
    fn read_known(&mut self) {
        let addresses: Vec<usize> = self.threads.iter().map(|thread| thread.address).collect();
        self.buffer.resize(addresses.len() * self.layout.bytes(), 0);
        if read_places(self.pid, &addresses, self.layout.bytes(), &mut self.buffer).is_err() {
            // The memory of one that has ended is gone: all are read one by one.
            self.threads.clear();
        }
    }

    fn walk(&self) -> io::Result<Vec<Thread>> {
        let length = self.layout.bytes();
        let mut found = Vec::with_capacity(self.threads.len() + 1);
        let (mut address, mut expected) = (self.head, 0);
        let mut places: Option<HashMap<usize, usize>> = None;
        let mut alone = vec![0; length];
        while address != 0 {
            if found.len() >= MOST_THREADS {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.threads.get(expected).is_none_or(|thread| thread.address != address) {
                let places = places.get_or_insert_with(|| {
                    self.threads.iter().enumerate().map(|(at, thread)| (thread.address, at)).collect()
                });
                expected = places.get(&address).copied().unwrap_or(usize::MAX);
            }
            let bytes = if expected == usize::MAX {
                read_memory(self.pid, address, &mut alone)?;
                &alone[..]
            } else {
                expected += 1;
                &self.buffer[(expected - 1) * length..expected * length]
            };
            if word(bytes, INTERPRETER) != self.interpreter {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let os_id = self.layout.os_id.and_then(|offset| i32::try_from(word(bytes, offset)).ok());
            found.push(Thread { address, python_id: word(bytes, self.layout.python_id) as u64, os_id });
            address = word(bytes, NEXT);
        }
        Ok(found)
    }

    /// Where py-spy finds the thread of this position as the first of a list, and as the holder of the GIL: the word that
    /// points to it stands in for the head of the list, and what is around that word for the GIL. None: not for this one.
    pub fn place(&self, position: usize) -> Option<InterpreterAddresses> {
        let pointer = match position.checked_sub(1) {
            None => self.interpreter + self.layout.head,
            Some(before) => self.threads.get(before)?.address + NEXT,
        };
        let interpreter = pointer.checked_sub(self.layout.head)?;
        if !self.layout.gil_is_lock {
            return Some(InterpreterAddresses { interpreter, gil: pointer });
        }
        // The word after the pointer is taken for whether the lock is held. After `next` it is the interpreter's address.
        let seems_locked = |word: usize| word as u32 != 0;
        let is_fit = seems_locked(if position == 0 { self.after_head } else { self.interpreter });
        if is_fit {
            return Some(InterpreterAddresses { interpreter, gil: pointer - LAST_HOLDER });
        }
        // In Python 3.14 that word is mostly 0 for the first thread. `prev` of the second one points to it as well, and is
        // followed by the address of the third.
        let second =
            self.threads.get(1).filter(|_| self.threads.get(2).is_some_and(|third| seems_locked(third.address)))?;
        Some(InterpreterAddresses { interpreter, gil: second.address.checked_sub(LAST_HOLDER)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads and an interpreter as Python 3.13 has them, in our own memory.
    struct Fake {
        interpreter: Vec<usize>,
        threads: Vec<[usize; 32]>,
    }

    const LAYOUT: Layout = Layout { head: 8, python_id: 152, os_id: Some(160), gil_is_lock: true };

    impl Fake {
        fn new(count: usize) -> Fake {
            let mut fake = Fake { interpreter: vec![0; 8], threads: vec![[0; 32]; count] };
            for at in 0..count {
                (fake.threads[at][19], fake.threads[at][20]) = (1000 + at, 10 + at);
                fake.threads[at][2] = fake.interpreter.as_ptr() as usize;
            }
            fake.chain(&(0..count).collect::<Vec<_>>());
            fake
        }

        fn address(&self, at: usize) -> usize {
            self.threads[at].as_ptr() as usize
        }

        fn chain(&mut self, order: &[usize]) {
            self.interpreter[1] = order.first().map_or(0, |first| self.address(*first));
            for (at, thread) in order.iter().enumerate() {
                self.threads[*thread][1] = order.get(at + 1).map_or(0, |next| self.address(*next));
            }
        }

        /// The lock stands in the words 4 to 6.
        fn list(&self) -> ThreadList {
            let address = self.interpreter.as_ptr() as usize;
            ThreadList::new(std::process::id(), LAYOUT, address, address + 32)
        }
    }

    fn ids(list: &ThreadList) -> Vec<u64> {
        list.threads().iter().map(|thread| thread.python_id).collect()
    }

    #[test]
    fn threads_that_come_and_go_are_seen_and_so_is_the_holder_of_the_gil() {
        let mut fake = Fake::new(5);
        let mut list = fake.list();
        assert!(list.read_head().unwrap());
        list.read().unwrap();
        assert!(!list.read_head().unwrap());
        assert_eq!(ids(&list), [1000, 1001, 1002, 1003, 1004]);
        assert_eq!(list.threads()[4].os_id, Some(14));
        for order in [&[4, 1, 3][..], &[1], &[0, 2, 1, 4], &[]] {
            fake.chain(order);
            assert!(list.read_head().unwrap());
            list.read().unwrap();
            assert_eq!(ids(&list), order.iter().map(|at| 1000 + *at as u64).collect::<Vec<_>>());
        }
        fake.chain(&[2, 3]);
        (fake.interpreter[5], fake.interpreter[6]) = (fake.address(3), 1);
        list.read().unwrap();
        assert_eq!([0, 1].map(|at| list.owns_gil(&list.threads()[at])), [false, true]);
        fake.interpreter[6] = 0;
        list.read().unwrap();
        assert!(!list.owns_gil(&list.threads()[1]));
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        let mut fake = Fake::new(3);
        fake.threads[1][2] += 8;
        assert!(fake.list().read().is_err());
        let mut circle = Fake::new(3);
        circle.threads[2][1] = circle.address(0);
        assert!(circle.list().read().is_err());
        let mut broken = Fake::new(3);
        broken.threads[2][1] = 8;
        assert!(broken.list().read().is_err());
    }

    #[test]
    fn one_thread_stands_where_py_spy_looks_for_the_first_and_for_the_holder() {
        let mut fake = Fake::new(3);
        let mut list = fake.list();
        list.read().unwrap();
        let read = |address: usize| {
            let mut bytes = [0; 8];
            read_memory(std::process::id(), address, &mut bytes).map(|()| word(&bytes, 0)).unwrap()
        };
        // The word after the head is 0, and `prev` of the second thread stands in for it.
        fake.threads[1][0] = fake.address(0);
        for position in 0..3 {
            let place = list.place(position).unwrap();
            assert_eq!(read(place.interpreter + LAYOUT.head), fake.address(position));
            assert_eq!(read(place.gil + LAST_HOLDER), fake.address(position));
            assert_ne!(read(place.gil + LOCKED) as u32, 0);
        }
        fake.chain(&[0, 1]);
        list.read().unwrap();
        assert_eq!(list.place(0), None);
        fake.interpreter[2] = 2;
        list.read().unwrap();
        let place = list.place(0).unwrap();
        assert_eq!((read(place.gil + LAST_HOLDER), read(place.gil + LOCKED)), (fake.address(0), 2));
    }
}
