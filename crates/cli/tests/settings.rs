//! `inferscope config show`, help and version: who wins, what is refused, and that it costs nothing to ask.

use crate::support::Place;

fn line(out: &str, key: &str) -> String {
    let mut found = out.lines().filter(|line| line.split_whitespace().next() == Some(key));
    let line = found.next().unwrap_or_else(|| panic!("no {key} in {out}"));
    assert!(found.next().is_none());
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_value_is_shown_with_its_origin() {
    let place = Place::new("settings");
    assert_eq!(line(&place.run(["config", "show"]).fine().out, "rate_hz"), "rate_hz 100 default");
    let file =
        place.write(".inferscope.yaml", "# ours\nrate_hz: 250\ncalls: c\ncalls_exclude: [logging, '*/tests/*']\n");
    std::fs::create_dir_all(place.at("deep/down")).unwrap();
    let below =
        place.command(["config", "show"]).current_dir(place.at("deep/down")).env("INFERSCOPE_TOP", "7").output();
    let out = String::from_utf8(below.unwrap().stdout).unwrap();
    let file = file.canonicalize().unwrap();
    assert_eq!(line(&out, "rate_hz"), format!("rate_hz 250 {}:2", file.display()));
    assert_eq!(line(&out, "calls_exclude"), format!("calls_exclude logging,*/tests/* {}:4", file.display()));
    assert_eq!(line(&out, "top"), "top 7 INFERSCOPE_TOP");
    let out = place.command(["config", "show", "--quiet"]).env("INFERSCOPE_RATE_HZ", "333").output().unwrap().stdout;
    assert_eq!(line(&String::from_utf8(out).unwrap(), "rate_hz"), "rate_hz 333 INFERSCOPE_RATE_HZ");
}

#[test]
fn a_bad_file_stops_every_command_before_anything_starts() {
    let place = Place::new("bad-settings");
    for (text, words) in [
        ("rate_hertz: 100\n", "did you mean rate_hz?"),
        ("rate_hz: [1, 2\n", ".inferscope.yaml:"),
        ("rate_hz: many\n", ".inferscope.yaml:1: rate_hz: many"),
        ("- a list\n", ".inferscope.yaml:1:"),
        ("rate_hz: 1\nrate_hz: 2\n", "rate_hz"),
        ("\tx: 1", ".inferscope.yaml:1"),
        ("a: &a [*a]\n", ".inferscope.yaml"),
        ("rate_hz: 0\n", "1 to 1000"),
        ("trace_size_mb: 10000000\n", "1 to 65536"),
        ("\u{0}", ".inferscope.yaml"),
    ] {
        place.write(".inferscope.yaml", text);
        for arguments in [vec!["config", "show"], vec!["run", "--", "sh", "-c", "echo started"], vec!["doctor"]] {
            let error = place.run(&arguments).refused(2);
            assert!(error.contains(words) && error.lines().count() == 1, "{text:?}: {error}");
        }
    }
    place.write(".inferscope.yaml", [0xff, 0xfe, 0x00]);
    place.run(["config", "show"]).refused(2);
    std::fs::remove_file(place.at(".inferscope.yaml")).unwrap();
    std::fs::create_dir(place.at(".inferscope.yaml")).unwrap();
    place.run(["config", "show"]).refused(2);
    assert!(!place.at("inferscope-traces").exists());
}

#[test]
fn absurd_values_are_refused_before_anything_starts() {
    let place = Place::new("absurd");
    for option in [
        ["--rate", "-1"],
        ["--rate", "0"],
        ["--rate", "1000000000"],
        ["--rate", "fast"],
        ["--trace-size-mb", "0"],
        ["--trace-size-mb", "10000000"],
        ["--trace-size-mb", "99999999999999999999"],
        ["--memory-hz", "nan"],
        ["--memory-hz", "-5"],
        ["--min-us", "-1"],
        ["--gpu-detail", "everything"],
        ["--gpu-detail", ""],
        ["--overhead-budget", "0"],
        ["--overhead-budget", "-2%"],
        ["--overhead-budget", "two"],
        ["--overhead-budget", "2 percent"],
        ["--overhead-budget", "nan"],
        ["--overhead-budget", "101%"],
        ["--device-hz", "-1"],
        ["--device-hz", "1e9"],
        ["--color", "mauve"],
    ] {
        let error = place.run(["run", option[0], option[1], "--", "sh", "-c", "echo started"]).refused(2);
        assert!(error.contains(option[0]) && error.contains("must be"), "{option:?}: {error}");
    }
    assert!(place.run(["run", "--calls=sometimes", "--", "true"]).refused(2).contains("--calls"));
    assert!(place.run(["run", "--no-such-option", "--", "true"]).refused(2).contains("--no-such-option"));
    for duration in ["0", "-1", "nan", "1e30", "soon"] {
        assert!(place.run(["attach", "1", "--duration", duration]).refused(2).contains("--duration"));
    }
    for pid in ["0", "-3", "many"] {
        place.run(["attach", pid]).refused(2);
    }
    let told = place.command(["run", "--", "true"]).env("INFERSCOPE_RATE_HZ", "lots").output().unwrap();
    assert_eq!(told.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&told.stderr).contains("INFERSCOPE_RATE_HZ=lots"));
}

#[test]
fn help_teaches_and_version_is_one_line() {
    let place = Place::new("help");
    let help = place.run(["--help"]).fine();
    for word in ["run", "attach", "analyze", "export", "doctor", "config", "completions", "Examples:"] {
        assert!(help.out.contains(word), "{word}");
    }
    assert!(!help.out.contains("record  "), "the recorder of the package is not for people");
    for command in ["run", "attach", "analyze", "export"] {
        assert!(place.run([command, "--help"]).fine().out.contains("Examples:"), "{command}");
    }
    let help = place.run(["run", "--help"]).fine().out;
    for flag in ["--gpu-detail", "--overhead-budget", "--layers", "--device-hz"] {
        assert!(help.contains(flag), "{flag}: {help}");
    }
    assert_eq!(place.run(["--version"]).fine().out, concat!("inferscope ", env!("CARGO_PKG_VERSION"), "\n"));
    assert!(place.run(["completions", "bash"]).fine().out.contains("inferscope"));
}

#[test]
fn doctor_says_what_can_be_recorded() {
    let place = Place::new("doctor");
    let out = place.run(["doctor"]).fine().out;
    for word in
        ["stacks", "scopes", "calls", "memory", "pressure", "clock", "/dev/shm", "disk", "Pythons", "smaps_rollup"]
    {
        assert!(out.contains(word), "{word}: {out}");
    }
    assert!(out.contains("GPUs"), "{out}");
}

#[test]
fn doctor_says_why_a_gpu_is_not_recorded() {
    let place = Place::new("doctor-gpu");
    let card = "sys/class/drm/card0/device";
    place.write(&format!("{card}/vendor"), "0x1002\n");
    place.write(&format!("{card}/product_name"), "AMD Instinct MI300X\n");
    place.write(&format!("{card}/gpu_busy_percent"), "12\n");
    let mut command = place.command(["doctor"]);
    command.env("INFERSCOPE_SYSFS", place.at("sys")).env("INFERSCOPE_NVML", place.at("no-such-library"));
    command.env("CUDA_INJECTION64_PATH", "/opt/nsight/libToolsInjection64.so");
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line = |words: &str| out.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {out}"));
    assert!(line("AMD Instinct MI300X").contains("gpu_power_mw (it has no hwmon)"), "{out}");
    assert!(line("CUDA_INJECTION64_PATH").contains("libToolsInjection64.so"), "{out}");
    assert!(out.contains("amdgpu device 0"), "what asking costs: {out}");
    assert!(out.contains("no-such-library"), "{out}");
}
