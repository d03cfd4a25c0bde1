//! One bar a name, the longest first; those that do not fit are counted.

use super::drawing::{Anchor, Drawing, Ink, WIDTH};
use crate::units::{bytes, count};

const MOST_BARS: usize = 40;
const ROW: f64 = 24.0;
const NAMES: f64 = 330.0;

/// `None`: there is no value. Less than nothing was given back.
pub fn draw(title: &str, mut values: Vec<(String, i128)>) -> Option<Drawing> {
    values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let most = values.iter().map(|(_, value)| value.unsigned_abs()).max()?;
    let mut drawing = Drawing::new(title, 0.0);
    for (number, (name, value)) in values.iter().take(MOST_BARS).enumerate() {
        let y = 44.0 + ROW * number as f64;
        let wide = value.unsigned_abs() as f64 / most.max(1) as f64 * (WIDTH - NAMES - 130.0);
        drawing.text(NAMES - 8.0, y + 12.0, 11.0, Anchor::End, Ink::Text, name, NAMES - 24.0);
        drawing.rect((NAMES, y), (wide.max(0.5), 16.0), Ink::Series(usize::from(*value < 0)));
        let size = bytes(u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX));
        let said = if *value < 0 { format!("−{size}") } else { size };
        drawing.text(NAMES + wide + 6.0, y + 12.0, 11.0, Anchor::Start, Ink::Muted, &said, 120.0);
    }
    let shown = values.len().min(MOST_BARS);
    drawing.height = 44.0 + ROW * shown as f64 + 12.0;
    if values.len() > shown {
        let more = format!("and {} more", count((values.len() - shown) as u64));
        drawing.text(NAMES, drawing.height + 4.0, 11.0, Anchor::Start, Ink::Muted, &more, 300.0);
        drawing.height += 20.0;
    }
    Some(drawing)
}
