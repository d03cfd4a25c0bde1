//! Rules that are read, and rules that are refused with file, line and reason.

use super::*;

fn parsed(text: &str) -> Result<Vec<UserRule>, String> {
    read_whole(text).map(|file| file.own)
}

fn read_whole(text: &str) -> Result<RuleFile, String> {
    parse(Path::new("r.yaml"), text).map_err(|faults| faults.into_iter().next().unwrap())
}

const GOOD: &str = "# mine
bottleneck_rules:
  - name: high_memory_overhead
    condition: h2d_time / total_time > 0.3
    suggestion: Use pinned memory or reduce batch size
    confidence_weight: 1.2
  - name: many-kernels
    condition: kernels > 1000 and not (gpu_busy > 90%)
    suggestion: [Capture a CUDA graph, torch.compile]
    severity: high
";

#[test]
fn rules_are_read_with_their_lines() {
    let rules = parsed(GOOD).unwrap();
    let shown: Vec<_> = rules.iter().map(|rule| (rule.name.as_str(), rule.origin.as_str(), rule.severity)).collect();
    assert_eq!(
        shown,
        [("high_memory_overhead", "r.yaml:3", Severity::Medium), ("many-kernels", "r.yaml:7", Severity::High)]
    );
    assert_eq!((rules[0].confidence_weight, rules[1].confidence_weight), (1.2, 1.0));
    assert_eq!(rules[1].suggestions, ["Capture a CUDA graph", "torch.compile"]);
    for empty in ["", "# nothing\n---\n", "bottleneck_rules:\n", "bottleneck_rules: []\n"] {
        assert_eq!(parsed(empty), Ok(Vec::new()), "{empty:?}");
    }
}

#[test]
fn what_is_wrong_is_said_with_line_and_nearest_name() {
    let cases = [
        ("h2d_time", "h2d_tmie", "r.yaml:4: condition, column 1: there is no metric h2d_tmie: did you mean h2d_time?"),
        ("> 0.3", "", "r.yaml:4: condition, column 1: it is a number, not a condition"),
        ("> 0.3", "> > 0.3", "r.yaml:4: condition, column 25: expected a metric or a number, got >"),
        ("> 0.3", "and 0.3", "r.yaml:4: condition, column 23: and takes a condition on both sides"),
        ("many-kernels", "high_memory_overhead", "r.yaml:7: the name high_memory_overhead is already used at r.yaml:3"),
        ("many-kernels", "hot-line", "r.yaml:7: the name hot-line is that of a built-in rule"),
        ("many-kernels", "many kernels", "r.yaml:7: name many kernels must have only letters"),
        ("many-kernels", "7", "r.yaml:7: name must be text, got 7"),
        ("1.2", "often", "r.yaml:6: confidence_weight must be a number above 0, at most 10, got \"often\""),
        ("1.2", "-1", "r.yaml:6: confidence_weight must be"),
        ("1.2", ".nan", "r.yaml:6: "),
        ("severity: high", "severity: awful", "r.yaml:10: severity must be info, low, medium or high, got awful"),
        ("severity: high", "sevirity: high", "r.yaml:10: unknown key sevirity: did you mean severity?"),
        ("severity: high", "suggestion: twice", "r.yaml:10: suggestion is set twice"),
        (
            "bottleneck_rules",
            "bottleneck_rule",
            "r.yaml:2: unknown key bottleneck_rule: did you mean bottleneck_rules?",
        ),
        ("    suggestion: Use pinned memory or reduce batch size\n", "", "r.yaml:3: the rule has no suggestion"),
        ("Use pinned memory or reduce batch size", "", "r.yaml:5: suggestion must be text, got nothing"),
    ];
    for (from, to, said) in cases {
        let error = parsed(&GOOD.replacen(from, to, 1)).unwrap_err();
        assert!(error.starts_with(said), "{from} -> {to}: {error}");
    }
    for (text, said) in [
        ("- a list", "r.yaml:1: the file must begin with `bottleneck_rules:` or `rules:`"),
        ("bottleneck_rules: 5", "r.yaml:1: bottleneck_rules must be a list of rules"),
        ("bottleneck_rules: [5]", "r.yaml:1: a rule must have name"),
        ("bottleneck_rules: [", "r.yaml"),
        ("a: &a [*a]", "r.yaml"),
    ] {
        let error = parsed(text).unwrap_err();
        assert!(error.starts_with(said) && !error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn our_rules_are_switched_off_and_changed() {
    let text = "rules:\n  hot-line: {enabled: false}\n  launch-bound:\n    enabled: true\n    min_share: 0.2\n    min_kernels: 12\n";
    let file = read_whole(text).unwrap();
    assert!(file.own.is_empty());
    assert_eq!(
        file.ours.changes(),
        [
            "hot-line is off (r.yaml:2)",
            "launch-bound min_kernels is 12 (r.yaml:6)",
            "launch-bound min_share is 0.2 (r.yaml:5)"
        ]
    );
    for nothing in ["rules:\n", "rules: {}\n", "rules:\n  hot-line: {}\n", "rules:\n  hot-line: {enabled: true}\n"] {
        assert_eq!(read_whole(nothing), Ok(RuleFile::default()), "{nothing}");
    }
}

#[test]
fn what_is_wrong_with_a_change_of_ours_is_said_with_the_nearest_name() {
    let cases = [
        ("rules: 5", "r.yaml:1: rules must be a map from rule codes to changes, got 5"),
        ("rules:\n  hot-lin: {enabled: false}", "r.yaml:2: unknown rule hot-lin: did you mean hot-line?"),
        (
            "rules:\n  zzzzzzzzzz: {enabled: false}",
            "r.yaml:2: unknown rule zzzzzzzzzz: `inferscope rules list` shows all",
        ),
        ("rules:\n  hot-line: false", "r.yaml:2: hot-line takes enabled, min_share, max_share, "),
        ("rules:\n  hot-line: {min_shar: 0.2}", "r.yaml:2: unknown key min_shar: did you mean min_share?"),
        ("rules:\n  hot-line: {enabled: 1}", "r.yaml:2: enabled must be true or false, got 1"),
        ("rules:\n  hot-line: {min_share: 20}", "r.yaml:2: min_share must be a share from 0 to 1, got 20"),
        ("rules:\n  hot-line: {min_share: much}", "r.yaml:2: min_share must be a share from 0 to 1, got \"much\""),
        ("rules:\n  hot-line: {min_share: .nan}", "r.yaml:2: non-finite"),
        ("rules:\n  launch-bound: {min_kernels: 0}", "r.yaml:2: min_kernels must be a whole number from 1"),
        ("rules:\n  hot-line: {}\n  hot-line: {}", "r.yaml:3: hot-line is set twice"),
    ];
    for (text, said) in cases {
        let error = read_whole(text).unwrap_err();
        assert!(error.starts_with(said) && !error.contains('\n'), "{text}: {error}");
    }
    let error = read_whole("rules:\n  hot-line: false").unwrap_err();
    assert!(error.ends_with("; got false"), "{error}");
}

#[test]
fn every_fault_of_a_file_is_told_by_line() {
    let text = "bottleneck_rules:
  - name: a b
    condition: gpu_bussy > 1
    sugestion: x
  - 5
  - name: twice
    condition: steps >
    suggestion: [x, 7, '']
    severity: awful
    severity: high
  - name: twice
    condition: steps > 1
    suggestion: x
    confidence_weight: 99
more: 1
";
    let faults = parse(Path::new("r.yaml"), text).unwrap_err();
    let said = [
        "r.yaml:2: the rule has no suggestion",
        "r.yaml:2: name a b must have only letters",
        "r.yaml:3: condition, column 1: there is no metric gpu_bussy: did you mean gpu_busy?",
        "r.yaml:4: unknown key sugestion: did you mean suggestion?",
        "r.yaml:5: a rule must have name, condition and suggestion, got 5",
        "r.yaml:7: condition, column",
        "r.yaml:8: suggestion must be text, got ",
        "r.yaml:8: suggestion is empty",
        "r.yaml:9: severity must be info, low, medium or high, got awful",
        "r.yaml:10: severity is set twice",
        "r.yaml:11: the name twice is already used at r.yaml:6",
        "r.yaml:14: confidence_weight must be a number above 0, at most 10",
        "r.yaml:15: unknown key more: known keys: bottleneck_rules, rules",
    ];
    let fits = said.iter().zip(&faults).all(|(said, fault)| fault.starts_with(said));
    assert!(fits && said.len() == faults.len(), "{faults:#?}");
}

#[test]
fn hostile_files_are_bounded() {
    let deep = format!("bottleneck_rules: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(parsed(&deep).is_err());
    let many = format!("bottleneck_rules:\n{}", "  - {name: a, condition: steps > 1, suggestion: x}\n".repeat(100_000));
    assert!(parsed(&many).is_err());
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n";
    assert!(parsed(bomb).is_err());
    let condition = |text: String| parsed(&GOOD.replacen("h2d_time / total_time > 0.3", &text, 1)).unwrap_err();
    assert!(condition(format!("{}steps{} > 1", "(".repeat(400), ")".repeat(400))).contains("nested deeper"));
    assert!(condition(format!("steps > {}1", "1 + ".repeat(1000))).contains("longer than"));
}
