//! The model on a terminal: `App` is what a person chose, `panes` are the model as lines, `screen` puts both together, `session` owns the
//! terminal and gives it back however the program ends.

mod look;

mod panes;

mod app;

mod screen;

mod session;

mod still;

pub use look::Look;
pub use session::{Ended, Options, run};
pub use still::Screen;

use crate::model::Model;

/// Everything that the panes have, one below the other, for a pipe.
pub fn once(model: &Model, look: Look, width: u16) -> String {
    let mut text = String::new();
    for pane in panes::Pane::ALL {
        let lines =
            pane.lines(model, &panes::View { look, width: usize::from(width.max(20)), ..panes::View::default() });
        if lines.is_empty() {
            continue;
        }
        text.push_str(pane.title());
        text.push('\n');
        for line in lines {
            let line: String = line.spans.iter().map(|span| &*span.content).collect();
            text.push_str("  ");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push('\n');
    }
    text
}
