//! The letters of pictures: how wide a text is, and its outlines for pictures of pixels. The font is part of the program (its licence stands beside
//! it), for a server has none; it holds Latin, Greek and Cyrillic, and a box stands for every other letter.

use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

static FONT: &[u8] = include_bytes!("font/labels.ttf");
static FACE: LazyLock<Option<Face>> = LazyLock::new(|| Face::parse(FONT, 0).ok());

/// Of a letter that no font of ours has, in parts of its size: as in most fonts.
const USUAL_ADVANCE: f64 = 0.6;

fn glyph(letter: char) -> Option<(&'static Face<'static>, GlyphId)> {
    let face = FACE.as_ref()?;
    Some((face, face.glyph_index(letter).unwrap_or(GlyphId(0))))
}

pub fn advance(letter: char, size: f64) -> f64 {
    let found = glyph(letter).and_then(|(face, glyph)| {
        Some(f64::from(face.glyph_hor_advance(glyph)?) / f64::from(face.units_per_em().max(1)))
    });
    size * found.unwrap_or(USUAL_ADVANCE)
}

pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|letter| advance(letter, size)).sum()
}

/// Draws the outlines of a text that begins at `x` on the line `y`.
pub fn outline(text: &str, size: f64, mut x: f64, y: f64, path: &mut tiny_skia::PathBuilder) {
    for letter in text.chars() {
        if let Some((face, glyph)) = glyph(letter) {
            let scale = (size / f64::from(face.units_per_em().max(1))) as f32;
            face.outline_glyph(glyph, &mut Pen { path, x: x as f32, y: y as f32, scale });
        }
        x += advance(letter, size);
    }
}

struct Pen<'p> {
    path: &'p mut tiny_skia::PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_the_letters_of_our_labels() {
        let face = FACE.as_ref().unwrap();
        for letter in "aZ09éß– …·×µ≥²(){}[]:/%→".chars() {
            assert!(face.glyph_index(letter).is_some() || letter == '²', "{letter}");
        }
        assert!(width("WWW", 10.0) > width("iii", 10.0) && width("日本", 10.0) > 0.0);
    }
}
