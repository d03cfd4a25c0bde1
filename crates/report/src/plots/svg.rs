//! A drawing as SVG: alone, with its colours for light and dark, or inside a page that has them.

use super::drawing::{Anchor, Drawing, Ink, Mark, Shape, WIDTH};
use std::fmt::Write;

/// A file of its own.
pub fn file(drawing: &Drawing) -> String {
    let mut style = rules("", |ink| ink.colours().0);
    let _ = write!(style, "@media(prefers-color-scheme:dark){{{}}}", rules("", |ink| ink.colours().1));
    picture(
        drawing,
        &format!(
            "<style>{style}text{{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}}</style>"
        ),
    )
}

/// Colours of the classes of shapes, as CSS under `scope`.
pub fn rules(scope: &str, colour: impl Fn(Ink) -> &'static str) -> String {
    Ink::all().fold(String::new(), |mut rules, ink| {
        let (class, colour) = (ink.class(), colour(ink));
        let _ = write!(rules, "{scope}.{class}{{fill:{colour}}}{scope}polyline.{class}{{fill:none;stroke:{colour}}}");
        rules
    })
}

/// The element; its namespace is what makes a file of it a picture.
pub fn picture(drawing: &Drawing, style: &str) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {0:.0}\" width=\"{WIDTH}\" height=\"{0:.0}\" role=\"img\">\n<title>{1}</title>{style}\n",
        drawing.height,
        safe(&drawing.title)
    );
    let _ = writeln!(out, "<rect class=\"p\" width=\"{WIDTH}\" height=\"{:.0}\"/>", drawing.height);
    drawing.marks.iter().for_each(|mark| shape(mark, &mut out));
    out.push_str("</svg>\n");
    out
}

fn shape(mark: &Mark, out: &mut String) {
    let class = mark.ink.class();
    let faint = if mark.opacity < 1.0 { format!(" opacity=\"{:.2}\"", mark.opacity) } else { String::new() };
    let tip = mark.tip.as_ref().map(|tip| format!("<title>{}</title>", safe(tip))).unwrap_or_default();
    let (element, rest) = match &mark.shape {
        Shape::Rect { x, y, width, height } => {
            let rest = format!(" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"");
            ("rect", rest)
        }
        Shape::Area(places) => ("polygon", format!(" points=\"{}\"", points(places))),
        Shape::Line { points: places, width, dashed } => {
            let dashes = if *dashed { " stroke-dasharray=\"4 3\"" } else { "" };
            ("polyline", format!(" points=\"{}\" stroke-width=\"{width}\"{dashes}", points(places)))
        }
        Shape::Text { x, y, size, anchor, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\"");
            let _ = writeln!(out, "<text class=\"{class}\" {place}{faint}>{}</text>", safe(text));
            return;
        }
    };
    let _ = match tip.is_empty() {
        true => writeln!(out, "<{element} class=\"{class}\"{faint}{rest}/>"),
        false => writeln!(out, "<{element} class=\"{class}\"{faint}{rest}>{tip}</{element}>"),
    };
}

fn points(places: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(places.len() * 12);
    for (x, y) in places {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{x:.1},{y:.1}");
    }
    text
}

/// Text that cannot become markup.
pub fn safe(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
