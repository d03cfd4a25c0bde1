//! Which files a process runs code of, and where they lie in its memory: the executable lines of /proc/PID/maps.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CodeMapping {
    pub range: Range<u64>,
    /// Of the file.
    pub offset: u64,
    /// Empty for code that the process made itself; `[vdso]` and the like are the kernel's.
    pub path: String,
    /// The file has no name any more.
    pub is_deleted: bool,
    /// Where the beginning of the file is mapped.
    pub image: Option<u64>,
}

/// What is read of the list: a process with a hundred thousand mappings has its libraries near the end, but not all of them.
const MOST_BYTES: u64 = 16 << 20;
const MOST_MAPPINGS: usize = 4096;
const DELETED: &str = " (deleted)";

pub(super) fn read(pid: u32) -> io::Result<Vec<CodeMapping>> {
    let mut text = Vec::new();
    File::open(format!("/proc/{pid}/maps"))?.take(MOST_BYTES).read_to_end(&mut text)?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// By address. A line that is none, and one that overlaps the one before, is left out.
fn parse(text: &str) -> Vec<CodeMapping> {
    let mut found: Vec<CodeMapping> = Vec::new();
    // The beginning of a file is not code: it is mapped just before.
    let mut image: Option<(String, u64)> = None;
    for (is_code, mut mapping) in text.lines().filter_map(line) {
        if mapping.offset == 0 && !mapping.path.is_empty() {
            image = Some((mapping.path.clone(), mapping.range.start));
        }
        let follows = found.last().is_none_or(|last| last.range.end <= mapping.range.start);
        if is_code && follows {
            mapping.image = image.as_ref().filter(|(path, _)| *path == mapping.path).map(|(_, start)| *start);
            found.push(mapping);
        }
        if found.len() >= MOST_MAPPINGS {
            break;
        }
    }
    found
}

/// With whether it may be run.
fn line(line: &str) -> Option<(bool, CodeMapping)> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (range, rest) = line.split_once(' ')?;
    let (access, rest) = rest.split_once(' ')?;
    let is_code = access.as_bytes().get(2) == Some(&b'x');
    let (offset, rest) = rest.split_once(' ')?;
    let (_device, rest) = rest.split_once(' ')?;
    let path = rest.split_once(' ').map_or("", |(_inode, path)| path.trim_start());
    let (start, end) = range.split_once('-')?;
    let range = hexadecimal(start)?..hexadecimal(end)?;
    let (offset, is_deleted) = (hexadecimal(offset)?, path.ends_with(DELETED));
    let path = path.strip_suffix(DELETED).unwrap_or(path).to_owned();
    (range.start < range.end).then_some((is_code, CodeMapping { range, offset, path, is_deleted, image: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_found_with_its_file() {
        let text = "\
00400000-00452000 r--p 00000000 08:02 173521      /usr/bin/python3
00452000-00600000 r-xp 00052000 08:02 173521      /usr/bin/python3
7f00-8f00 rwxp 00000000 00:00 0 
9f00-af00 r-xp 00001000 08:02 9  /srv/a b.so (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]
";
        let found = parse(text);
        let short: Vec<(u64, u64, &str, bool)> =
            found.iter().map(|one| (one.range.start, one.offset, &*one.path, one.is_deleted)).collect();
        // Out of order, as no kernel writes them.
        assert_eq!(short[0], (0x452000, 0x52000, "/usr/bin/python3", false));
        assert_eq!(found[0].image, Some(0x400000));
        assert_eq!(short.last().unwrap().2, "[vsyscall]");
        let own = "7f00-8f00 rwxp 00000000 00:00 0 \n9f00-af00 r-xp 00001000 08:02 9  /srv/a b.so (deleted)\n";
        assert_eq!(
            parse(own).iter().map(|one| (&*one.path, one.is_deleted)).collect::<Vec<_>>(),
            [("", false), ("/srv/a b.so", true)]
        );
    }

    #[test]
    fn lines_that_lie_are_left_out() {
        for odd in [
            "",
            "-",
            "zz-10 r-xp 0 0:0 0 /a",
            "20-10 r-xp 0 0:0 0 /a",
            "10-20 r-xp",
            "10-20 r-xp x 0:0 0 /a",
            "10-20 rw-p 0 0:0 0 /a",
            "10-fffffffffffffffff r-xp 0 0:0 0 /a",
            "\u{0}\u{1}",
        ] {
            assert_eq!(parse(odd), [], "{odd:?}");
        }
        assert_eq!(parse("10-30 r-xp 0 0:0 0 /a\n20-40 r-xp 0 0:0 0 /b").len(), 1);
        assert_eq!(parse(&"10-30 r-xp 0 0:0 0 /a\n".repeat(100_000)).len(), 1);
    }

    #[test]
    fn this_process_runs_code_of_itself() {
        let exe = std::fs::read_link("/proc/self/exe").unwrap();
        assert!(read(std::process::id()).unwrap().iter().any(|one| one.path == exe.to_str().unwrap()));
        assert!(read(u32::MAX >> 1).is_err());
    }
}
