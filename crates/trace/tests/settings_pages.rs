//! The documentation and the Python package say of settings what the table says.

use std::path::Path;
use trace::settings::pages::{COMMAND, PAGES};

#[test]
fn what_is_made_from_the_table_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page.path)).unwrap();
        assert_eq!((page.written)(&text).as_ref(), Some(&text), "{}: run `{COMMAND}`", page.path);
    }
}
