//! The panes: each is a part of the model as lines. A line has no letter that a terminal would obey, whatever a program calls its functions.

mod answer;
mod functions;
mod gpu;
mod health;
mod memory;
mod processes;
mod steps;
mod table;
mod timeline;

use super::look::Look;
use crate::model::Model;
use ratatui::text::Line;
pub use table::cut;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pane {
    #[default]
    Answer,
    Steps,
    Timeline,
    Functions,
    Gpu,
    Memory,
    Processes,
    Health,
}

/// How the lines are wanted.
#[derive(Clone, Debug, Default)]
pub struct View<'a> {
    pub look: Look,
    pub width: usize,
    /// Rows that do not have this are left out, in lower case. Empty: all are shown.
    pub filter: String,
    /// What to compare with.
    pub baseline: Option<&'a Model>,
    /// The row whose details are shown.
    pub open: Option<usize>,
    pub sort: Sort,
}

/// Of tables that have both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    #[default]
    Own,
    Total,
}

impl Pane {
    pub const ALL: [Pane; 8] = [
        Pane::Answer,
        Pane::Steps,
        Pane::Timeline,
        Pane::Functions,
        Pane::Gpu,
        Pane::Memory,
        Pane::Processes,
        Pane::Health,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Pane::Answer => "Answer",
            Pane::Steps => "Steps",
            Pane::Timeline => "Timeline",
            Pane::Functions => "Functions",
            Pane::Gpu => "GPU",
            Pane::Memory => "Memory",
            Pane::Processes => "Processes",
            Pane::Health => "Health",
        }
    }

    /// Rows of which one can be chosen: those that have details.
    pub fn rows(self, model: &Model) -> usize {
        match self {
            Pane::Answer => model.findings.len(),
            _ => 0,
        }
    }

    pub fn lines(self, model: &Model, view: &View) -> Vec<Line<'static>> {
        match self {
            Pane::Answer => answer::lines(model, view),
            Pane::Steps => steps::lines(model, view),
            Pane::Timeline => timeline::lines(model, view),
            Pane::Functions => functions::lines(model, view),
            Pane::Gpu => gpu::lines(model, view),
            Pane::Memory => memory::lines(model, view),
            Pane::Processes => processes::lines(model, view),
            Pane::Health => health::lines(model, view),
        }
    }
}

impl View<'_> {
    /// Whether a row is shown.
    fn wants(&self, row: &str) -> bool {
        self.filter.is_empty() || row.to_lowercase().contains(&self.filter)
    }

    /// Text of ours, or a name of the program's: as the terminal can show it.
    fn shown(&self, text: &str) -> String {
        // A name may be a megabyte; nobody reads more than a screen of it.
        let cut: String = text.chars().take(4 * self.width.max(80)).collect();
        self.look.plain(&report::visible(&cut))
    }
}
