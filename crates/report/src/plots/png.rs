//! A drawing as pixels, light, at twice its size so that its letters are sharp; and the pixels as a PNG file.

use super::drawing::{Anchor, Drawing, Ink, Shape, WIDTH};
use super::labels;
use flate2::Crc;
use flate2::write::ZlibEncoder;
use std::io::{self, Write};
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};

const SCALE: f64 = 2.0;
/// A higher picture is refused: nobody looks at it, and it is a gigabyte.
const MOST_HEIGHT: f64 = 12_000.0;

pub fn file(drawing: &Drawing) -> io::Result<Vec<u8>> {
    let refused = || io::Error::other("the picture is too high for PNG; write it as .svg or .html");
    if drawing.height * SCALE > MOST_HEIGHT {
        return Err(refused());
    }
    let (width, height) = ((WIDTH * SCALE) as u32, (drawing.height * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(refused)?;
    pixels.fill(colour(Ink::Panel, 1.0));
    for mark in &drawing.marks {
        let mut paint = Paint { anti_alias: true, ..Paint::default() };
        paint.set_color(colour(mark.ink, mark.opacity));
        draw(&mark.shape, &paint, &mut pixels);
    }
    let rows = pixels.pixels().chunks(width as usize).flat_map(|row| {
        let row = row.iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]);
        // Each row says how it is filtered: not at all.
        std::iter::once(0).chain(row)
    });
    encode(width, height, &rows.collect::<Vec<u8>>())
}

fn draw(shape: &Shape, paint: &Paint, pixels: &mut Pixmap) {
    let mut path = PathBuilder::new();
    let scaled = |value: f64| (value * SCALE) as f32;
    let mut stroke = None;
    match shape {
        Shape::Rect { x, y, width, height } => {
            let (x, y, right, bottom) = (scaled(*x), scaled(*y), scaled(x + width), scaled(y + height));
            [(x, y), (right, y), (right, bottom), (x, bottom)].iter().enumerate().for_each(|(at, (x, y))| match at {
                0 => path.move_to(*x, *y),
                _ => path.line_to(*x, *y),
            });
            path.close();
        }
        Shape::Area(points) => {
            trace(points, &mut path);
            path.close();
        }
        Shape::Line { points, width, dashed } => {
            trace(points, &mut path);
            let dash = dashed.then(|| StrokeDash::new(vec![scaled(4.0), scaled(3.0)], 0.0)).flatten();
            stroke = Some(Stroke { width: scaled(*width), dash, ..Stroke::default() });
        }
        Shape::Text { x, y, size, anchor, text } => {
            let wide = labels::width(text, *size);
            let left = match anchor {
                Anchor::Start => *x,
                Anchor::Middle => x - wide / 2.0,
                Anchor::End => x - wide,
            };
            labels::outline(text, size * SCALE, left * SCALE, y * SCALE, &mut path);
        }
    }
    // Nothing in it, such as a text of spaces: there is nothing to draw.
    let Some(path) = path.finish() else { return };
    match stroke {
        Some(stroke) => pixels.stroke_path(&path, paint, &stroke, Transform::identity(), None),
        None => pixels.fill_path(&path, paint, FillRule::Winding, Transform::identity(), None),
    }
}

fn trace(points: &[(f64, f64)], path: &mut PathBuilder) {
    for (at, (x, y)) in points.iter().enumerate() {
        let (x, y) = ((x * SCALE) as f32, (y * SCALE) as f32);
        if at == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
}

fn colour(ink: Ink, opacity: f64) -> Color {
    let channel = |at: usize| u8::from_str_radix(&ink.colours().0[at..at + 2], 16).unwrap_or(0);
    Color::from_rgba8(channel(1), channel(3), channel(5), (opacity.clamp(0.0, 1.0) * 255.0) as u8)
}

/// Rows of red, green and blue, each after its filter.
fn encode(width: u32, height: u32, rows: &[u8]) -> io::Result<Vec<u8>> {
    const EIGHT_BITS_OF_COLOUR: [u8; 5] = [8, 2, 0, 0, 0];
    let mut packed = ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(rows)?;
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &EIGHT_BITS_OF_COLOUR].concat();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", packed.finish()?), (b"IEND", Vec::new())] {
        let length = u32::try_from(data.len()).map_err(|_| io::Error::other("the picture is too large for PNG"))?;
        let mut sum = Crc::new();
        sum.update(kind);
        sum.update(&data);
        out.extend([&length.to_be_bytes()[..], kind, &data, &sum.sum().to_be_bytes()].concat());
    }
    Ok(out)
}
