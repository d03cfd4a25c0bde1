//! Writes what is made from the table of settings: `cargo run -p inferscope-trace --example settings_pages`.

use std::path::Path;
use trace::settings::pages::PAGES;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in PAGES {
        let path = root.join(page.path);
        let text = std::fs::read_to_string(&path)?;
        let written =
            (page.written)(&text).ok_or_else(|| std::io::Error::other(format!("no place in {}", page.path)))?;
        std::fs::write(&path, written)?;
    }
    Ok(())
}
