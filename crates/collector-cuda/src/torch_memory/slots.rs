//! Finds the slots through which a loaded library calls a function, by the function's name: in the tables that the loader itself goes by.
//! What is in a slot, and what to put there, is left to `hooks`.

use std::ffi::{CStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use trace::codes::{Reason, ReasonCode};

#[cfg(target_arch = "x86_64")]
const CALL_SLOTS: [u32; 2] = [7, 6]; // R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT
#[cfg(target_arch = "aarch64")]
const CALL_SLOTS: [u32; 2] = [1026, 1025]; // R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALL_SLOTS: [u32; 2] = [0, 0];

const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_STRSZ: i64 = 10;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
const DT_PLTRELSZ: i64 = 2;
/// Entries of a table of relocations: `libc10.so` has some 2,000.
const MOST_RELOCATIONS: usize = 1 << 20;

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// One slot, and what is in it while it is ours.
pub struct Slot {
    pub name: &'static str,
    pub at: usize,
    /// The function itself.
    pub original: usize,
    pub ours: usize,
}

impl Slot {
    /// The slot as the loader sees it: eight bytes that calls go through.
    fn cell(&self) -> &'static AtomicUsize {
        // SAFETY: a slot of a library that PyTorch never unloads, aligned as the loader needs it.
        unsafe { &*(self.at as *const AtomicUsize) }
    }

    pub fn is_ours(&self) -> bool {
        self.ours == 0 || self.cell().load(Ordering::Acquire) == self.ours
    }

    /// Puts our function in. The error says why it cannot be.
    pub fn replace(&mut self, ours: usize) -> Result<(), Reason> {
        // SAFETY: plain system calls about the page that the slot is in.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let start = (self.at & !(page - 1)) as *mut c_void;
            // Outside of what the loader protects it is writable already, and stays so.
            if libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                let error = std::io::Error::last_os_error();
                return Err(Reason::new(ReasonCode::SlotReadOnly).with(self.name).with(error));
            }
        }
        self.ours = ours;
        self.cell().store(ours, Ordering::Release);
        Ok(())
    }
}

/// A loaded library, and the functions that are looked for in it.
pub struct Loaded {
    path: Vec<u8>,
    base: usize,
    /// Where its segments lie.
    ranges: Vec<(usize, usize)>,
    dynamic: usize,
    protected: Vec<(usize, usize)>,
    names: Names,
}

/// The functions that are looked for.
#[derive(Clone, Copy)]
struct Names {
    needed: &'static [&'static str],
    /// Nobody misses these.
    others: &'static [&'static str],
}

struct Search {
    file: &'static str,
    names: Names,
    found: Vec<Loaded>,
}

/// Every copy of a library that is loaded.
pub fn find(file: &'static str, needed: &'static [&'static str], others: &'static [&'static str]) -> Vec<Loaded> {
    let mut search = Search { file, names: Names { needed, others }, found: Vec::new() };
    // SAFETY: the loader calls it back for each library, with this very search, before it returns.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: what `find` gave, and what the loader says of one library.
    let (search, info) = unsafe { (&mut *search.cast::<Search>(), &*info) };
    if info.dlpi_name.is_null() || info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's own string.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    let name = Path::new(std::ffi::OsStr::from_bytes(path)).file_name();
    if name.is_none_or(|name| name.as_bytes() != search.file.as_bytes()) {
        return 0;
    }
    // SAFETY: so many headers, as the loader says.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    let range = |header: &libc::Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        (start, start.wrapping_add(header.p_memsz as usize))
    };
    let of = |kind: u32| headers.iter().filter(move |header| header.p_type == kind).map(range);
    let Some((dynamic, _)) = of(libc::PT_DYNAMIC).next() else { return 0 };
    let (ranges, protected) = (of(libc::PT_LOAD).collect(), of(libc::PT_GNU_RELRO).collect());
    search.found.push(Loaded { path: path.to_vec(), base, ranges, dynamic, protected, names: search.names });
    0
}

impl Loaded {
    fn has(&self, address: usize) -> bool {
        self.ranges.iter().any(|(start, end)| (*start..*end).contains(&address))
    }

    /// Its slots of the functions that are wanted. `refused` says which cannot be used, and why.
    pub fn slots(self, refused: &mut Option<Reason>) -> Vec<Slot> {
        let (mut slots, file) = (Vec::new(), String::from_utf8_lossy(&self.path).into_owned());
        let Some(tables) = self.tables() else {
            *refused = Some(Reason::new(ReasonCode::NoCallTable).with(file));
            return slots;
        };
        for name in self.names.needed.iter().chain(self.names.others) {
            let before = slots.len();
            for at in tables.slots_of(&self, name) {
                if self.protected.iter().any(|(start, end)| (*start..*end).contains(&at)) {
                    *refused = Some(Reason::new(ReasonCode::CallTableReadOnly).with(&file));
                    continue;
                }
                match self.original(at, name) {
                    Some(original) => slots.push(Slot { name, at, original, ours: 0 }),
                    None => *refused = Some(Reason::new(ReasonCode::FunctionNotFound).with(name)),
                }
            }
            if slots.len() == before && refused.is_none() && self.names.needed.contains(name) {
                *refused = Some(Reason::new(ReasonCode::FunctionNotCalled).with(&file).with(name));
            }
        }
        slots
    }

    /// The function that a slot leads to. One that was not called yet leads into its own library, to the loader: the loader would put
    /// the function into the slot, where ours is by then. So the function is looked up as the loader does.
    fn original(&self, at: usize, name: &str) -> Option<usize> {
        // SAFETY: a slot of the library, as its own table says.
        let now = unsafe { (*(at as *const AtomicUsize)).load(Ordering::Acquire) };
        if now != 0 && !self.has(now) {
            return Some(now);
        }
        let (path, name) =
            (std::ffi::CString::new(self.path.as_slice()).ok()?, std::ffi::CString::new(name.as_bytes()).ok()?);
        // SAFETY: strings with a zero at their end; the library is loaded and stays so.
        let found = unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() { return None } else { libc::dlsym(library, name.as_ptr()) }
        };
        (!found.is_null()).then_some(found as usize)
    }

    fn tables(&self) -> Option<Tables> {
        let mut values = [0usize; 32];
        for place in 0..4096usize {
            // SAFETY: the library's own list, which ends with a tag of 0.
            let entry = unsafe { &*(self.dynamic as *const Dynamic).add(place) };
            match usize::try_from(entry.tag) {
                Ok(0) => break,
                Ok(tag) if tag < values.len() => values[tag] = entry.value as usize,
                _ => {}
            }
        }
        // Glibc has made addresses of them, others leave them as they stand in the file.
        let address = |tag: i64| match values[tag as usize] {
            0 => 0,
            value if value >= self.base => value,
            value => self.base + value,
        };
        let count = |tag: i64| (values[tag as usize] / size_of::<Relocation>()).min(MOST_RELOCATIONS);
        let tables = Tables {
            symbols: address(DT_SYMTAB),
            strings: address(DT_STRTAB),
            string_bytes: values[DT_STRSZ as usize],
            relocations: [(address(DT_JMPREL), count(DT_PLTRELSZ)), (address(DT_RELA), count(DT_RELASZ))],
        };
        (self.has(tables.symbols) && self.has(tables.strings)).then_some(tables)
    }
}

/// Where a library's tables lie.
struct Tables {
    symbols: usize,
    strings: usize,
    string_bytes: usize,
    relocations: [(usize, usize); 2],
}

impl Tables {
    fn slots_of(&self, library: &Loaded, name: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for (table, count) in self.relocations.iter().filter(|(table, _)| library.has(*table)) {
            for place in 0..*count {
                // SAFETY: the library's own table, of so many entries.
                let entry = unsafe { &*(*table as *const Relocation).add(place) };
                let at = library.base.wrapping_add(entry.offset as usize);
                if CALL_SLOTS.contains(&(entry.info as u32)) && self.is_named((entry.info >> 32) as usize, name) {
                    found.extend(library.has(at).then_some(at));
                }
            }
        }
        found
    }

    fn is_named(&self, symbol: usize, name: &str) -> bool {
        // SAFETY: a symbol that a relocation of the same library names.
        let at = unsafe { (*(self.symbols as *const libc::Elf64_Sym).add(symbol)).st_name } as usize;
        if at + name.len() >= self.string_bytes {
            return false;
        }
        // SAFETY: inside the library's table of strings, with the zero.
        let text = unsafe { std::slice::from_raw_parts((self.strings + at) as *const u8, name.len() + 1) };
        text[..name.len()] == *name.as_bytes() && text[name.len()] == 0
    }
}
