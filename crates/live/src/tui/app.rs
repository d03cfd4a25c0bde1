//! What the person at the terminal chose: which pane, which row, what to leave out, which moment. A key in, a wish out.

use super::panes::{Pane, Sort};
use crate::model::{Model, State};
use crate::watcher::Position;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use std::sync::Arc;

/// How far an arrow goes in time.
const SEEK: u64 = 5_000_000_000;
const LONGEST_FILTER: usize = 100;

#[derive(Default)]
pub struct App {
    pub pane: Pane,
    /// The first line that is seen.
    pub scroll: usize,
    /// Of the panes with rows to choose.
    pub row: usize,
    pub open: bool,
    pub filter: String,
    /// The filter is being typed.
    pub typing: bool,
    pub help: bool,
    pub sort: Sort,
    pub baseline: Option<Arc<Model>>,
    /// The model that stands still, while newer ones come.
    pub paused: Option<Arc<Model>>,
    pub model: Option<Arc<Model>>,
    /// Why there is no newer one.
    pub error: Option<String>,
    /// Where in a finished recording; None: at the newest.
    pub at: Option<u64>,
    /// A finished recording that plays.
    pub playing: bool,
}

/// What a key asks of the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    Nothing,
    Go(Position),
    Quit,
}

impl App {
    /// A newer model, or why there is none.
    pub fn take(&mut self, shown: Option<Result<Arc<Model>, String>>) {
        match shown {
            None => {}
            Some(Ok(model)) => (self.model, self.error) = (Some(model), None),
            Some(Err(why)) => self.error = Some(why),
        }
    }

    /// What is on the screen.
    pub fn seen(&self) -> Option<&Arc<Model>> {
        self.paused.as_ref().or(self.model.as_ref())
    }

    pub fn key(&mut self, key: KeyEvent) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Wish::Quit;
        }
        if self.typing {
            self.type_filter(key.code);
            return Wish::Nothing;
        }
        if self.help {
            self.help = false;
            return Wish::Nothing;
        }
        match key.code {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char(digit @ '1'..='8') => self.show(Pane::ALL[digit as usize - '1' as usize]),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Pane::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.down(1),
            KeyCode::Up | KeyCode::Char('k') => self.up(1),
            KeyCode::PageDown => self.down(10),
            KeyCode::PageUp => self.up(10),
            KeyCode::Enter => self.open = !self.open,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => (self.open, self.filter) = (false, String::new()),
            KeyCode::Char('s') => {
                self.sort = if self.sort == Sort::Own { Sort::Total } else { Sort::Own };
            }
            KeyCode::Char('b') => {
                self.baseline = if self.baseline.is_some() { None } else { self.seen().cloned() };
            }
            KeyCode::Char(' ') => return self.pause(),
            KeyCode::Left => return self.seek(false),
            KeyCode::Right => return self.seek(true),
            KeyCode::Home => return self.to(0),
            KeyCode::End => return self.newest(),
            _ => {}
        }
        Wish::Nothing
    }

    /// A click on the line of the tabs chooses one; the wheel scrolls.
    pub fn mouse(&mut self, mouse: MouseEvent, tabs: &[(u16, u16)], tab_line: u16) -> Wish {
        match mouse.kind {
            MouseEventKind::ScrollDown => self.down(3),
            MouseEventKind::ScrollUp => self.up(3),
            MouseEventKind::Down(MouseButton::Left) if mouse.row == tab_line => {
                let hit = tabs.iter().position(|(from, to)| (*from..*to).contains(&mouse.column));
                hit.and_then(|at| Pane::ALL.get(at)).into_iter().for_each(|pane| self.show(*pane));
            }
            _ => {}
        }
        Wish::Nothing
    }

    /// A second of a finished recording has passed.
    pub fn played(&mut self, nanos: u64) -> Wish {
        let Some(model) = self.model.as_ref().filter(|_| self.playing) else { return Wish::Nothing };
        let next = self.at.unwrap_or(model.clock.end_ns).saturating_add(nanos);
        if next >= model.clock.recorded_ns {
            return self.newest();
        }
        self.at = Some(next);
        Wish::Go(Position::At(next))
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => (self.typing, self.filter) = (false, String::new()),
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(letter) if self.filter.chars().count() < LONGEST_FILTER => self.filter.push(letter),
            _ => {}
        }
        self.scroll = 0;
    }

    fn show(&mut self, pane: Pane) {
        (self.pane, self.scroll, self.row, self.open) = (pane, 0, 0, false);
    }

    fn turn(&mut self, by: usize) {
        let at = Pane::ALL.iter().position(|pane| *pane == self.pane).unwrap_or(0);
        self.show(Pane::ALL[(at + by) % Pane::ALL.len()]);
    }

    fn rows(&self) -> usize {
        self.seen().map_or(0, |model| self.pane.rows(model))
    }

    fn down(&mut self, lines: usize) {
        match self.rows() {
            0 => self.scroll = self.scroll.saturating_add(lines),
            rows => self.row = (self.row + lines).min(rows - 1),
        }
    }

    fn up(&mut self, lines: usize) {
        match self.rows() {
            0 => self.scroll = self.scroll.saturating_sub(lines),
            _ => self.row = self.row.saturating_sub(lines),
        }
    }

    fn pause(&mut self) -> Wish {
        let live = self.model.as_ref().is_none_or(|model| model.state == State::Recording);
        if live {
            self.paused = if self.paused.is_some() { None } else { self.model.clone() };
        } else {
            self.playing = !self.playing;
        }
        Wish::Nothing
    }

    fn seek(&mut self, forward: bool) -> Wish {
        let Some(model) = &self.model else { return Wish::Nothing };
        let from = self.at.unwrap_or(model.clock.end_ns);
        let to = if forward { from.saturating_add(SEEK) } else { from.saturating_sub(SEEK) };
        if forward && to >= model.clock.recorded_ns { self.newest() } else { self.to(to) }
    }

    fn to(&mut self, at: u64) -> Wish {
        (self.at, self.paused) = (Some(at), None);
        Wish::Go(Position::At(at))
    }

    fn newest(&mut self) -> Wish {
        (self.at, self.paused, self.playing) = (None, None, false);
        Wish::Go(Position::Newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Clock, Finding};

    fn app(state: State) -> App {
        let clock = Clock { end_ns: 60_000_000_000, recorded_ns: 60_000_000_000, ..Clock::default() };
        let findings = vec![Finding::default(), Finding::default()];
        let mut app = App::default();
        app.take(Some(Ok(Arc::new(Model { state, clock, findings, ..Model::default() }))));
        app
    }

    fn press(app: &mut App, code: KeyCode) -> Wish {
        app.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn digits_and_tab_choose_panes_and_q_quits() {
        let mut app = app(State::Recording);
        press(&mut app, KeyCode::Char('4'));
        assert_eq!(app.pane, Pane::Functions);
        press(&mut app, KeyCode::Tab);
        assert_eq!(app.pane, Pane::Gpu);
        press(&mut app, KeyCode::BackTab);
        press(&mut app, KeyCode::Char('1'));
        press(&mut app, KeyCode::BackTab);
        assert_eq!(app.pane, Pane::Health);
        assert_eq!(press(&mut app, KeyCode::Char('q')), Wish::Quit);
        assert_eq!(app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Wish::Quit);
    }

    #[test]
    fn rows_are_chosen_within_what_is_there() {
        let mut app = app(State::Recording);
        (0..5).for_each(|_| _ = press(&mut app, KeyCode::Down));
        assert_eq!(app.row, 1);
        (0..5).for_each(|_| _ = press(&mut app, KeyCode::Up));
        assert_eq!(app.row, 0);
    }

    #[test]
    fn a_filter_takes_letters_that_are_keys_otherwise() {
        let mut app = app(State::Recording);
        press(&mut app, KeyCode::Char('/'));
        for letter in "quit".chars() {
            assert_eq!(press(&mut app, KeyCode::Char(letter)), Wish::Nothing);
        }
        press(&mut app, KeyCode::Backspace);
        press(&mut app, KeyCode::Enter);
        assert_eq!((app.filter.as_str(), app.typing), ("qui", false));
        press(&mut app, KeyCode::Esc);
        assert_eq!(app.filter, "");
    }

    #[test]
    fn a_recording_that_runs_stands_still_and_a_finished_one_plays() {
        let mut live = app(State::Recording);
        press(&mut live, KeyCode::Char(' '));
        live.take(Some(Ok(Arc::new(Model::default()))));
        assert_eq!(live.seen().unwrap().findings.len(), 2);
        press(&mut live, KeyCode::Char(' '));
        assert_eq!(live.seen().unwrap().findings.len(), 0);

        let mut ended = app(State::Ended);
        assert_eq!(press(&mut ended, KeyCode::Left), Wish::Go(Position::At(55_000_000_000)));
        assert_eq!(ended.played(1_000_000_000), Wish::Nothing);
        press(&mut ended, KeyCode::Char(' '));
        assert_eq!(ended.played(1_000_000_000), Wish::Go(Position::At(56_000_000_000)));
        assert_eq!(press(&mut ended, KeyCode::Right), Wish::Go(Position::Newest));
        assert!(!ended.playing);
        assert_eq!(press(&mut ended, KeyCode::Home), Wish::Go(Position::At(0)));
    }
}
