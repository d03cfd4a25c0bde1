//! `inferscope diff`, `check` and `rules`, and user rules in reports: what they print, and how they end.

use crate::support::Place;
use serde_json::Value;
use std::fmt::Write;
use timeline::fixture::Fixture;

/// Ten steps; each launches two kernels.
fn trace(step_us: u64, kernel_us: u64) -> String {
    let mut text = String::from("process 100 serve.py 3.12.1\nthread 0 100 MainThread\n");
    for index in 0..10u64 {
        let (at, id) = (index * 20_000, index * 10 + 1);
        _ = writeln!(text, "step 0 100 {at}..{} request #{}", at + step_us, 500 + index);
        _ = writeln!(text, "api 0 100 {}..{} cudaLaunchKernel #{id}", at + 10, at + 20);
        _ = writeln!(text, "api 0 100 {}..{} cudaLaunchKernel #{}", at + 30, at + 40, id + 1);
        _ = writeln!(text, "kernel 0 0 7 {}..{} gemm #{id}", at + 50, at + 50 + kernel_us);
        _ = writeln!(text, "kernel 0 0 7 {}..{} norm #{}", at + 6000, at + 6100, id + 1);
    }
    text
}

fn place(name: &str) -> Place {
    let place = Place::new(name);
    Fixture::parse(&trace(8000, 2000)).write(&place.at("before"));
    Fixture::parse(&trace(9000, 3000)).write(&place.at("after"));
    Fixture::parse(&trace(8000, 2000).replace("request", "batch")).write(&place.at("other"));
    place
}

#[test]
fn what_got_slower_is_told_and_gates_decide_the_exit_code() {
    let place = place("diff");
    let told = place.run(["diff", "before", "after"]).fine();
    for text in [
        "A before",
        "Environment",
        "A step \"request\" is slower: 8.00 ms in A, 9.00 ms in B (+12.5 %)",
        "+1.00 ms",
        "gemm",
    ] {
        assert!(told.out.contains(text), "{text}: {}", told.out);
    }
    let told = place.run(["diff", "before", "after", "--fail-on", "step_p50 > +5%", "--fail-on", "kernels > +0"]);
    assert_eq!(told.code, Some(4), "{}", told.err);
    assert_eq!(told.err, "inferscope: gate failed: step_p50 > +5%: step_p50 went from 8.00 ms to 9.00 ms (+12.5 %)\n");
    assert!(told.out.contains("FAILED step_p50") && told.out.contains("passed kernels > +0"), "{}", told.out);
    place.run(["diff", "before", "after", "--fail-on", "step_p50 > +50%"]).fine();
    place.run(["diff", "before", "before", "--fail-on", "step_p50 > +0%"]).fine();
    let ascii = place.command(["diff", "before", "after"]).env("LC_ALL", "C").output().unwrap();
    assert!(ascii.stdout.is_ascii());
}

#[test]
fn other_arguments_are_told_without_being_recorded() {
    let place = place("diff-arguments");
    let with = |name: &str, arguments: &str| {
        let mut fixture = Fixture::parse(&trace(8000, 2000));
        fixture.manifest["arguments"] = arguments.into();
        fixture.write(&place.at(name));
    };
    with("a", "1f3a-00000001");
    with("b", "1f3a-00000002");
    with("elsewhere", "ffff-00000003");
    let environment =
        |a: &str, b: &str| place.run(["diff", a, b]).fine().out.split("Answer").next().unwrap().to_owned();
    assert!(environment("a", "b").contains("arguments (compared by hash): #00000001 → #00000002"));
    // The same, of another machine, or of a version that did not write it.
    for other in ["a", "elsewhere", "before"] {
        assert!(!environment("a", other).contains("arguments"), "{other}");
    }
    for (name, argument) in [("one", "hunter2"), ("same", "hunter2"), ("two", "hunter3")] {
        place.run(["run", "--quiet", "--output", name, "--", "true", argument]).fine();
    }
    let arguments = |name: &str| {
        for file in crate::support::files(&place.at(name)) {
            let bytes = std::fs::read(&file).unwrap();
            assert!(!bytes.windows(6).any(|word| word == b"hunter"), "{}", file.display());
        }
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(place.at(name).join("manifest.json")).unwrap()).unwrap();
        manifest["arguments"].as_str().map(str::to_owned)
    };
    let id = |path: &&str| std::fs::read_to_string(path).is_ok_and(|id| !id.trim().is_empty());
    let key = ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().any(id);
    assert_eq!(arguments("one").is_some(), key);
    assert_eq!(arguments("one"), arguments("same"));
    assert_eq!(arguments("one") != arguments("two"), key);
}

#[test]
fn programs_get_everything() {
    let place = place("diff-json");
    let told = place.run(["diff", "before", "after", "--format", "json", "--fail-on", "step_p50 > +5%"]);
    assert_eq!(told.code, Some(4));
    let document: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(document["steps"]["name"], "request");
    let kernel = document["changes"].as_array().unwrap().iter().find(|change| change["group"] == "kernel").unwrap();
    assert_eq!(
        (&kernel["name"], &kernel["delta_ns"], &kernel["noise"]),
        (&"gemm".into(), &1_000_000.0.into(), &"real".into())
    );
    assert_eq!(document["gates"][0]["state"], "failed");
    let metric =
        |name: &str| document["metrics"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    assert_eq!(metric("kernels")["a"]["value"], 2.0);
    assert!(metric("gpu_memory_mib")["a"]["why"].as_str().unwrap().contains("not recorded"));
    place.run(["diff", "before", "after", "--format", "json", "--output", "d.json"]).fine();
    assert!(serde_json::from_slice::<Value>(&std::fs::read(place.at("d.json")).unwrap()).is_ok());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = place("diff-bad");
    let error = place.run(["diff", "before", "other"]).refused(5);
    assert!(error.contains("the steps are \"request\" in A and \"batch\" in B"), "{error}");
    let error = place.run(["diff", "before", "nowhere"]).refused(5);
    assert!(error.contains("there is no trace at nowhere"), "{error}");
    let error = place.run(["diff", "before", "after", "--step", "nope"]).refused(5);
    assert!(error.contains("\"nope\" in before"), "{error}");
    let error = place.run(["diff", "before", "after", "--fail-on", "step_p5 > +5%"]).refused(2);
    assert!(error.contains("did you mean step_p50?"), "{error}");
    let told = place.run(["diff", "before", "after", "--fail-on", "gpu_memory_mib > +5%"]);
    assert_eq!(told.code, Some(5));
    assert!(told.err.contains("gate gpu_memory_mib > +5%: no data ("), "{}", told.err);
}

#[test]
fn limits_hold_fail_or_cannot_be_decided() {
    let place = place("check");
    let told =
        place.run(["check", "before", "--max-kernels", "2", "--max-step-ms", "8", "--min-gpu-busy", "25%"]).fine();
    assert_eq!(told.out.matches("passed").count(), 3, "{}", told.out);
    let told = place.run(["check", "before", "--max-kernels", "1", "--max-step-ms", "8"]);
    assert_eq!(told.code, Some(4));
    assert_eq!(told.err, "inferscope: limit exceeded: --max-kernels 1: kernels is 2\n");
    let told = place.run(["check", "before", "--min-gpu-busy", "0.9"]);
    assert_eq!(told.code, Some(4));
    assert!(told.err.contains("gpu_busy is 26.2 %"), "{}", told.err);
    let told = place.run(["check", "before", "--max-mib", "100"]);
    assert_eq!(told.code, Some(5));
    assert!(told.err.starts_with("inferscope: --max-mib 100 MiB: no data (GPU memory "), "{}", told.err);
    assert_eq!(told.out, told.err.trim_start_matches("inferscope: "));
    for arguments in [
        &["check", "before"][..],
        &["check", "before", "--max-kernels", "-1"],
        &["check", "before", "--min-gpu-busy", "60"],
    ] {
        place.run(arguments).refused(2);
    }
    // Once is no rhythm: neither the program nor its kernels show steps.
    let whole = "process 100 serve.py 3.12.1\nthread 0 100 MainThread\napi 0 100 10..20 cudaLaunchKernel #1\n\
                 kernel 0 0 7 50..2050 gemm #1";
    Fixture::parse(whole).write(&place.at("whole"));
    let told = place.run(["check", "whole", "--max-kernels", "100000"]);
    assert_eq!(told.code, Some(5));
    assert!(told.err.contains("--max-kernels 100000: no data (no steps found"), "{}", told.err);
    Fixture::parse(crate::support::TRACE).write(&place.at("host"));
    for limit in ["--max-kernels", "--max-implicit-syncs", "--max-copied-mib", "--min-gpu-busy"] {
        let told = place.run(["check", "host", limit, "1"]);
        assert_eq!(told.code, Some(5), "{limit} passed without a GPU: {}", told.out);
    }
}

/// What a program on a CPU is measured by.
#[test]
fn limits_of_time_and_memory_need_no_gpu() {
    let place = Place::with_trace("check-cpu");
    let limits = ["--max-step-ms", "50", "--max-p99-ms", "50", "--max-rss-mib", "200"];
    let told = place.run([&["check", "trace"], &limits[..]].concat()).fine();
    for said in ["step_p50 is ", "step_p99 is 45.0 ms", "--max-rss-mib 200 MiB: memory_mib is 200 MiB"] {
        assert!(told.out.contains(said), "{}", told.out);
    }
    for limit in [["--max-p99-ms", "44"], ["--max-rss-mib", "199"]] {
        let told = place.run([&["check", "trace", "--max-step-ms", "50"], &limit[..]].concat());
        assert_eq!(told.code, Some(4), "{}", told.out);
        assert!(told.err.starts_with(&format!("inferscope: limit exceeded: {}", limit[0])), "{}", told.err);
    }
    // The memory of a GPU is another one, under both of its names.
    for flag in ["--max-gpu-mib", "--max-mib"] {
        let told = place.run(["check", "trace", flag, "2048"]);
        assert_eq!(told.code, Some(5), "{}", told.out);
        assert!(told.out.starts_with(&format!("{flag} 2.00 GiB: no data (GPU memory ")), "{}", told.out);
    }
    let help = place.run(["check", "--help"]).fine().out;
    assert!(help.contains("--max-gpu-mib") && !help.contains("--max-mib"), "{help}");
    // The peak of a recording is known without steps.
    Fixture::parse("process 1 a 3.12\ncounter 0 0 0 rss_bytes 1048576\ncounter 0 0 9 rss_bytes 1048576")
        .write(&place.at("stepless"));
    place.run(["check", "stepless", "--max-rss-mib", "1"]).fine();
}

const RULES: &str = "bottleneck_rules:
  - name: busy_enough
    condition: gpu_busy < 50% and kernels >= 2
    suggestion: Give the GPU more to do
";

#[test]
fn user_rules_are_in_every_report() {
    let place = place("user-rules");
    place.write("mine.yaml", RULES);
    for format in ["text", "markdown", "html", "json"] {
        let told = place.run(["analyze", "before", "--rules", "mine.yaml", "--format", format]).fine();
        assert!(told.out.contains("busy_enough"), "{format}: {}", told.out);
        if format != "text" {
            assert!(told.out.contains("Give the GPU more to do"), "{format}: {}", told.out);
        }
    }
    assert!(!place.run(["analyze", "before"]).fine().out.contains("busy_enough"));
    // Found from a folder below, as the settings are.
    place.write(".inferscope_rules.yaml", RULES);
    std::fs::create_dir(place.at("below")).unwrap();
    let mut command = place.command(["analyze", "../before"]);
    let output = command.current_dir(place.at("below")).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("busy_enough"));
}

#[test]
fn a_fault_in_the_rules_stops_before_anything_is_recorded() {
    let place = place("user-rules-bad");
    place.write("bad.yaml", RULES.replace("gpu_busy", "gpu_bussy"));
    let said = "bad.yaml:3: condition, column 1: there is no metric gpu_bussy: did you mean gpu_busy?";
    for arguments in [
        &["analyze", "before", "--rules", "bad.yaml"][..],
        &["rules", "check", "bad.yaml"],
        &["rules", "list", "--rules", "bad.yaml"],
        &["run", "--rules", "bad.yaml", "--", "touch", "started"],
    ] {
        let error = place.run(arguments).refused(5);
        assert!(error.contains(said), "{error}");
    }
    assert!(!place.at("started").exists());
    place.write("bad.yaml", RULES.replace("gpu_busy", "gpu_bussy").replace("suggestion", "sugestion"));
    let error = place.run(["rules", "check", "bad.yaml"]).refused(5);
    assert_eq!(error.lines().filter(|line| line.starts_with("inferscope: bad.yaml:")).count(), 3, "{error}");
    let error = place.run(["analyze", "before", "--rules", "bad.yaml"]).refused(5);
    assert!(error.ends_with("(and 2 more: `inferscope rules check bad.yaml` shows all)\n"), "{error}");
    assert!(place.run(["rules", "check", "nowhere.yaml"]).refused(5).contains("cannot read nowhere.yaml"));
}

#[test]
fn our_rules_are_changed_by_a_file_and_the_report_says_so() {
    let place = place("our-rules");
    let found = |rules: &[&str]| -> (Vec<String>, String) {
        let told = place.run([&["analyze", "before", "--format", "json"][..], rules].concat()).fine().out;
        let document: serde_json::Value = serde_json::from_str(&told).unwrap();
        let codes = document["findings"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap().to_owned());
        (codes.collect(), told)
    };
    let (usual, told) = found(&[]);
    let first = usual.first().expect("the recording has a finding").clone();
    assert!(!told.contains("\"label\": \"rules\""), "{told}");
    place.write("ours.yaml", format!("rules:\n  {first}: {{enabled: false}}\n"));
    let (codes, told) = found(&["--rules", "ours.yaml"]);
    assert!(!codes.contains(&first) && told.contains(&format!("changed: {first} is off (ours.yaml:2)")), "{told}");
    place.write("ours.yaml", "rules:\n  launch-bound: {min_share: 0.2}\n");
    let told = place.run(["rules", "explain", "launch-bound", "--rules", "ours.yaml"]).fine().out;
    assert!(told.contains("threshold: min_share = 20 % (ours.yaml:2; default 10 %): "), "{told}");
    assert!(told.contains("threshold: min_kernels = 8 (default): ") && told.contains("in 20 % of the step"), "{told}");
    let told = place.run(["rules", "check", "ours.yaml"]).fine().out;
    assert_eq!(told, "ours.yaml: 0 rules, 0 built-in off, 1 threshold changed, no errors\n");
    place.write("ours.yaml", "rules:\n  launch-bound: {min_share: 2}\n");
    let error = place.run(["analyze", "before", "--rules", "ours.yaml"]).refused(5);
    assert!(error.contains("ours.yaml:2: min_share must be a share from 0 to 1, got 2"), "{error}");
}

#[test]
fn rules_are_listed_explained_and_checked() {
    let place = place("rules");
    place.write(".inferscope_rules.yaml", RULES);
    let told = place.run(["rules", "list"]).fine();
    for text in ["hot-line", "busy_enough", "step_p50", "Metrics"] {
        assert!(told.out.contains(text), "{text}: {}", told.out);
    }
    assert!(place.run(["rules", "explain", "hot-line"]).fine().out.contains("needs: "));
    assert!(place.run(["rules", "explain", "busy_enough"]).fine().out.contains("Give the GPU more to do"));
    assert!(place.run(["rules", "explain", "h2d_time"]).fine().out.contains("unit: ms"));
    assert!(place.run(["rules", "explain", "hot-lin"]).refused(2).contains("did you mean hot-line?"));
    assert_eq!(
        place.run(["rules", "check", ".inferscope_rules.yaml"]).fine().out,
        ".inferscope_rules.yaml: 1 rule, no errors\n"
    );
}

#[test]
fn programs_get_limits_as_json_with_the_same_exit_code() {
    let place = place("check-json");
    for (limits, code, state) in [
        (&["--max-kernels", "2"][..], 0, "passed"),
        (&["--max-kernels", "1", "--max-mib", "9"], 4, "failed"),
        (&["--max-kernels", "2", "--max-mib", "9"], 5, "undecided"),
    ] {
        let told = place.run([&["check", "before", "--format", "json"], limits].concat());
        assert_eq!(told.code, Some(code), "{}", told.err);
        let document: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!((&document["state"], &document["trace"]), (&state.into(), &"before".into()));
        assert_eq!(document["limits"].as_array().unwrap().len(), limits.len() / 2);
        assert_eq!(
            (&document["limits"][0]["metric"], &document["limits"][0]["value"]),
            (&"kernels".into(), &2.0.into())
        );
    }
}

#[test]
fn the_documentation_has_every_metric() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/user-rules.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut rows =
        page.lines().filter(|line| line.starts_with("| `")).skip_while(|line| !line.contains("`total_time`"));
    for metric in diagnosis::named::METRICS {
        let row = format!("| `{}` | {} | {} |", metric.name, metric.unit.name(), metric.what);
        assert_eq!(rows.next(), Some(row.as_str()));
    }
    assert_eq!(rows.next(), None);
}
