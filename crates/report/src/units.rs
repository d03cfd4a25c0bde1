//! Numbers for people: three digits that matter, and a unit.

pub use analysis::phrase::count;

/// `850 ns`, `1.23 µs`, `45.6 ms`, `7.89 s`, `12 min 05 s`, `3 h 07 min`.
pub fn duration(nanos: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..999_500 => three(nanos as f64 / 1e3, "µs"),
        999_500..999_500_000 => three(nanos as f64 / 1e6, "ms"),
        999_500_000..600_000_000_000 => three(nanos as f64 / 1e9, "s"),
        _ if nanos < 3600 * SECOND => format!("{} min {:02} s", nanos / SECOND / 60, nanos / SECOND % 60),
        _ => format!("{} h {:02} min", nanos / SECOND / 3600, nanos / SECOND / 60 % 60),
    }
}

/// `512 B`, `1.00 KiB`, `3.21 GiB`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { three(value, UNITS[unit]) }
}

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// `1 process`, `2 processes`.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number as u64), if number == 1 { one } else { many })
}

/// `12.3 %`; `<0.1 %` for what is there but small.
pub fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 * 100.0 / whole.max(1) as f64;
    if part > 0 && share < 0.1 { "<0.1 %".into() } else { format!("{share:.1} %") }
}

fn three(value: f64, unit: &str) -> String {
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {unit}")
}

/// `2026-11-15 05:55:21 UTC` of nanoseconds since 1970.
pub fn date(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Days since 1970 to a date: eras of 400 years that start in March, so that the leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_234, "1.23 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (45_600_000, "45.6 ms"),
            (7_890_000_000, "7.89 s"),
            (599_900_000_000, "600 s"),
            (725_000_000_000, "12 min 05 s"),
            (11_220_000_000_000, "3 h 07 min"),
            (u64::MAX, "5124095 h 34 min"),
        ];
        for (nanos, text) in cases {
            assert_eq!(duration(nanos), text);
        }
    }

    #[test]
    fn bytes_counts_shares_and_dates() {
        assert_eq!([bytes(0), bytes(999), bytes(1024), bytes(3 << 30)], ["0 B", "999 B", "1.00 KiB", "3.00 GiB"]);
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!([count(7), count(1234), count(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!([percent(1, 3), percent(0, 0), percent(1, 1_000_000)], ["33.3 %", "0.0 %", "<0.1 %"]);
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_790_000_000_000_000_000), "2026-09-21 14:13:20 UTC");
    }
}
