//! Texts held by files: a test fails with the first line that differs, and `WRITE_SNAPSHOTS=1` writes them again.

use std::path::PathBuf;

/// `file` is below tests/.
#[track_caller]
pub fn same(file: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    if std::env::var_os("WRITE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = before.lines().zip(text.lines()).position(|(before, now)| before != now);
    let line = differs.unwrap_or(before.lines().count().min(text.lines().count()));
    assert!(
        before == text,
        "{file} has changed from line {}:\n- {}\n+ {}\nif that is right: WRITE_SNAPSHOTS=1 cargo test -p inferscope-report",
        line + 1,
        before.lines().nth(line).unwrap_or("(the end)"),
        text.lines().nth(line).unwrap_or("(the end)"),
    );
}
