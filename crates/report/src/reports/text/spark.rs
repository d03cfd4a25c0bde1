//! Sparklines and bars: a curve in one line of text, a share in a few cells.

use crate::style::Style;

const UNICODE: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];

/// A curve from 0 to `top` in `width` cells; a cell shows the highest value in it, and nothing where nothing was
/// measured.
pub fn sparkline(values: &[Option<f64>], top: f64, width: usize, style: &Style) -> String {
    let marks = if style.unicode { UNICODE } else { ASCII };
    let width = width.min(values.len()).max(1);
    let cell = |cell: usize| {
        let part = &values[cell * values.len() / width..(cell + 1) * values.len() / width];
        let highest = part.iter().flatten().copied().reduce(f64::max)?;
        let share = if top > 0.0 { (highest / top).clamp(0.0, 1.0) } else { 0.0 };
        Some(marks[(share * 7.0).round() as usize])
    };
    if values.is_empty() { String::new() } else { (0..width).map(|index| cell(index).unwrap_or(' ')).collect() }
}

/// A share of 1 as a bar of at most `width` cells, in eighths of a cell.
pub fn bar(share: f64, width: usize, style: &Style) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    if !style.unicode {
        return "#".repeat(eighths.div_ceil(8));
    }
    let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    format!("{}{}", "█".repeat(eighths / 8), parts[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_keeps_its_peaks_and_its_gaps() {
        let style = Style::default();
        let values = [Some(0.0), Some(1.0), None, None, Some(4.0), Some(8.0)];
        assert_eq!(sparkline(&values, 8.0, 6, &style), "▁▂  ▅█");
        assert_eq!(sparkline(&values, 8.0, 3, &style), "▂ █");
        assert_eq!(sparkline(&values, 8.0, 3, &Style { unicode: false, ..style }), ": @");
        assert_eq!(sparkline(&[Some(0.0)], 0.0, 5, &style), "▁");
        assert_eq!(sparkline(&[], 1.0, 5, &style), "");
    }

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(0.5, 4, &Style::default()), "██");
        assert_eq!(bar(0.55, 4, &Style::default()), "██▎");
        assert_eq!(bar(2.0, 2, &Style::default()), "██");
    }
}
