//! A request for GPU memory that failed, in sentences and as JSON: what was asked, what there was, who held it, and which setting would have served it.

use crate::memory_words;
use crate::units::{bytes, counted, duration};
use analysis::phrase;
use diagnosis::failed_request::{Asked, FailedRequest};
use serde_json::{Value, json};

/// Lines and uses that are worth a sentence.
const MOST_HOLDERS: usize = 3;

/// What happened, and what there was.
pub fn sentences(request: &FailedRequest) -> Vec<String> {
    let mut said = vec![format!(
        "{} It ended {} later, without being given any more.",
        asked(request),
        duration(request.until_end)
    )];
    said.extend(of_device(request));
    said.extend(of_allocator(request));
    said.extend(held(request));
    said
}

/// Where the program did not die of it, as far as that is known.
pub fn of_survivor(request: &FailedRequest) -> String {
    let after = match request.went_on {
        true => "the program was given GPU memory after that",
        false => "the program went on",
    };
    format!(
        "A request for {} of GPU memory failed {} before the end, and {after}: whether it ended because of it is not known.",
        bytes(request.bytes),
        duration(request.until_end)
    )
}

fn asked(request: &FailedRequest) -> String {
    let device = request.device.map_or("a GPU".into(), |device| format!("GPU {device}"));
    let size = bytes(request.bytes);
    let times = match request.failures {
        0 | 1 => String::new(),
        count => format!(" ({} failed in all)", counted(count, "request")),
    };
    match request.asked {
        Asked::Allocator => {
            format!(
                "Out of GPU memory: PyTorch's allocator could not get {size} on {device} for pid {}{times}.",
                request.pid
            )
        }
        Asked::Driver => {
            format!("Out of GPU memory: the CUDA driver refused {size} on {device} to pid {}{times}.", request.pid)
        }
    }
}

fn of_device(request: &FailedRequest) -> Option<String> {
    let own = request.taken.map(|taken| format!("this process had taken {} from the driver", bytes(taken)));
    match (request.device_free, request.device_total, own) {
        (Some(free), Some(total), own) => {
            let own = own.map_or(String::new(), |own| format!("; {own}"));
            Some(format!("The device had {} of {} free{own}.", bytes(free), bytes(total)))
        }
        (Some(free), None, own) => {
            let own = own.map_or(String::new(), |own| format!("; {own}"));
            Some(format!("The device had {} free{own}.", bytes(free)))
        }
        (None, Some(total), Some(own)) => {
            Some(format!("What the device had free was not recorded; of its {}, {own}.", bytes(total)))
        }
        (None, None, Some(own)) => Some(format!("What the device had free was not recorded; {own}.")),
        (None, Some(total), None) => Some(format!("The device has {}; what was free was not recorded.", bytes(total))),
        (None, None, None) => None,
    }
}

fn of_allocator(request: &FailedRequest) -> Option<String> {
    let allocated = request.allocated?;
    let of = request.reserved.map_or(String::new(), |reserved| format!(" of {} reserved", bytes(reserved)));
    let holes = match &request.holes {
        Err(why) => format!("how the rest is split is not known: {why}"),
        Ok(holes) if holes.count == 0 => "none of it was free".into(),
        Ok(holes) => {
            let enough = match holes.free >= request.bytes {
                true if holes.largest >= request.bytes => "",
                true => ": enough in all, but in no piece",
                false => ": less than was asked for",
            };
            format!(
                "{} was free in {}, the largest {}{enough}",
                bytes(holes.free),
                counted(holes.count, "hole"),
                bytes(holes.largest)
            )
        }
    };
    Some(format!("PyTorch's allocator had {} in use{of}; {holes}.", bytes(allocated)))
}

/// Who held it: by line, and by use, as far as either was recorded.
fn held(request: &FailedRequest) -> Vec<String> {
    let mut said = Vec::new();
    let lines: Vec<String> = request
        .holders
        .iter()
        .take(MOST_HOLDERS)
        .map(|holder| format!("{} ({})", phrase::place(&holder.place), memory_words::held(holder)))
        .collect();
    if !lines.is_empty() {
        said.push(format!("Most was held by {}.", lines.join(", ")));
    }
    let uses: Vec<String> = request
        .categories
        .iter()
        .take(MOST_HOLDERS)
        .map(|(category, held, blocks)| {
            format!("{} in {}, {}", bytes(*held), counted(*blocks, "block"), category.said())
        })
        .collect();
    if !uses.is_empty() {
        said.push(format!("By use: {}.", uses.join("; ")));
    }
    said
}

/// What would have served it.
pub fn setting(request: &FailedRequest) -> String {
    match &request.setting {
        Ok(Some(setting)) => {
            format!("PYTORCH_CUDA_ALLOC_CONF={} would have served it: simulated on the recorded blocks.", setting.text())
        }
        Ok(None) => "No setting of PyTorch's allocator that was simulated would have served it: hold less, or ask for less at once.".into(),
        Err(why) if request.asked == Asked::Driver => {
            format!("Which setting would have helped is not known: {why} (record with --memory-events gpu).")
        }
        Err(why) => format!("Which setting would have helped is not known: {why}."),
    }
}

/// The same in numbers.
pub fn json(request: &FailedRequest) -> Value {
    let holes = request.holes.as_ref().ok();
    let holder = |holder: &analysis::memory::who::Holder| json!({ "place": phrase::place(&holder.place), "bytes": holder.bytes, "error_bytes": holder.error, "blocks": holder.blocks });
    let category = |(category, bytes, blocks): &(analysis::memory::who::Category, u64, u64)| json!({ "category": category.name(), "bytes": bytes, "blocks": blocks });
    json!({
        "asked_of": match request.asked { Asked::Allocator => "allocator", Asked::Driver => "driver" },
        "bytes": request.bytes,
        "pid": request.pid,
        "device": request.device,
        "failures": request.failures,
        "until_end_ns": request.until_end,
        "device_total_bytes": request.device_total,
        "device_free_bytes": request.device_free,
        "driver_taken_bytes": request.taken,
        "allocator_allocated_bytes": request.allocated,
        "allocator_reserved_bytes": request.reserved,
        "allocator_free_bytes": holes.map(|holes| holes.free),
        "holes": holes.map(|holes| holes.count),
        "largest_hole_bytes": holes.map(|holes| holes.largest),
        "holders": request.holders.iter().map(holder).collect::<Vec<_>>(),
        "categories": request.categories.iter().map(category).collect::<Vec<_>>(),
        "setting_that_would_serve": request.setting.as_ref().ok().and_then(|setting| setting.as_ref()).map(|setting| setting.text()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnosis::failed_request::last;
    use diagnosis::{Options, diagnose};
    use timeline::Timeline;

    fn of(text: &str) -> FailedRequest {
        let timeline = Timeline::from_text(text).unwrap();
        last(&timeline, &diagnose(&timeline, &Options::default())).unwrap()
    }

    #[test]
    fn it_says_what_was_asked_what_there_was_and_who_held_it() {
        let text = "device 0 GPU\n track main\n alloc 1us 83886080 at 1048576\n block alloc 2us 60M at 1M main>load@model.py:3\n\
                    block alloc 3us 9M at 61M\n block free 4us 9M at 61M\n failed 5us 20971520 error 2\n oom 6us 20M free 10M";
        let request = of(text);
        let said = sentences(&request).join("\n");
        assert!(said.contains("could not get 20.0 MiB on GPU 0 for pid 1000."), "{said}");
        assert!(
            said.contains("The device had 10.0 MiB free; this process had taken 80.0 MiB from the driver."),
            "{said}"
        );
        assert!(
            said.contains("60.0 MiB in use of 80.0 MiB reserved; 20.0 MiB was free in 1 hole, the largest 20.0 MiB."),
            "{said}"
        );
        assert!(
            said.contains("load (model.py:3), 60.0 MiB") || said.contains("load (model.py:3) (60.0 MiB)"),
            "{said}"
        );
        assert_eq!(json(&request)["largest_hole_bytes"], 20 << 20);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let request = of(
            "device 0 GPU\n track main\n alloc 1us 1048576 at 1048576\n failed 5us 20971520 error 2\n alloc 9us 4096 at 16",
        );
        let said = sentences(&request).join("\n");
        assert!(said.contains("the CUDA driver refused 20.0 MiB") && said.contains("was not recorded"), "{said}");
        assert!(setting(&request).contains("--memory-events gpu"));
        assert!(of_survivor(&request).contains("is not known"));
    }
}
