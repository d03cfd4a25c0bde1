//! Prints docs/rules.md: `cargo run -p inferscope-analysis --example rules_page > docs/rules.md`.

fn main() {
    print!("{}", analysis::rules::page());
}
