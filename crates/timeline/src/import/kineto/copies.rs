//! Which way a copy goes and between which kinds of memory, from its name: "Memcpy HtoD (Pageable -> Device)"; and what a wait
//! waited for. Numbers are those of CUPTI, as in [`trace::tables::detail`].

use crate::gpu::detail;

/// A copy's detail.
pub fn copy(name: &str) -> u32 {
    let inside = name.split_once('(').map_or("", |(_, inside)| inside);
    let (from, to) = inside.trim_end_matches(')').split_once("->").unwrap_or_default();
    let (source, target) = (memory(from), memory(to));
    let direction = match name.strip_prefix("Memcpy").unwrap_or(name).split_whitespace().next().unwrap_or("") {
        "HtoD" | "HtoA" | "HostToDevice" | "CopyHostToDevice" => detail::H2D,
        "DtoH" | "AtoH" | "DeviceToHost" | "CopyDeviceToHost" => detail::D2H,
        "DtoD" | "AtoA" | "AtoD" | "DtoA" | "DeviceToDevice" | "CopyDeviceToDevice" => detail::D2D,
        "HtoH" => detail::H2H,
        "PtoP" => detail::P2P,
        _ => match (source, target) {
            (detail::DEVICE, detail::DEVICE) => detail::D2D,
            (detail::DEVICE, 1..) => detail::D2H,
            (1.., detail::DEVICE) => detail::H2D,
            _ => 0,
        },
    };
    detail::pack(direction, source, target, 0) as u32
}

/// CUPTI's numbers of kinds of memory; 0: not said. AMD says only "Host".
fn memory(word: &str) -> u8 {
    match word.trim() {
        "Pageable" => detail::PAGEABLE,
        "Pinned" => detail::PINNED,
        "Device" => detail::DEVICE,
        "Array" => 4,
        "Managed" => 5,
        "Device Static" => 6,
        "Managed Static" => 7,
        _ => 0,
    }
}

/// CUPTI's number of a sort of wait; 0: not known.
pub fn wait(words: &str) -> u32 {
    match words {
        "Event Sync" | "Event Synchronize" => 1,
        "Stream Wait Event" => 2,
        "Stream Sync" | "Stream Synchronize" => 3,
        "Context Sync" | "Context Synchronize" | "Device Sync" => 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies_say_where_from_and_where_to() {
        for (name, expected) in [
            ("Memcpy HtoD (Pageable -> Device)", [detail::H2D, detail::PAGEABLE, detail::DEVICE, 0]),
            ("Memcpy DtoH (Device -> Pinned)", [detail::D2H, detail::DEVICE, detail::PINNED, 0]),
            ("Memcpy DtoD (Device -> Device)", [detail::D2D, detail::DEVICE, detail::DEVICE, 0]),
            ("Memcpy PtoP (Device -> Device)", [detail::P2P, detail::DEVICE, detail::DEVICE, 0]),
            ("Memcpy HtoD (Host -> Device)", [detail::H2D, 0, detail::DEVICE, 0]),
            ("CopyDeviceToHost", [detail::D2H, 0, 0, 0]),
            ("Memcpy (Pinned -> Device)", [detail::H2D, detail::PINNED, detail::DEVICE, 0]),
            ("Memcpy", [0; 4]),
            ("", [0; 4]),
        ] {
            assert_eq!(copy(name).to_le_bytes(), expected, "{name}");
        }
    }
}
