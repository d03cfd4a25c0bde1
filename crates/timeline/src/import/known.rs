//! Recognises files that are not read, by their first bytes or by their names, so that the error can say what they are.

use std::io::Read;
use std::path::Path;

/// What the file is, if it is one of those.
pub fn looks_like(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let named = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if named(&[".nsys-rep", ".qdrep", ".qdstrm"]) {
        return Some("a report of Nsight Systems in its own format");
    }
    if named(&[".ncu-rep"]) {
        return Some("a report of Nsight Compute");
    }
    if named(&[".pftrace", ".perfetto-trace"]) {
        return Some("a trace of Perfetto");
    }
    let mut first = Vec::new();
    trace::plain_file::open_named(path).ok()?.take(8).read_to_end(&mut first).ok()?;
    match *first.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => Some("a Parquet file (one table of a trace? give its folder)"),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive (unpack it first)"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("packed with zstd (unpack it first)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_name_or_first_bytes() {
        let path = std::env::temp_dir().join(format!("inferscope-known-{}", std::process::id()));
        for (bytes, words) in [
            (&b"PAR1"[..], Some("Parquet")),
            (b"PK\x03\x04", Some("zip")),
            (b"{\"a\":1}", None),
            (b"\x80", None),
            (b"", None),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let said = looks_like(&path);
            assert!(said.is_some() == words.is_some() && said.unwrap_or("").contains(words.unwrap_or("")), "{said:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(looks_like(Path::new("/nowhere/a.NSYS-REP")).unwrap().contains("Nsight Systems"));
    }
}
