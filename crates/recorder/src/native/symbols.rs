//! The functions of one file by address. Names stay in the file, which is mapped: a table of half a million takes 6 MB.

use object::Endianness;
use object::elf::{FileHeader64, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC};
use object::read::elf::{FileHeader, SectionHeader, Sym};

pub(super) struct Symbols {
    /// By where they start; of several that start there, the longest.
    all: Vec<Function>,
    /// Where the names lie in the file.
    names: std::ops::Range<usize>,
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
        let count = functions().count();
        if count == 0 || !may_read(count * size_of::<Function>()) {
            return None;
        }
        let mut all = Vec::with_capacity(count);
        all.extend(functions());
        all.sort_unstable_by_key(|one| (one.start, std::cmp::Reverse(one.length), one.name));
        all.dedup_by_key(|one| one.start);
        Some(Symbols { all, names })
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
        let names = data.get(self.names.clone())?;
        let name = names.get(found.name as usize..)?;
        let end = name.iter().take(LONGEST_NAME).position(|byte| *byte == 0)?;
        std::str::from_utf8(&name[..end]).ok().filter(|name| !name.is_empty())
    }
}
