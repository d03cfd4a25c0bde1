//! Numbers and places as people say them: `41.2 ms`, `31 %`, `compile_pattern (service.py:44)`.

use crate::place::Place;
use crate::stats::share::Share;
use timeline::{Timeline, TrackIndex};

pub use timeline::quantity::{bytes, duration};

/// A fraction as a percentage.
pub fn percent(fraction: f64) -> String {
    format!("{} %", digits(fraction))
}

/// What is there, and would read as nothing.
const LEAST: f64 = 0.001;
const LESS: &str = "<0.1 %";

/// [`percent`] in a table, where what is there but small does not read as nothing.
pub fn percent_or_less(fraction: f64) -> String {
    if fraction > 0.0 && fraction < LEAST { LESS.into() } else { percent(fraction) }
}

/// A part of a whole in a table, where one decimal lines a column up: `12.3 %`; `<0.1 %` for what is there but small.
pub fn percent_of(part: u64, whole: u64) -> String {
    let share = part as f64 / whole.max(1) as f64;
    if part > 0 && share < LEAST { LESS.into() } else { format!("{:.1} %", share * 100.0) }
}

/// A change as a part of what it was before: `+12.5 %`, `−36.4 %`, `0.0 %`.
pub fn change(fraction: f64) -> String {
    format!("{} %", signed(fraction))
}

/// The same without the unit, where several stand together: `−16.4`, `+3.0`, `+150`.
pub fn signed(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let digits = if percent.abs() >= 99.95 { 0 } else { 1 };
    let text = format!("{:.digits$}", percent.abs());
    match percent {
        _ if text.trim_matches(['0', '.']).is_empty() => text,
        _ if percent < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// A difference of two durations: `+11.8 ms`, `−3.00 µs`.
pub fn longer(nanos: i64) -> String {
    format!("{}{}", if nanos < 0 { "−" } else { "+" }, duration(nanos.unsigned_abs()))
}

pub fn percent_range(share: Share) -> String {
    let (low, high) = (digits(share.low), digits(share.high));
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}

/// A gain as a change of time: `−80 %, range 79–81`; with what qualifies it: `−23 %, range 0–46, bounds only`.
pub fn less(share: Share, proviso: &str) -> String {
    format!("−{}", saving(share, proviso))
}

/// The same without the sign: `80 %, range 79–81`.
pub fn saving(share: Share, proviso: &str) -> String {
    match range(share) {
        None => format!("{}{proviso}", percent(share.mid)),
        Some(range) => format!("{}, {range}{proviso}", percent(share.mid)),
    }
}

/// The same as a part of something: `80 % of the time (range 79–81)`.
pub fn saving_of(share: Share, whole: &str, proviso: &str) -> String {
    match range(share) {
        None => format!("{} of {whole}{proviso}", percent(share.mid)),
        Some(range) => format!("{} of {whole} ({range}{proviso})", percent(share.mid)),
    }
}

fn range(share: Share) -> Option<String> {
    let (low, high) = (digits(share.low), digits(share.high));
    (low != high).then(|| format!("range {low}–{high}"))
}

fn digits(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent == 0.0 || percent >= 9.95 { format!("{percent:.0}") } else { format!("{percent:.1}") }
}

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `3 steps`, `1 step`.
pub fn counted(number: u64, word: &str) -> String {
    let (stem, plural) = match word {
        _ if number == 1 => (word, ""),
        _ if word.ends_with("ch") || word.ends_with('s') || word.ends_with('x') => (word, "es"),
        _ => match word.strip_suffix('y') {
            Some(stem) if !stem.ends_with(['a', 'e', 'o']) => (stem, "ies"),
            _ => (word, "s"),
        },
    };
    format!("{} {stem}{plural}", count(number))
}

/// The end of a path by which people know a file. `__init__.py` alone says nothing.
pub fn short_file(file: &str) -> &str {
    let last = file.rsplit('/').next().unwrap_or(file);
    let keep = if last == "__init__.py" || last == "__main__.py" { 2 } else { 1 };
    let mut from = file.len();
    for part in file.rsplit('/').take(keep) {
        from = from.saturating_sub(part.len() + 1);
    }
    file[from..].trim_start_matches('/')
}

/// `service.py:44`; a place without a file is said by its function.
pub fn line(place: &Place) -> String {
    at(place).unwrap_or_else(|| self::place(place))
}

fn at(place: &Place) -> Option<String> {
    place.file.as_deref().map(|file| match place.line {
        Some(line) => format!("{}:{line}", short_file(file)),
        None => short_file(file).to_owned(),
    })
}

/// A function and the share that it takes: `decode takes 31 % of the step (service.py:44)` where that line has all of it, else
/// `decode takes 31 % of the step (hottest line service.py:44, 12 %)`.
pub fn takes(place: &Place, share: &str, function: f64, line: f64) -> String {
    match (&place.function, at(place)) {
        (Some(name), Some(at)) if place.line.is_some() && percent(function) != percent(line) => {
            format!("{name} takes {share} (hottest line {at}, {})", percent(line))
        }
        (Some(name), Some(at)) => format!("{name} takes {share} ({at})"),
        _ => format!("{} takes {share}", self::place(place)),
    }
}

pub fn place(place: &Place) -> String {
    match (&place.function, at(place)) {
        (Some(function), Some(at)) => format!("{function} ({at})"),
        (Some(function), None) => function.clone(),
        (None, Some(at)) => at,
        (None, None) => "an unrecorded place".into(),
    }
}

/// A thread by its name; of several processes, with its program and pid.
pub fn thread(timeline: &Timeline, track: TrackIndex) -> String {
    let track = &timeline.tracks[track.0 as usize];
    let name = if track.name.is_empty() { format!("thread {}", track.tid) } else { track.name.to_string() };
    let process = timeline.process(track);
    match timeline.processes.len() {
        0 | 1 => name,
        _ if process.program.is_empty() => format!("{name} of pid {}", process.pid),
        _ => format!("{name} of {}, pid {}", process.program, process.pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0.0, 0.004, 0.0314, 0.31, 1.0].map(percent), ["0 %", "0.4 %", "3.1 %", "31 %", "100 %"]);
        assert_eq!([7, 1_000, 1_234_567].map(count), ["7", "1,000", "1,234,567"]);
        assert_eq!(
            [counted(1, "batch"), counted(3, "batch"), counted(2, "step"), counted(2, "copy")],
            ["1 batch", "3 batches", "2 steps", "2 copies"]
        );
        assert_eq!([percent_of(1, 3), percent_of(0, 0), percent_of(1, 1_000_000)], ["33.3 %", "0.0 %", "<0.1 %"]);
    }

    #[test]
    fn a_change_has_the_one_minus_sign() {
        let changes = [-0.364, 0.125, 0.0, -0.00004, 1.5, 27.0].map(change);
        assert_eq!(changes, ["−36.4 %", "+12.5 %", "0.0 %", "0.0 %", "+150 %", "+2700 %"]);
        assert_eq!([longer(11_800_000), longer(-3_000), longer(0)], ["+11.8 ms", "−3.00 µs", "+0 ns"]);
        assert_eq!([percent_or_less(0.0), percent_or_less(0.0007), percent_or_less(0.02)], ["0 %", "<0.1 %", "2.0 %"]);
    }

    #[test]
    fn a_gain_has_its_range_where_there_is_one() {
        let (exact, wide) = (Share::exactly(0.2), Share { low: 0.54, mid: 0.59, high: 0.66 });
        assert_eq!([less(exact, ""), less(wide, ", bounds only")], ["−20 %", "−59 %, range 54–66, bounds only"]);
        assert_eq!(
            [saving_of(exact, "the time", ""), saving_of(wide, "the time", "")],
            ["20 % of the time", "59 % of the time (range 54–66)"]
        );
    }

    #[test]
    fn files_are_known_by_their_end() {
        let files = ["/srv/app/service.py", "/usr/lib/python3.12/logging/__init__.py", "__init__.py", "a.py", ""];
        assert_eq!(files.map(short_file), ["service.py", "logging/__init__.py", "__init__.py", "a.py", ""]);
    }
}
