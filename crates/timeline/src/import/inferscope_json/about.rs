//! What the file says of the recording as a whole: `trace_metadata` and `system_info`.

use super::event::LONGEST;
use crate::Info;
use crate::import::json::fields::{Raw, fields};

/// Gives the recording's duration in nanoseconds, if it is there.
pub fn trace_metadata(text: &str, info: &mut Info) -> Option<u64> {
    let mut duration = None;
    _ = fields(text, |key, value| match key {
        "timestamp_created" => info.created_unix_ns = value.text().and_then(|text| unix_ns(&text)).unwrap_or(0),
        "duration_ms" => {
            duration = value.scaled(6).filter(|nanos| (0..=LONGEST).contains(nanos)).map(|nanos| nanos as u64)
        }
        "hostname" => info.host.hostname = value.owned(),
        "command" => info.command = value.owned(),
        "inferscope_version" => info.version = value.owned(),
        _ => {}
    });
    duration
}

pub fn system_info(text: &str, info: &mut Info) {
    let count = |value: Raw<'_>| value.whole().and_then(|number| u64::try_from(number).ok());
    // Two decimals are all that the file has.
    let hundredths = |value: Raw<'_>| value.scaled(2).and_then(|number| u64::try_from(number).ok());
    _ = fields(text, |key, value| match key {
        "cpu_count" => info.host.cpu_count = count(value),
        "cpu_model" => info.host.cpu_model = value.owned(),
        "numa_nodes" => info.host.numa_nodes = count(value),
        "ram_gb" => info.host.ram_bytes = hundredths(value).map(|part| part.saturating_mul(1 << 30) / 100),
        _ => {}
    });
}

/// `2026-11-15T09:30:12[.5][Z]`. A time with an offset is not taken for one without.
fn unix_ns(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', ' '])?;
    let time = time.strip_suffix('Z').or_else(|| time.strip_suffix("+00:00")).unwrap_or(time);
    let number = |text: &str| text.parse::<u16>().ok().map(u64::from);
    let mut parts = date.splitn(3, '-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second = crate::import::json::number::scaled(parts.next()?, 9).and_then(|second| u64::try_from(second).ok())?;
    let sane = (1970..2500).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sane || hour > 23 || minute > 59 || second > 61_000_000_000 {
        return None;
    }
    // Years that begin in March, so that the leap day comes last.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some((days * 86_400 + hour * 3600 + minute * 60) * 1_000_000_000 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_nanoseconds_since_1970() {
        assert_eq!(unix_ns("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_ns("2026-09-21T14:13:20Z"), Some(1_790_000_000_000_000_000));
        assert_eq!(unix_ns("2024-02-29 23:59:59.25"), Some(1_709_251_199_250_000_000));
        for wrong in
            ["", "T", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+02:00", "9999-01-01T00:00:00Z", "1e9-1-1T1:1:1"]
        {
            assert_eq!(unix_ns(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_types_are_unknown() {
        let mut info = Info::default();
        assert_eq!(trace_metadata(r#"{"duration_ms":"1.5","hostname":7,"command":null}"#, &mut info), Some(1_500_000));
        system_info(r#"{"cpu_count":-1,"numa_nodes":"2","ram_gb":1e30,"cpu_model":[]}"#, &mut info);
        assert_eq!((info.host.cpu_count, info.host.numa_nodes, info.host.ram_bytes), (None, Some(2), None));
    }
}
