//! Activity buffers that were kept on a real GPU, a stand-in for CUPTI's walk through them, and a target that remembers what
//! the decoder says. Pointers in such buffers are dead: the target never follows one.

use super::super::super::decode::{Decoder, Target, Trouble};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::CStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use trace::NameId;
use trace::device::{Numbers, Work, payload};
use trace::device_facts::DeviceFacts;
use trace::event::{EVENT_WORDS, Event, Kind};
use trace::gathered::TextGatherer;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

pub fn trace(name: &str) -> timeline::Timeline {
    timeline::open(&tests().join("traces").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The buffers of a program: each stands behind its length.
pub fn buffers(name: &str) -> Vec<Vec<u8>> {
    let path = tests().join("traces/buffers").join(format!("{name}.buffers.gz"));
    let packed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("a gzip file");
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let (buffer, after) = after.split_at(u64::from_le_bytes(*length) as usize);
        found.push(buffer.to_vec());
        rest = after;
    }
    assert!(rest.is_empty(), "{name} ends in the middle of a length");
    found
}

/// Bytes of a record by its kind, as the headers of CUDA 13.0 say.
fn sizes() -> &'static HashMap<u32, usize> {
    static SIZES: OnceLock<HashMap<u32, usize>> = OnceLock::new();
    SIZES.get_or_init(|| {
        let text = fs::read_to_string(tests().join("cupti_headers/expected.json")).expect("expected.json");
        let said: Value = serde_json::from_str(&text).expect("JSON");
        let kinds = [
            ("CONCURRENT_KERNEL", "Kernel"),
            ("MEMCPY", "Memcpy"),
            ("MEMCPY2", "MemcpyPeer"),
            ("MEMSET", "Memset"),
            ("OVERHEAD", "Overhead"),
            ("UNIFIED_MEMORY_COUNTER", "UnifiedMemory"),
            ("DEVICE", "Device"),
            ("CONTEXT", "Context"),
        ];
        let number = |value: &Value| value.as_u64().expect("a number");
        let of = |(kind, record): (&str, &str)| {
            let kind = &said["enums"]["CUpti_ActivityKind"][format!("CUPTI_ACTIVITY_KIND_{kind}")];
            (number(kind) as u32, number(&said["records"][record]["structs"]["13.0"][1]) as usize)
        };
        kinds.into_iter().map(of).collect()
    })
}

/// As `cuptiActivityGetNextRecord`, but careless: it gives records that the buffer cuts off, and goes on after kinds that
/// nobody knows.
unsafe extern "C" fn next_record(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> u32 {
    const END_OF_BUFFER: u32 = 12;
    // SAFETY: the decoder gives its buffer, and null or the last record, of which at least the kind lies in the buffer.
    unsafe {
        let at = if (*record).is_null() {
            0
        } else {
            let kind = (*record).cast::<u32>().read_unaligned();
            (*record as usize - buffer as usize) + sizes().get(&kind).copied().unwrap_or(8)
        };
        if at + 4 > valid {
            return END_OF_BUFFER;
        }
        *record = buffer.add(at);
    }
    0
}

/// Memory that ends where nothing may be read: one byte too many is a fault.
pub struct Fenced {
    base: *mut u8,
    mapped: usize,
    end: *mut u8,
}

impl Fenced {
    const PAGE: usize = 4096;

    pub fn new(most: usize) -> Fenced {
        let mapped = most.next_multiple_of(Fenced::PAGE) + Fenced::PAGE;
        let (read, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping of our own, whose last page is taken away.
        unsafe {
            let base = libc::mmap(std::ptr::null_mut(), mapped, read, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            let end = base.cast::<u8>().add(mapped - Fenced::PAGE);
            assert_eq!(libc::mprotect(end.cast(), Fenced::PAGE, libc::PROT_NONE), 0);
            Fenced { base: base.cast(), mapped, end }
        }
    }

    /// Decodes these bytes where they end at the fence.
    pub fn decode(&self, decoder: &mut Decoder, told: &mut Told, bytes: &[u8]) {
        assert!(bytes.len() <= self.mapped - Fenced::PAGE);
        // SAFETY: so many bytes lie before the fence, and nobody else has them.
        unsafe {
            let start = self.end.sub(bytes.len());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            decoder.take_all(told, next_record, start, bytes.len());
        }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.base.cast(), self.mapped) };
    }
}

/// What the decoder said.
#[derive(Default)]
pub struct Told {
    pub records: Vec<[u64; EVENT_WORDS]>,
    pub names: Mutex<Vec<String>>,
    pub troubles: HashMap<Trouble, u64>,
}

impl Told {
    pub fn of(name: &str) -> Told {
        let (mut told, mut decoder) = (Told::default(), Decoder::default());
        for buffer in buffers(name) {
            Fenced::new(buffer.len()).decode(&mut decoder, &mut told, &buffer);
        }
        told
    }

    /// Every piece of work in the order in which it was said, by the same code that the recorder reads it with.
    pub fn work(&self) -> Vec<(Kind, Work)> {
        let (mut numbers, mut found): (Vec<Numbers>, _) = (Vec::new(), Vec::new());
        for words in &self.records {
            let event = Event::from_words(*words);
            match Kind::from_u16(event.kind).expect("a kind of ours") {
                Kind::Numbers => numbers.push(payload(*words)),
                kind @ (Kind::Kernel | Kind::Memcpy | Kind::Memset | Kind::Migration) => {
                    found.push((kind, Work::from_records(&event, &numbers).expect("its numbers")));
                    numbers.clear();
                }
                Kind::Text => {}
                Kind::DeviceFacts => numbers.clear(),
                _ => assert!(numbers.is_empty()),
            }
        }
        found
    }

    pub fn events(&self, kind: Kind) -> Vec<Event> {
        self.records.iter().map(|words| Event::from_words(*words)).filter(|event| event.kind == kind as u16).collect()
    }

    /// What was told of devices.
    pub fn devices(&self) -> Vec<DeviceFacts> {
        let (mut gatherer, mut found) = (TextGatherer::default(), Vec::new());
        for words in &self.records {
            let event = Event::from_words(*words);
            if matches!(Kind::from_u16(event.kind), Some(Kind::Text | Kind::Numbers)) {
                gatherer.add(*words);
                continue;
            }
            let gathered = gatherer.take(&event);
            if event.kind == Kind::DeviceFacts as u16 {
                found.extend(DeviceFacts::from_records(&event, gathered.name.clone(), gathered.numbers()));
            }
        }
        found
    }
}

impl Target for Told {
    fn push(&mut self, words: [u64; EVENT_WORDS]) {
        self.records.push(words);
    }

    fn thread(&self) -> u32 {
        1
    }

    fn intern(&self, text: &str) -> NameId {
        let mut names = self.names.lock().unwrap();
        names.push(text.to_owned());
        NameId(names.len() as u32)
    }

    fn intern_message(&self, text: &str) -> NameId {
        self.intern(text)
    }

    unsafe fn text(&self, _: usize) -> Option<&CStr> {
        None
    }

    fn time(&self, theirs: u64) -> Result<u64, Trouble> {
        Ok(theirs)
    }

    fn count(&mut self, trouble: Trouble) {
        *self.troubles.entry(trouble).or_default() += 1;
    }
}
