//! Numbers for people: three digits that matter, and a unit.

pub use analysis::phrase::{bytes, count, counted, duration, percent_of};

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

/// Only what was counted is certain; an estimate never rounds up to it.
pub fn confidence(confidence: f64) -> String {
    let percent = confidence * 100.0;
    if percent >= 99.5 && confidence < 1.0 { "over 99 %".into() } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_790_000_000_000_000_000), "2026-09-21 14:13:20 UTC");
    }
}
