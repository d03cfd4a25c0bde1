//! Samples and alerts as lines for people.

use report::bytes;
use telemetry::collect::Reading;
use telemetry::track::Alert;

fn place(reading_name: &str, device_id: i64) -> String {
    if device_id < 0 { reading_name.to_owned() } else { format!("device {device_id} ({reading_name})") }
}

pub fn said(alert: &Alert) -> String {
    let used = alert.counters.used.map_or(String::new(), |used| format!(", {}", bytes(used)));
    format!("{}: {} {:.0} % full{used}", alert.kind.name(), place(&alert.name, alert.device_id), alert.share * 100.0)
}

pub fn shown(reading: &Reading) -> String {
    let counters = &reading.counters;
    let used = counters.used.zip(counters.total).map_or("not reported".into(), |(used, total)| {
        format!("{} of {} used ({:.0} %)", bytes(used), bytes(total), used as f64 / total.max(1) as f64 * 100.0)
    });
    let held = reading.process_bytes.map_or(String::new(), |held| format!(", {} by this program", bytes(held)));
    format!("{}: {used}{held}", place(&reading.name, reading.device_id))
}
