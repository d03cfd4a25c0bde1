//! A writer killed with SIGKILL at random moments, thousands of times, while it writes and while it moves on to larger rings:
//! every record that was published reads back, none is torn, and none is there twice. What it left is read from the file, as a
//! recovery would.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace::event::{Event, NameId};
use trace::ring::Reader;
use trace::segment::{Identity, Segment, SegmentReader};

const KILLS: usize = 3000;
/// Rings of 64, 256, 1024 and 2048 records fit into it; then the oldest are overwritten.
const SEGMENT: usize = 256 << 10;

/// A record whose every field follows from its number, so that a torn one cannot look whole.
fn record(number: u64) -> Event {
    Event {
        time: number,
        value: !number,
        thread: (number as u32) ^ 0x5555_5555,
        name: NameId((number as u32).wrapping_mul(2_654_435_761)),
        kind: number as u16,
        flags: !(number as u16),
        extra: number as u32,
    }
}

/// Writes until killed, and says after each publication how far it got.
fn write_for_ever(folder: &Path, run: u64, said: &AtomicU64) -> ! {
    let who = Identity { pid: 1, start_ticks: run, ..Identity::default() };
    if let Ok(segment) = Segment::create(folder, SEGMENT, &who)
        && let Some(mut ring) = segment.claim(1)
    {
        for number in 0.. {
            ring.push(record(number).to_words());
            said.store(number + 1, Ordering::Release);
        }
    }
    // SAFETY: leaves without running anything that belongs to the parent.
    unsafe { libc::_exit(1) }
}

#[test]
fn a_killed_writer_leaves_every_published_record() {
    let folder = std::env::temp_dir().join(format!("inferscope-kill-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // SAFETY: a fresh anonymous mapping, shared with the children.
    let shared = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), 4096, access, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
    };
    assert_ne!(shared, libc::MAP_FAILED);
    // SAFETY: mapped above, zero, and never unmapped.
    let said: &'static AtomicU64 = unsafe { &*shared.cast() };
    let (mut with_records, mut grown, mut wrapped, mut seed) = (0, 0, 0, 0x2545_F491_4F6C_DD1Du64);
    for run in 0..KILLS as u64 {
        said.store(0, Ordering::Release);
        // SAFETY: the child only writes to its own segment and is killed or exits there.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork failed");
        if child == 0 {
            write_for_ever(&folder, run, said);
        }
        // Half are killed near the start (creation included), half anywhere in the first 8000 records: rings that grow, then laps.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = seed >> 33;
        if run % 2 == 0 {
            let until = Instant::now() + Duration::from_nanos(random % 600_000);
            while Instant::now() < until {}
        } else {
            let deadline = Instant::now() + Duration::from_secs(10);
            while said.load(Ordering::Acquire) < random % 8000 && Instant::now() < deadline {}
        }
        let mut status = 0;
        // SAFETY: our own child, reaped right here.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &mut status, 0);
        }
        assert!(libc::WIFSIGNALED(status), "the writer ended by itself");
        let published = said.load(Ordering::Acquire);
        let path = folder.join(format!("1-{run}.segment"));
        let Ok(bytes) = std::fs::read(&path) else {
            assert_eq!(published, 0, "records were published but the segment is not there");
            continue;
        };
        std::fs::remove_file(&path).unwrap();
        let reader = SegmentReader::load(&bytes).expect("a segment with its final name is readable");
        let (mut total, mut lost_before) = (0, 0);
        for ring in (0..reader.rings()).filter_map(|number| reader.ring(number)) {
            let mut words = Vec::new();
            let lost = Reader::new(ring.head, ring.slots, 0).drain(&mut words, usize::MAX);
            // Rings were filled one after the other, and only the last one overwrites.
            for (number, record_words) in (total + lost..).zip(&words) {
                assert_eq!(Event::from_words(*record_words), record(number), "torn or misplaced in run {run}");
            }
            assert_eq!(lost_before, 0, "a ring was overwritten and then left");
            lost_before = lost;
            total += lost + words.len() as u64;
        }
        // The kill may fall between publishing and saying so, never the other way round.
        assert!(total == published || total == published + 1, "{total} read, {published} published");
        with_records += usize::from(total > 0);
        grown += usize::from(reader.rings() > 1);
        wrapped += usize::from(lost_before > 0);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(with_records > KILLS / 3 && grown > KILLS / 20, "{with_records} with records, {grown} grown");
    assert!(wrapped > KILLS / 20, "{wrapped} wrapped");
}
