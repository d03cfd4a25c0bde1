//! Prints docs/rules.md: `cargo run -p inferscope-diagnosis --example rules_page > docs/rules.md`.

fn main() {
    print!("{}", diagnosis::rules::page());
}
