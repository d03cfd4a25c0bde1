//! A place for one case after the other: a victim's files, a home, a folder for temporary files, one for output, and a trace, all of
//! which are looked at before and after.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use timeline::fixture::{Fixture, TemporaryFolder};
use trace::segment::{Identity, SUFFIX};

/// No process has it: it is larger than the kernel gives out.
const DEAD: u32 = 1 << 30;

pub struct Place {
    root: TemporaryFolder,
    /// In the names of the folders in shared memory that belong to this place.
    pub mark: String,
}

impl Place {
    pub fn new() -> Place {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let place =
            Place { root: TemporaryFolder::new("hostile"), mark: format!("hostile{}x{number}", std::process::id()) };
        for folder in ["home", "tmp", "out", "victim/rescued", "victim/segments", "good"] {
            fs::create_dir_all(place.at(folder)).unwrap();
        }
        // Names that a recovery knows, with what must not be lost.
        for name in [
            "precious",
            "journal",
            "trace",
            "trace-id",
            "stop",
            "manifest.json",
            "recorder.lock",
            "slices.000001-000001.parquet",
            "slices.000001-000001.parquet.tmp",
            "rescued/manifest.json",
            "rescued/names.000001-000001.parquet",
        ] {
            fs::write(place.at("victim").join(name), format!("precious {name}")).unwrap();
        }
        fs::write(place.at("victim").join(segment_name()), segment()).unwrap();
        fs::write(place.at("home/.bashrc"), "precious").unwrap();
        fs::write(place.shared_victim(), "precious").unwrap();
        fixture().write(&place.at("good"));
        place
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn trace(&self) -> PathBuf {
        self.at("trace")
    }

    /// Where a recording of this user would have its segments.
    pub fn shared_folder(&self) -> PathBuf {
        // SAFETY: always succeeds.
        let user = unsafe { libc::geteuid() };
        // As of this process, which lives: a recording that begins elsewhere meanwhile must not take it for stale.
        PathBuf::from(format!("/dev/shm/inferscope-{user}-{}-{}", std::process::id(), self.mark))
    }

    /// A file in shared memory, which cannot have a second name elsewhere.
    pub fn shared_victim(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/victim-{}", self.mark))
    }

    /// A new trace in the place of the last case's.
    pub fn clear(&self) {
        let _ = fs::remove_dir_all(self.shared_folder());
        for folder in ["trace", "out", "tmp"] {
            let _ = fs::remove_file(self.at(folder));
            let _ = fs::remove_dir_all(self.at(folder));
        }
        fs::create_dir(self.at("out")).unwrap();
        fs::create_dir(self.at("tmp")).unwrap();
    }

    /// A trace that is complete.
    pub fn finished(&self) {
        fixture().write(&self.trace());
        self.make_private();
    }

    /// A trace whose recorder was killed; its segments are in its own folder, or in shared memory.
    pub fn unfinished(&self, on_disk: bool) {
        fixture().write(&self.trace());
        let id = "0123456789abcdef0123456789abcdef";
        let segments = if on_disk { self.trace().join("segments") } else { self.shared_folder() };
        fs::create_dir(&segments).unwrap();
        fs::write(segments.join("trace"), self.trace().to_string_lossy().as_bytes()).unwrap();
        fs::write(segments.join("trace-id"), id).unwrap();
        fs::write(segments.join("journal"), b"isj1").unwrap();
        fs::write(segments.join(segment_name()), segment()).unwrap();
        fs::set_permissions(&segments, PermissionsExt::from_mode(0o700)).unwrap();
        let mut manifest = recorder::manifest::Manifest::new(
            "serve.py".into(),
            &recorder::Settings::default(),
            trace::Source::Monotonic,
        );
        manifest.id = Some(id.into());
        manifest.segments = Some(segments.to_string_lossy().into_owned());
        manifest.write(&self.trace()).unwrap();
        self.make_private();
    }

    fn make_private(&self) {
        fs::set_permissions(self.trace(), PermissionsExt::from_mode(0o700)).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.shared_victim());
        let _ = fs::remove_dir_all(self.shared_folder());
    }
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| Fixture::parse(crate::support::TRACE))
}

pub fn segment_name() -> String {
    format!("{DEAD}-7{SUFFIX}")
}

/// The segment of a process that is gone.
fn segment() -> &'static [u8] {
    static SEGMENT: OnceLock<Vec<u8>> = OnceLock::new();
    SEGMENT.get_or_init(|| {
        let folder = TemporaryFolder::new("hostile-segment");
        let who = Identity { pid: DEAD, parent: 1, start_ticks: 7, program: "gone.py".into(), ..Identity::default() };
        trace::Segment::create_with(folder.path(), 1 << 17, &who, trace::Source::Monotonic).expect("a segment");
        let files = crate::support::files(Path::new(folder.path()));
        fs::read(&files[0]).expect("the segment's file")
    })
}
