//! The link to a device, what recording it cost, and why work has no launch.

use super::origin::not_recorded;
use analysis::device::gpu::OverheadHow;
use analysis::device::link::{Link, LinkUnknown};
use analysis::phrase;
use timeline::{CollectorCode, Timeline};

/// Why work has no launch where the clocks do not fit.
pub const WRONG_CLOCK: &str = "GPU timestamps are too far off to link work to its launch calls: see Data quality";

pub fn link(link: &Link) -> String {
    format!("PCI Express generation {}, {} lanes: {:.1} GB/s each way", link.generation, link.width, link.gb_per_s)
}

pub fn link_unknown(timeline: &Timeline, why: LinkUnknown) -> String {
    match why {
        LinkUnknown::NotRecorded => not_recorded(timeline, CollectorCode::Devices, "PCIe link not recorded"),
        LinkUnknown::SeveralGpus => {
            "the machine has several GPUs: the trace does not show whose link was used".to_owned()
        }
        LinkUnknown::Generation(generation) => format!("PCI Express generation {generation} is unknown"),
    }
}

/// How the overhead was got, after its percentage.
pub fn overhead(how: OverheadHow) -> String {
    match how {
        OverheadHow::Steps { with, without, longer } => {
            let each = match longer {
                0.0 => "no longer than".to_owned(),
                _ => format!("{} longer than", phrase::percent(longer)),
            };
            let (with, without) = (phrase::count(with), phrase::count(without));
            format!("mean over all steps: {with} steps with GPU recording take {each} {without} without (medians)")
        }
        OverheadHow::Windows { recorded, cost } => format!(
            "on average: GPU recorded for {} of the time, slowing the program by {} while it is on (measured)",
            phrase::percent(recorded),
            phrase::percent(cost)
        ),
        OverheadHow::OwnTime => {
            "collectors' own time on the program's threads; CUPTI's cost per launch comes on top (compare with a run without inferscope)".to_owned()
        }
        OverheadHow::NotMeasured => "not measured".to_owned(),
        OverheadHow::OwnTimeUnknown => "collectors' time on the program's threads not measured".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_recording_cost_is_said_by_how_it_was_got() {
        let steps = |longer| overhead(OverheadHow::Steps { with: 1200, without: 40, longer });
        assert!(steps(0.0).contains("1,200 steps with GPU recording take no longer than 40 without"));
        assert!(steps(0.05).contains("take 5.0 % longer than 40 without"));
    }
}
