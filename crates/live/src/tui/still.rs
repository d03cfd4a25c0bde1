//! A screen without a terminal: keys in, text out. For tests, and for whoever wants a picture of a view.

use super::app::App;
use super::look::Look;
use super::screen;
use crate::model::Model;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::sync::Arc;

pub struct Screen {
    app: App,
    look: Look,
    terminal: Terminal<TestBackend>,
}

impl Screen {
    pub fn new(model: Model, look: Look, width: u16, height: u16) -> Screen {
        let mut app = App::default();
        app.take(Some(Ok(Arc::new(model))));
        let Ok(terminal) = Terminal::new(TestBackend::new(width, height));
        Screen { app, look, terminal }
    }

    pub fn press(&mut self, key: char) {
        self.app.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    }

    pub fn enter(&mut self) {
        self.app.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
    }

    /// The lines of the screen, without what is empty at their ends.
    pub fn text(&mut self) -> String {
        let (app, look) = (&self.app, self.look);
        let Ok(_) = self.terminal.draw(|frame| _ = screen::draw(frame, app, look));
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let line = |cells: &[ratatui::buffer::Cell]| {
            let text: String = cells.iter().map(|cell| cell.symbol()).collect();
            text.trim_end().to_owned()
        };
        buffer.content.chunks(width.max(1)).map(line).collect::<Vec<_>>().join("\n")
    }
}
