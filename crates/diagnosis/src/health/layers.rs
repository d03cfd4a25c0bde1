//! How many kernels have no layer, and why, in a recording that was asked for layers: a table that lacks most of them is else
//! taken for the whole. How kernels get their layers is in `layers`.

use super::HealthState::{self, Info, Ok, Warn};
use crate::rule::Case;
use analysis::device::gpu::Unnamed;
use analysis::origin::failed;
use analysis::origin::not_recorded;
use analysis::phrase;

/// Preparing, sampling and the like are launched from no module: from here on it is more than that.
const MANY: f64 = 0.5;

/// None: layers were not asked for, or nothing could have one.
pub fn line(case: &Case) -> Option<(HealthState, String)> {
    let unnamed = case.gpu()?.unnamed.filter(|unnamed| unnamed.kernels > 0)?;
    let (all, without) = (phrase::counted(unnamed.kernels, "kernel"), unnamed.count());
    if without == 0 {
        return Some((Ok, format!("{all}, all with a layer")));
    }
    let state = if without as f64 >= MANY * unnamed.kernels as f64 { Warn } else { Info };
    let why = if unnamed.any_layer { missing(&unnamed) } else { no_layer(case) };
    let none = if without == unnamed.kernels { "none with a layer".to_owned() } else { some(without) };
    Some((state, format!("{all}, {none}: {why}")))
}

fn some(without: u64) -> String {
    format!("{} without a layer", phrase::count(without))
}

/// What is missing, most first.
fn missing(unnamed: &Unnamed) -> String {
    let mut parts = [
        (unnamed.outside, "launched outside the recorded module calls, and in no sequence seen in them"),
        (unnamed.of_graphs, "in CUDA graphs captured without layer recording"),
        (unnamed.without_launch, "whose launch was not recorded"),
    ];
    parts.sort_by_key(|part| u64::MAX - part.0);
    let said = parts.iter().filter(|part| part.0 > 0);
    said.map(|(count, what)| format!("{} {what}", phrase::count(*count))).collect::<Vec<_>>().join(", ")
}

/// Why there are no layers at all.
fn no_layer(case: &Case) -> String {
    let mut states = case.timeline.processes.iter().flat_map(|process| &process.collectors);
    if failed(case.timeline, "layers") {
        return not_recorded(case.timeline, "layers", "recording them failed");
    }
    match states.any(|state| state.name == "layers" && state.state == "on") {
        true => "no module call was recorded while the GPU was recorded".into(),
        false => "PyTorch was not imported in any process with collectors".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    fn said(text: &str) -> Option<(HealthState, String)> {
        let timeline = Timeline::from_text(text).unwrap();
        line(&Case::new(&timeline, None))
    }

    const HEAD: &str = "layers on\n collector layers on\n track main";
    const KERNELS: &str = "api cudaLaunchKernel 1us..2us\n stream 7\n kernel a 3us..4us
         api cudaLaunchKernel 11us..12us\n kernel b 13us..14us\n kernel lost 31us..32us corr 99";

    #[test]
    fn kernels_without_a_layer_are_counted_with_what_is_missing() {
        let (state, text) = said(&format!("{HEAD}\n layer m 0..9us\n {KERNELS}")).unwrap();
        assert_eq!(state, Warn);
        assert_eq!(
            text,
            "3 kernels, 2 without a layer: 1 launched outside the recorded module calls, and in no sequence seen in them, 1 whose launch was not recorded"
        );
        let few = "api cudaLaunchKernel 40us..41us\n kernel named 43us..44us\n".repeat(6);
        let (state, text) = said(&format!("{HEAD}\n layer m 0..9us\n layer m 39us..60us\n {KERNELS}\n {few}")).unwrap();
        assert_eq!(state, Info, "{text}");
    }

    #[test]
    fn a_recording_without_any_says_why() {
        let (state, text) = said(&format!("{HEAD}\n {KERNELS}")).unwrap();
        assert_eq!(state, Warn);
        assert_eq!(text, "3 kernels, none with a layer: no module call was recorded while the GPU was recorded");
        let without = |text: &str| said(&format!("{HEAD}\n {KERNELS}").replace("collector layers on", text)).unwrap().1;
        assert!(without("").ends_with("PyTorch was not imported in any process with collectors"));
        assert!(without("collector layers failed torch.compile is used").ends_with("torch.compile is used"));
    }

    #[test]
    fn all_is_well_or_nothing_was_asked_for() {
        let all =
            "layers on\n track main\n layer m 0..9us\n api cudaLaunchKernel 1us..2us\n stream 7\n kernel a 3us..4us";
        assert_eq!(said(all), Some((Ok, "1 kernel, all with a layer".into())));
        assert_eq!(said(&all.replace("layers on", "")), None);
        assert_eq!(said("layers on\n track main\n step r 0..1ms"), None);
    }
}
