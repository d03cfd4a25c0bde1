//! The two axes of most pictures: time from left to right and bytes upwards, with a grid at round numbers.

use super::drawing::{Anchor, Drawing, Ink, WIDTH};

const LEFT: f64 = 78.0;
const RIGHT: f64 = 20.0;
const SECOND: u64 = 1_000_000_000;

/// Where a picture's values lie.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Where time is counted from.
    pub origin: u64,
    pub first: u64,
    pub last: u64,
    /// The highest value.
    pub most: u64,
    pub top: f64,
    pub bottom: f64,
    /// Times only count events.
    pub counts: bool,
}

impl Axes {
    pub fn x(&self, time: u64) -> f64 {
        let span = (self.last - self.first).max(1) as f64;
        let inside = time.clamp(self.first, self.last) - self.first;
        LEFT + inside as f64 / span * (WIDTH - LEFT - RIGHT)
    }

    pub fn y(&self, bytes: u64) -> f64 {
        self.bottom - (bytes as f64 / self.most.max(1) as f64).min(1.0) * (self.bottom - self.top)
    }

    pub fn left(&self) -> f64 {
        LEFT
    }

    pub fn right(&self) -> f64 {
        WIDTH - RIGHT
    }

    /// Lines at round numbers, with what they stand for.
    pub fn grid(&self, drawing: &mut Drawing) {
        let step = byte_step(self.most);
        for at in (0..=self.most / step).map(|number| number * step) {
            let y = self.y(at);
            drawing.line(vec![(LEFT, y), (WIDTH - RIGHT, y)], 1.0, Ink::Grid);
            drawing.text(LEFT - 8.0, y + 4.0, 11.0, Anchor::End, Ink::Muted, &byte_label(at), LEFT);
        }
        let (span, below) = ((self.last - self.first).max(1), self.bottom + 16.0);
        let step = if self.counts { decimal_step(span / 8) } else { time_step(span / 8) };
        let begin = self.first.saturating_sub(self.origin);
        for at in (begin.div_ceil(step)..=(begin + span) / step).map(|number| number * step) {
            let x = self.x(self.origin + at);
            drawing.line(vec![(x, self.bottom), (x, self.bottom + 4.0)], 1.0, Ink::Muted);
            let label = if self.counts { crate::units::count(at) } else { time_label(at) };
            drawing.text(x, below, 11.0, Anchor::Middle, Ink::Muted, &label, 200.0);
        }
        if self.counts {
            let what = "events in their order: their times were not recorded";
            drawing.text(WIDTH - RIGHT, below + 16.0, 11.0, Anchor::End, Ink::Muted, what, WIDTH);
        }
    }
}

/// Room for the labels below the bottom line.
pub fn below(counts: bool) -> f64 {
    if counts { 40.0 } else { 28.0 }
}

/// A power of two, with at most ten lines.
fn byte_step(most: u64) -> u64 {
    (most / 10).max(1).checked_next_power_of_two().unwrap_or(1 << 61)
}

/// A number of round bytes: "512 MiB", "1.5 GiB".
pub fn byte_label(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (0..6).rev().find(|power| bytes >> (10 * (power + 1)) > 0).map_or(0, |power| power + 1);
    trimmed(bytes as f64 / (1u64 << (10 * power)) as f64, UNITS[power])
}

fn trimmed(value: f64, unit: &str) -> String {
    let text = format!("{value:.3}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn decimal_step(rough: u64) -> u64 {
    let mut base = 1u64;
    while rough > base.saturating_mul(10) {
        base = base.saturating_mul(10);
    }
    [1, 2, 5, 10].into_iter().map(|times| base.saturating_mul(times)).find(|step| *step >= rough).unwrap_or(u64::MAX)
}

fn time_step(rough: u64) -> u64 {
    const SECONDS: [u64; 16] =
        [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];
    if rough <= 10 * SECOND {
        return decimal_step(rough);
    }
    SECONDS
        .into_iter()
        .map(|seconds| seconds * SECOND)
        .find(|step| *step >= rough)
        .unwrap_or_else(|| decimal_step(rough))
}

fn time_label(ns: u64) -> String {
    match ns {
        0 => "0".into(),
        _ if ns < 1_000 => format!("{ns} ns"),
        _ if ns < 1_000_000 => trimmed(ns as f64 / 1e3, "µs"),
        _ if ns < SECOND => trimmed(ns as f64 / 1e6, "ms"),
        _ if ns < 60 * SECOND => trimmed(ns as f64 / 1e9, "s"),
        _ if ns < 3600 * SECOND => format!("{}:{:02} min", ns / (60 * SECOND), ns / SECOND % 60),
        _ if ns < 86_400 * SECOND => format!("{}:{:02} h", ns / (3600 * SECOND), ns / (60 * SECOND) % 60),
        _ => trimmed(ns as f64 / 86_400e9, "d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_round() {
        let labels: Vec<String> = [0, 512, 1536, 3 << 29, 1 << 50, u64::MAX].into_iter().map(byte_label).collect();
        assert_eq!(labels, ["0 B", "512 B", "1.5 KiB", "1.5 GiB", "1 PiB", "16 EiB"]);
        let times: Vec<String> =
            [0, 2_500, 500_000_000, 90 * SECOND, 5400 * SECOND].into_iter().map(time_label).collect();
        assert_eq!(times, ["0", "2.5 µs", "500 ms", "1:30 min", "1:30 h"]);
    }

    #[test]
    fn there_are_never_too_many_lines() {
        for most in [0, 1, 7, 1000, 3 << 30, u64::MAX] {
            assert!(most / byte_step(most) <= 10, "{most}");
            assert!(most / 8 / time_step(most / 8) <= 2 && most / 8 / decimal_step(most / 8) <= 2, "{most}");
        }
    }
}
