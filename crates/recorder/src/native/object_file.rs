//! What an ELF file of code says of itself: where it wants to be loaded, how to walk its stacks, and the names of its functions.
//! Files lie and are cut off: everything that is read is checked by its reader, and what is not there is none.

use super::chosen;
use super::mapping::{Mapping, Part};
use super::symbols::Symbols;
use framehop::ModuleSectionInfo;
use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, elf};
use std::ffi::CStr;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

type Header = FileHeader64<Endianness>;

pub(super) struct ObjectFile {
    pub mapping: Arc<Mapping>,
    segments: Vec<Segment>,
    /// Made when the first of its functions is asked for. None: too many of them.
    symbols: OnceLock<Option<Symbols>>,
}

/// A piece of the file that is loaded as code.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Segment {
    offset: u64,
    length: u64,
    address: u64,
}

/// An index of call frames that is missing would have to be made: of larger tables it takes too long.
const MOST_UNINDEXED: usize = 4 << 20;
/// Of a file: the most that are real have a few dozen.
const MOST_SEGMENTS: usize = 64;

impl ObjectFile {
    /// None: it is no ELF file of 64 bits with code in it.
    pub fn of(mapping: Arc<Mapping>) -> Option<ObjectFile> {
        let data = mapping.bytes();
        let header = Header::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let loaded = header.program_headers(endian, data).ok()?.iter();
        let loaded = loaded.filter(|one| one.p_type(endian) == PT_LOAD && one.p_flags(endian) & PF_X == PF_X);
        let segment = |one: &elf::ProgramHeader64<Endianness>| Segment {
            offset: one.p_offset(endian),
            length: one.p_filesz(endian),
            address: one.p_vaddr(endian),
        };
        let segments: Vec<Segment> = loaded.take(MOST_SEGMENTS).map(segment).collect();
        (!segments.is_empty()).then(|| ObjectFile { mapping, segments, symbols: OnceLock::new() })
    }

    /// What is to be added to an address of the file where `offset` of it is mapped at `start`. None: no code lies there.
    pub fn bias(&self, start: u64, offset: u64, length: u64) -> Option<u64> {
        let end = offset.checked_add(length)?;
        let overlaps = |one: &&Segment| one.offset < end && offset < one.offset.saturating_add(one.length);
        let segment = self.segments.iter().find(overlaps)?;
        Some(start.wrapping_sub(offset).wrapping_sub(segment.address.wrapping_sub(segment.offset)))
    }

    fn section(&self, name: &[u8]) -> Option<(Range<u64>, Part)> {
        let data = self.mapping.bytes();
        let header = Header::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let (_, found) = header.sections(endian, data).ok()?.section_by_name(endian, name)?;
        let (offset, size) = found.file_range(endian)?;
        let address = found.sh_addr(endian);
        Some((address..address.checked_add(size)?, Part::of(&self.mapping, offset, size)?))
    }

    /// The name of the function at an address of the file, as the compiler wrote it.
    pub fn function(&self, address: u64, may_read: impl FnOnce(usize) -> bool) -> Option<&str> {
        let symbols = self.symbols.get_or_init(|| {
            let data = self.mapping.bytes();
            let mut symbols = Symbols::read(data, may_read);
            if let (Some(symbols), Some((loaded, frames))) = (&mut symbols, self.section(b".eh_frame")) {
                let address = |name: &CStr| chosen::address(name, self.mapping.identity);
                symbols.choose(data, address, |starts| chosen::lengths(&frames, loaded.start, starts));
            }
            self.mapping.release();
            symbols
        });
        symbols.as_ref()?.at(self.mapping.bytes(), address)
    }
}

/// How to walk its stacks.
impl ModuleSectionInfo<Part> for &ObjectFile {
    fn base_svma(&self) -> u64 {
        0
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        self.section(name).map(|(range, _)| range)
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Part> {
        let (_, part) = self.section(name)?;
        let is_made = name == b".eh_frame" && self.section(b".eh_frame_hdr").is_none();
        (!is_made || part.len() <= MOST_UNINDEXED).then_some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::path::Path;

    fn open(path: &Path) -> Option<ObjectFile> {
        ObjectFile::of(Arc::new(Mapping::of(File::open(path).ok()?).ok()?))
    }

    #[test]
    fn this_program_has_code_frames_and_functions() {
        let own = open(Path::new("/proc/self/exe")).unwrap();
        let sections = [&b".eh_frame"[..], b".eh_frame_hdr", b".text"].map(|name| (&own).section_data(name).is_some());
        assert_eq!(sections, [true; 3]);
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let exe = fs::read_link("/proc/self/exe").unwrap();
        let line = maps.lines().find(|line| line.contains("r-xp") && line.ends_with(exe.to_str().unwrap())).unwrap();
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let offset = number(rest.split(' ').nth(1).unwrap());
        let bias = own.bias(number(start), offset, number(end) - number(start)).unwrap();
        let here = this_program_has_code_frames_and_functions as fn() as usize as u64;
        let name = own.function(here - bias, |_| true).unwrap();
        assert!(name.contains("this_program_has_code_frames_and_functions"), "{name}");
        assert_eq!(own.function(u64::MAX, |_| true), None);
    }

    /// The C library of this program is the one that is asked about, so what it chose is known, and what lies beside it stays unnamed.
    #[test]
    fn functions_that_were_chosen_when_the_library_was_loaded_have_names() {
        let path = fs::read_to_string("/proc/self/maps").unwrap();
        let path =
            path.lines().find(|line| line.contains("/libc.so.6")).unwrap().rsplit_once(' ').unwrap().1.to_owned();
        let library = open(Path::new(&path)).unwrap();
        let at = |name: &CStr| chosen::address(name, library.mapping.identity);
        let memcmp = at(c"memcmp").unwrap();
        assert_eq!(library.function(memcmp, |_| true), Some("memcmp"));
        assert_eq!(library.function(memcmp + 16, |_| true), Some("memcmp"));
        assert_eq!(at(c"memcmp"), at(c"bcmp"), "one function, two names");
        let (loaded, frames) = library.section(b".eh_frame").unwrap();
        let lengths = chosen::lengths(&frames, loaded.start, [(memcmp, 0)].into());
        let after = memcmp + lengths[&memcmp];
        assert_ne!(library.function(after, |_| true), Some("memcmp"));
        let other = open(Path::new("/bin/sh")).unwrap();
        assert_eq!(chosen::address(c"memcmp", other.mapping.identity), None, "a file that is not loaded here");
    }

    /// Cut off anywhere, or with any byte changed near its start, it is read without harm.
    #[test]
    fn a_file_that_is_cut_off_or_damaged_does_no_harm() {
        let folder = std::env::temp_dir().join(format!("inferscope-object-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut whole = fs::read("/bin/sh").unwrap();
        whole.truncate(200_000);
        let file = folder.join("cut");
        let mut tried = 0;
        for length in (0..2000).step_by(61).chain((2000..whole.len()).step_by(9973)) {
            fs::write(&file, &whole[..length]).unwrap();
            tried += usize::from(look(&file));
        }
        for at in 0..400 {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            fs::write(&file, &damaged).unwrap();
            tried += usize::from(look(&file));
        }
        assert!(tried > 100, "only {tried} of them were taken for a file of code");
        fs::remove_dir_all(&folder).unwrap();
    }

    fn look(path: &Path) -> bool {
        let Some(file) = open(path) else { return false };
        drop(framehop::Module::new(String::new(), 0..1 << 20, 0, &file));
        for address in (0..200_000).step_by(4999) {
            let _ = file.function(address, |_| true);
        }
        let _ = file.bias(0x7f00_0000_0000, 0, 1 << 20);
        true
    }

    #[test]
    fn what_is_no_file_of_code_is_none() {
        assert!(open(Path::new("/proc/self/status")).is_none());
        assert!(open(Path::new("/etc/passwd")).is_none());
        assert!(open(Path::new("/")).is_none());
    }
}
