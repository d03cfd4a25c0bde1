//! Durations and sizes as people read them, for every sentence and every table of ours: three digits, and a unit.

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

/// Three digits are as many as anybody compares.
fn three(value: f64, unit: &str) -> String {
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {unit}")
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
    fn sizes_keep_three_digits() {
        assert_eq!([bytes(0), bytes(999), bytes(1024), bytes(3 << 30)], ["0 B", "999 B", "1.00 KiB", "3.00 GiB"]);
        assert_eq!(bytes(u64::MAX), "16384 PiB");
    }
}
