//! The functions of one file by address. Names stay in the file, which is mapped: a table of half a million takes 6 MB.

use object::elf::{FileHeader64, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, elf};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::{CStr, CString};

pub(super) struct Symbols {
    /// By where they start; of several that start there, the longest.
    all: Vec<Function>,
    /// Where the names lie in the file.
    names: std::ops::Range<usize>,
    /// Names of functions that are chosen when the library is loaded: its table has only what chooses them.
    chosen: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Function {
    start: u32,
    length: u32,
    name: u32,
}

/// Names of templates go into the hundreds of kilobytes, which nobody reads and which take long to make readable.
const LONGEST_NAME: usize = 8192;
/// A function of hand-written assembly may not say how long it is. It goes up to the next, but not further than this.
const LONGEST_UNKNOWN: u32 = 64 << 10;
/// The C library has about a hundred.
const MOST_CHOSEN: usize = 1000;

impl Symbols {
    /// `may_read` is asked whether there is room for so many bytes. None: there is not, or there are no functions.
    pub fn read(data: &[u8], may_read: impl FnOnce(usize) -> bool) -> Option<Symbols> {
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let table = |kind| sections.symbols(endian, data, kind).ok().filter(|table| !table.is_empty());
        // The whole table where it was not stripped, else what other files may call.
        let table = table(SHT_SYMTAB).or_else(|| table(SHT_DYNSYM))?;
        let (from, length) = sections.section(table.string_section()).ok()?.file_range(endian)?;
        let from = usize::try_from(from).ok()?;
        let names = from..from.checked_add(usize::try_from(length).ok()?)?;
        data.get(names.clone())?;
        let functions = || {
            table.iter().filter_map(|symbol| {
                let is_function = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC) && !symbol.is_undefined(endian);
                // Files of code of more than 4 GB have none of it beyond that.
                let start = u32::try_from(symbol.st_value(endian)).ok().filter(|start| *start != 0 && is_function)?;
                let length = u32::try_from(symbol.st_size(endian)).ok()?;
                Some(Function { start, length, name: symbol.st_name(endian) })
            })
        };
        let is_chosen =
            |symbol: &&elf::Sym64<Endianness>| symbol.st_type() == STT_GNU_IFUNC && !symbol.is_undefined(endian);
        let chosen = table.iter().filter(is_chosen).take(MOST_CHOSEN).map(|symbol| symbol.st_name(endian)).collect();
        let count = functions().count();
        if count == 0 || !may_read(count * size_of::<Function>()) {
            return None;
        }
        let mut all = Vec::with_capacity(count);
        all.extend(functions());
        all.sort_unstable_by_key(|one| (one.start, std::cmp::Reverse(one.length), one.name));
        all.dedup_by_key(|one| one.start);
        Some(Symbols { all, names, chosen })
    }

    /// Adds the functions that were chosen: `address` says where one lies, `lengths` how long those are that begin at these addresses.
    pub fn choose(
        &mut self,
        data: &[u8],
        address: impl Fn(&CStr) -> Option<u64>,
        lengths: impl FnOnce(HashMap<u64, u64>) -> HashMap<u64, u64>,
    ) {
        let name = |name: u32| self.text(data, name).and_then(|text| CString::new(text).ok());
        let mut named: HashMap<u64, (CString, u32)> = HashMap::new();
        for one in &self.chosen {
            let Some((text, at)) = name(*one).and_then(|text| Some((text.clone(), address(&text)?))) else { continue };
            // `bcmp` and `memcmp` are one function: the longer name says more.
            let rank = |text: &CString| (text.as_bytes().len(), Reverse(text.clone()));
            if named.get(&at).is_none_or(|(known, _)| rank(&text) > rank(known)) {
                named.insert(at, (text, *one));
            }
        }
        if named.is_empty() {
            return;
        }
        for (at, length) in lengths(named.keys().map(|at| (*at, 0)).collect()) {
            let name = named.get(&at).map(|(_, name)| *name);
            if let (Some(name), Ok(start), Ok(length)) = (name, u32::try_from(at), u32::try_from(length))
                && let Err(place) = self.all.binary_search_by_key(&start, |one| one.start)
            {
                self.all.insert(place, Function { start, length, name });
            }
        }
    }

    pub fn at<'data>(&self, data: &'data [u8], address: u64) -> Option<&'data str> {
        let address = u32::try_from(address).ok()?;
        let after = self.all.partition_point(|one| one.start <= address);
        let found = self.all.get(after.checked_sub(1)?)?;
        let length = match found.length {
            0 => LONGEST_UNKNOWN,
            length => length,
        };
        if address - found.start >= length {
            return None;
        }
        self.text(data, found.name)
    }

    fn text<'data>(&self, data: &'data [u8], name: u32) -> Option<&'data str> {
        let names = data.get(self.names.clone())?;
        let name = names.get(name as usize..)?;
        let end = name.iter().take(LONGEST_NAME).position(|byte| *byte == 0)?;
        std::str::from_utf8(&name[..end]).ok().filter(|name| !name.is_empty())
    }
}
