//! How many kernels have no layer, and why, in a recording that was asked for layers: a table that lacks most of them is else
//! taken for the whole. How kernels get their layers is in `layers`. Without a GPU: in how many calls of a model layers were recorded.

use super::HealthState::{self, Info, Ok, Warn};
use crate::rule::Case;
use crate::wording::origin::not_recorded;
use analysis::device::gpu::Unnamed;
use analysis::origin::failed;
use analysis::phrase;
use timeline::{CollectorCode, Condition};

/// Preparing, sampling and the like are launched from no module: from here on it is more than that.
const MAX_SHARE_WITHOUT_LAYER: f64 = 0.5;

/// None: layers were not asked for, or nothing could have one.
pub fn line(case: &Case) -> Option<(HealthState, String)> {
    let Some(gpu) = case.gpu() else { return on_host(case) };
    let unnamed = gpu.unnamed.filter(|unnamed| unnamed.kernels > 0)?;
    let (all, without) = (phrase::counted(unnamed.kernels, "kernel"), unnamed.count());
    if without == 0 {
        return Some((Ok, format!("{all}, all with a layer")));
    }
    let state = if without as f64 >= MAX_SHARE_WITHOUT_LAYER * unnamed.kernels as f64 { Warn } else { Info };
    let why = if unnamed.any_layer { missing(&unnamed) } else { no_layer(case, WITHOUT_GPU) };
    let none = if without == unnamed.kernels { "none with a layer".to_owned() } else { some(without) };
    Some((state, format!("{all}, {none}: {why}")))
}

/// Layers have the host's time.
fn on_host(case: &Case) -> Option<(HealthState, String)> {
    case.timeline.info.settings.layers.filter(|asked| *asked)?;
    let layers = case.host_layers();
    if layers.is_empty() {
        return Some((Warn, format!("none recorded: {}", no_layer(case, "no call of a module was recorded"))));
    }
    let calls = phrase::counted(layers.model_calls, "call");
    let left_out = match layers.left_out {
        0 => String::new(),
        count => format!("; {} excluded (the first, or slowed by recording operators)", phrase::count(count)),
    };
    Some((Ok, format!("{} in {calls} of a model{left_out}", phrase::counted(layers.rows.len() as u64, "layer"))))
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

const WITHOUT_GPU: &str = "no module call was recorded while the GPU was recorded";

/// Why there are no layers at all; `otherwise` where nothing says it.
fn no_layer(case: &Case, otherwise: &str) -> String {
    let mut states = case.timeline.processes.iter().flat_map(|process| &process.collectors);
    if failed(case.timeline, CollectorCode::Layers) {
        return not_recorded(case.timeline, CollectorCode::Layers, "recording them failed");
    }
    match states.any(|state| state.name == CollectorCode::Layers && state.state == Condition::On) {
        true => otherwise.into(),
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
    }

    #[test]
    fn without_a_gpu_the_calls_that_have_layers_are_counted() {
        let calls = "track main\n layer m 0..9us\n layer m 20us..29us\n layer m.fc 21us..25us\n layer m 30us..39us";
        assert_eq!(
            said(&format!("layers on\n {calls}")),
            Some((
                Ok,
                "2 layers in 2 calls of a model; 1 excluded (the first, or slowed by recording operators)".into()
            ))
        );
        assert_eq!(said(calls), None, "they were not asked for");
        let none = |head: &str| said(&format!("layers on\n {head}\n track main\n step r 0..1ms")).unwrap();
        assert_eq!(none(""), (Warn, "none recorded: PyTorch was not imported in any process with collectors".into()));
        assert_eq!(none("collector layers on").1, "none recorded: no call of a module was recorded");
    }
}
