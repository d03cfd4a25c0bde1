//! The devices: how busy, what they run, and what their driver says.

use super::View;
use super::table::{cut, table};
use crate::model::{Device, Model};
use ratatui::text::Line;
use report::{bytes, count, duration};

pub fn lines(model: &Model, view: &View) -> Vec<Line<'static>> {
    if model.devices.is_empty() {
        return vec![Line::styled(cut("No GPU was recorded in this window.", view.width), view.look.faint())];
    }
    let rows: Vec<Vec<String>> = model.devices.iter().map(|device| row(device, view)).collect();
    let mut lines = table(view, &["GPU", "busy", "kernels/s", "memory", "clock", "power", "temp", "device"], &rows);
    let throttled = model.devices.iter().filter(|device| device.throttle_reasons.is_some_and(|bits| bits & !IDLE != 0));
    lines.extend(throttled.map(|device| {
        Line::styled(
            cut(&format!("GPU {}: the driver holds its clocks back", device.index), view.width),
            view.look.warn(),
        )
    }));
    let kernel = |kernel: &crate::model::Kernel| {
        let cells = [
            format!("{:.0} %", kernel.share_percent),
            count(kernel.count),
            duration(kernel.mean_ns),
            kernel.name.clone(),
        ];
        cells.iter().map(|cell| view.shown(cell)).collect::<Vec<String>>()
    };
    let rows: Vec<Vec<String>> = model.kernels.iter().map(kernel).filter(|row| view.wants(&row[3])).collect();
    if !rows.is_empty() {
        lines.push(Line::raw(""));
        lines.extend(table(view, &["time", "count", "mean", "kernel"], &rows));
    }
    lines
}

/// NVML's bit for "nothing to do": no reason to worry.
const IDLE: i64 = 1;

fn row(device: &Device, view: &View) -> Vec<String> {
    let unknown = || "-".to_owned();
    let or = |value: Option<String>| value.unwrap_or_else(unknown);
    // From recorded work where there is some; what the driver says is the part of its readings in which any kernel ran.
    let busy = device.busy_percent.map(|busy| format!("{busy:.0} %"));
    let said = device.utilisation_percent.map(|percent| format!("{percent} %*"));
    let memory = match (device.memory_used_bytes, device.memory_total_bytes) {
        (Some(used), Some(total)) => Some(format!("{} of {}", bytes(used), bytes(total))),
        (Some(used), None) => Some(bytes(used)),
        _ => None,
    };
    let cells = [
        device.index.to_string(),
        or(busy.or(said)),
        or(device.kernels_per_s.map(|rate| count(rate as u64))),
        or(memory),
        or(device.sm_clock_mhz.map(|clock| format!("{clock} MHz"))),
        or(device.power_mw.map(|power| format!("{} W", power / 1000))),
        or(device.temperature_c.map(|degrees| format!("{degrees} °C"))),
        device.name.clone(),
    ];
    cells.iter().map(|cell| view.shown(cell)).collect()
}
