//! A picture as shapes and texts, before it is a file: written as SVG, as pixels, or into a page, it is the same picture. Colours are named by what
//! they are for; light and dark are chosen where the picture is shown.

use super::labels;
use crate::escape;
use std::fmt::Write;

pub const WIDTH: f64 = 1000.0;
/// Longer names are cut, with an ellipsis.
const LONGEST_NAME: usize = 120;

/// What a shape is drawn in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    Text,
    Muted,
    Grid,
    Panel,
    /// What is not told apart.
    Rest,
    /// One of [`SERIES`].
    Series(usize),
}

/// Of light and of dark pictures.
pub const SERIES: [(&str, &str); 12] = [
    ("#3f7fe0", "#6fa1f2"),
    ("#e08a1e", "#f0a548"),
    ("#2f9e6e", "#58c48b"),
    ("#b0449b", "#d67fc6"),
    ("#7a6ad8", "#a99bf0"),
    ("#d1495b", "#f0707f"),
    ("#1895a6", "#4cc3d6"),
    ("#a68a1d", "#d6bd52"),
    ("#5d7a99", "#93adc9"),
    ("#e0709c", "#f59bbd"),
    ("#5a9a2f", "#86c463"),
    ("#8a5a3c", "#c29474"),
];

impl Ink {
    /// As class in SVG and on the page.
    pub fn class(self) -> String {
        match self {
            Ink::Text => "t".into(),
            Ink::Muted => "m".into(),
            Ink::Grid => "g".into(),
            Ink::Panel => "p".into(),
            Ink::Rest => "r".into(),
            Ink::Series(at) => format!("s{}", at % SERIES.len()),
        }
    }

    pub fn colours(self) -> (&'static str, &'static str) {
        match self {
            Ink::Text => ("#172033", "#e7ebf5"),
            Ink::Muted => ("#5b6478", "#9aa4ba"),
            Ink::Grid => ("#e3e7ef", "#2a3246"),
            Ink::Panel => ("#ffffff", "#161c2e"),
            Ink::Rest => ("#c7cedb", "#46506a"),
            Ink::Series(at) => SERIES[at % SERIES.len()],
        }
    }

    pub fn all() -> impl Iterator<Item = Ink> {
        [Ink::Text, Ink::Muted, Ink::Grid, Ink::Panel, Ink::Rest].into_iter().chain((0..SERIES.len()).map(Ink::Series))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// Filled.
    Rect {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
    },
    /// Filled.
    Area(Vec<(f64, f64)>),
    Line {
        points: Vec<(f64, f64)>,
        width: f64,
        dashed: bool,
    },
    /// `y` is the line that letters stand on.
    Text {
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        text: String,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    pub shape: Shape,
    pub ink: Ink,
    pub opacity: f64,
    /// What a pointer over it is told, where the picture can be pointed at.
    pub tip: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Drawing {
    pub title: String,
    pub height: f64,
    pub marks: Vec<Mark>,
}

impl Drawing {
    pub fn new(title: &str, height: f64) -> Drawing {
        let mut drawing = Drawing { title: named(title), height, marks: Vec::new() };
        drawing.text(16.0, 24.0, 15.0, Anchor::Start, Ink::Text, title, WIDTH - 32.0);
        drawing
    }

    pub fn add(&mut self, shape: Shape, ink: Ink) -> &mut Mark {
        self.marks.push(Mark { shape, ink, opacity: 1.0, tip: None });
        let last = self.marks.len() - 1;
        &mut self.marks[last]
    }

    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), ink: Ink) -> &mut Mark {
        self.add(Shape::Rect { x, y, width, height }, ink)
    }

    pub fn line(&mut self, points: Vec<(f64, f64)>, width: f64, ink: Ink) -> &mut Mark {
        self.add(Shape::Line { points, width, dashed: false }, ink)
    }

    /// A text that is cut where it would be wider than `room`.
    #[expect(clippy::too_many_arguments, reason = "a text has a place, a size, a colour and room")]
    pub fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, ink: Ink, text: &str, room: f64) {
        let text = fitted(text, size, room);
        if !text.is_empty() {
            self.add(Shape::Text { x, y, size, anchor, text }, ink);
        }
    }

    /// Names with their colours in rows, from `y` down; gives where they end.
    pub fn legend(&mut self, mut y: f64, entries: &[(Ink, f64, String)]) -> f64 {
        let (mut x, left) = (16.0, 16.0);
        for (ink, opacity, name) in entries {
            let name = fitted(name, 11.0, WIDTH - 64.0);
            let wide = labels::width(&name, 11.0) + 34.0;
            if x > left && x + wide > WIDTH - 12.0 {
                (x, y) = (left, y + 18.0);
            }
            self.rect((x, y - 9.0), (10.0, 10.0), *ink).opacity = *opacity;
            self.text(x + 15.0, y, 11.0, Anchor::Start, Ink::Muted, &name, WIDTH);
            x += wide;
        }
        y + 18.0
    }

    /// Several below each other, as one.
    pub fn column(drawings: Vec<Drawing>) -> Drawing {
        let title = drawings.first().map(|first| first.title.clone()).unwrap_or_default();
        let mut all = Drawing { title, ..Drawing::default() };
        for drawing in drawings {
            let down = all.height;
            all.height += drawing.height;
            all.marks.extend(drawing.marks.into_iter().map(|mark| mark.moved_down(down)));
        }
        all
    }
}

impl Mark {
    pub fn said(&mut self, tip: impl Into<String>) -> &mut Mark {
        self.tip = Some(tip.into());
        self
    }

    fn moved_down(mut self, down: f64) -> Mark {
        match &mut self.shape {
            Shape::Rect { y, .. } | Shape::Text { y, .. } => *y += down,
            Shape::Area(points) | Shape::Line { points, .. } => points.iter_mut().for_each(|point| point.1 += down),
        }
        self
    }
}

/// A name of the recorded program, so that it can stand in a picture: on one line, without what XML has no letter for, and not too long.
pub fn named(text: &str) -> String {
    let short = match text.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let mut safe = String::with_capacity(short.len());
    for letter in escape::visible(&short).chars() {
        match u32::from(letter) & 0xfffe {
            0xfffe => _ = write!(safe, "\\u{{{:x}}}", u32::from(letter)),
            _ => safe.push(letter),
        }
    }
    safe
}

/// As much of a name as has room.
fn fitted(text: &str, size: f64, room: f64) -> String {
    let text = named(text);
    if labels::width(&text, size) <= room {
        return text;
    }
    let mut kept = String::new();
    let mut wide = labels::width("…", size);
    for letter in text.chars() {
        wide += labels::advance(letter, size);
        if wide > room {
            break;
        }
        kept.push(letter);
    }
    if kept.is_empty() { kept } else { format!("{kept}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_short_line() {
        assert_eq!(named("a\nb\u{1b}[2J\u{ffff}"), "a\\nb\\u{1b}[2J\\u{ffff}");
        let long = named(&"x".repeat(1 << 20));
        assert!(long.chars().count() == LONGEST_NAME + 1 && long.ends_with('…'));
    }

    #[test]
    fn what_has_no_room_is_cut() {
        let cut = fitted("a long name of something", 11.0, 60.0);
        assert!(cut.ends_with('…') && labels::width(&cut, 11.0) <= 60.0, "{cut}");
        assert_eq!((fitted("short", 11.0, 100.0).as_str(), fitted("none", 11.0, 3.0).as_str()), ("short", ""));
    }
}
