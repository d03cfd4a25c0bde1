//! Writes docs/rules.md and docs/rules/: `cargo run -p inferscope-diagnosis --example rules_page`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::create_dir_all(docs.join("rules"))?;
    diagnosis::rules::pages().into_iter().try_for_each(|(path, text)| std::fs::write(docs.join(path), text))
}
