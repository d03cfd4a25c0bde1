//! Which value wins, and which is refused.

use super::*;

fn file(pairs: &[(&'static str, &str)]) -> Layer {
    let origin = |line| Origin::File { path: "x.yaml".into(), line };
    let value = |(line, (key, text)): (usize, &(&'static str, &str))| {
        (*key, (vec![(*text).to_owned()], origin(line as u64 + 1)))
    };
    Layer { values: pairs.iter().enumerate().map(value).collect() }
}

fn environment(pairs: &[(&str, &str)]) -> Layer {
    Layer::environment(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned()))
}

fn flags(pairs: &[(&'static str, &'static str, &str)]) -> Layer {
    let mut layer = Layer::default();
    pairs.iter().for_each(|(key, flag, value)| layer.flag(key, flag, &[(*value).to_owned()]));
    layer
}

fn load(file: Layer, environment: Layer, flags: Layer) -> Result<Settings, String> {
    Settings::from_layers(file, environment, flags).map_err(|failure| failure.message().to_owned())
}

#[test]
fn flags_win_over_variables_over_the_file_over_defaults() {
    let file = file(&[("rate_hz", "250"), ("top", "5"), ("memory_hz", "2.5")]);
    let variables = environment(&[("INFERSCOPE_RATE_HZ", "333"), ("INFERSCOPE_TOP", "7"), ("INFERSCOPE_CALLS", "c")]);
    let settings = load(file, variables, flags(&[("rate_hz", "--rate", "77")])).unwrap();
    assert_eq!((settings.recording.rate_hz, settings.top, settings.recording.memory_hz), (77, 7, 2.5));
    assert_eq!(settings.recording.calls, recorder::Calls::WithC);
    let origin = |key: &str| settings.shown.iter().find(|shown| shown.0 == key).unwrap().2.to_string();
    assert_eq!(
        ["rate_hz", "top", "memory_hz", "calls", "native"].map(origin),
        ["--rate", "INFERSCOPE_TOP", "x.yaml:3", "INFERSCOPE_CALLS", "default"]
    );
    let keys: Vec<&str> = settings.shown.iter().map(|shown| shown.0).collect();
    assert_eq!(keys, all().map(|setting| setting.key).collect::<Vec<_>>());
}

#[test]
fn absurd_values_are_refused_with_what_would_be_right() {
    let refused = |key, flag, text| load(Layer::default(), Layer::default(), flags(&[(key, flag, text)])).unwrap_err();
    for text in ["0", "-1", "1000000000", "fast", "", "99999999999999999999", "1.5"] {
        let error = refused("rate_hz", "--rate", text);
        assert!(error.starts_with("--rate") && error.contains("1 to 1000"), "{error}");
    }
    for text in ["0", "10000000", "-3"] {
        assert!(refused("trace_size_mb", "--trace-size-mb", text).contains("1 to 65536"));
    }
    for text in ["nan", "inf", "-5", "1e9"] {
        assert!(refused("memory_hz", "--memory-hz", text).contains("0 to 100"), "{text}");
    }
    assert!(refused("calls", "--calls", "sometimes").contains("true, false, or c"));
    assert!(refused("color", "--color", "mauve").contains("auto or always or never"));
    let error = load(Layer::default(), environment(&[("INFERSCOPE_RATE_HZ", "lots")]), Layer::default()).unwrap_err();
    assert!(error.starts_with("INFERSCOPE_RATE_HZ=lots: must be a whole number"), "{error}");
}

#[test]
fn a_value_that_makes_no_sense_is_refused_even_where_another_wins() {
    let error = load(file(&[("rate_hz", "many")]), Layer::default(), flags(&[("rate_hz", "--rate", "5")])).unwrap_err();
    assert!(error.starts_with("x.yaml:1: rate_hz: many: "), "{error}");
}

#[test]
fn what_is_recorded_of_cuda_can_be_chosen_anywhere() {
    let settings = load(Layer::default(), Layer::default(), Layer::default()).unwrap().recording;
    assert_eq!((settings.gpu_detail, settings.overhead_budget), (recorder::GpuDetail::Launch, recorder::Budget::Auto));
    assert_eq!((settings.layers, settings.device_hz), (false, 10.0));
    for (text, percent) in [("2", 2.0), ("2%", 2.0), ("2.5 %", 2.5), (" 100% ", 100.0)] {
        let flags = flags(&[("overhead_budget", "--overhead-budget", text)]);
        let settings = load(Layer::default(), Layer::default(), flags).unwrap();
        assert_eq!(settings.recording.overhead_budget, recorder::Budget::Windows(percent), "{text}");
    }
    // What YAML makes of `off`, and a budget of the file that a flag takes back.
    let file = file(&[("gpu_detail", "false"), ("overhead_budget", "3%"), ("layers", "yes"), ("device_hz", "0")]);
    let variables = environment(&[("INFERSCOPE_DEVICE_HZ", "0.5")]);
    let settings = load(file, variables, flags(&[("overhead_budget", "--overhead-budget", "none")])).unwrap();
    let shown = |key: &str| settings.shown.iter().find(|shown| shown.0 == key).map(|shown| shown.1.clone()).unwrap();
    assert_eq!(["gpu_detail", "overhead_budget", "layers", "device_hz"].map(shown), ["off", "none", "true", "0.5"]);
    assert_eq!(settings.recording.gpu_detail, recorder::GpuDetail::Off);
}

#[test]
fn lists_come_with_commas_or_one_by_one() {
    let mut flags = Layer::default();
    flags.flag("calls_include", "--include", &["a, b".into(), "c".into()]);
    let settings = load(Layer::default(), Layer::default(), flags).unwrap();
    assert_eq!(settings.recording.include, ["a", "b", "c"]);
}

#[test]
fn no_stacks_is_a_rate_of_none() {
    let settings = load(file(&[("stacks", "no"), ("rate_hz", "50")]), Layer::default(), Layer::default()).unwrap();
    assert_eq!(settings.recording.stack_rate_hz(), 0);
}
