//! What the Markdown report says, and what no name can make of it. How a reader of Markdown shows it is tested in
//! tests/exports/test_analysis.py.

use super::reports;
use super::timelines::{self, NO_STEPS, SERVICE, UNWELL, parse};

fn markdown(text: &str) -> String {
    reports(&parse(text)).0
}

#[track_caller]
fn says(page: &str, all: &[&str]) {
    for one in all {
        assert!(page.contains(one), "{one}\nis not in\n{page}");
    }
}

#[test]
fn the_answer_comes_first_and_findings_have_all_their_parts() {
    let page = markdown(SERVICE);
    assert!(page.lines().nth(2).unwrap().starts_with("> A request takes 40.0 ms"), "{page}");
    says(
        &page,
        &[
            "| steps | 160 `request` |",
            "### 1. `compile_pattern` takes 50 % of the step (`service.py`)",
            "%** of the step · confidence",
            "**Where:** `compile_pattern` · `service.py`",
            "**Evidence**",
            "**What to do**",
            "**How to verify:** Record again",
            "<summary>1 rule skipped, and why</summary>",
        ],
    );
    assert!(!page.to_lowercase().contains("gpu"), "a machine without a GPU is not told of one");
}

#[test]
fn shares_of_the_step_add_up_to_a_hundred() {
    for (name, timeline) in timelines::all() {
        let page = reports(&timeline).0;
        let rows = page.lines().skip_while(|line| !line.starts_with("| share")).skip(2);
        let cells = rows.take_while(|line| line.starts_with('|')).map(|row| row[2..].split_once(" %").unwrap().0);
        let tenths: Vec<u32> = cells.map(|cell| cell.replace('.', "").parse().unwrap_or(0)).collect();
        assert!(tenths.is_empty() || tenths.iter().sum::<u32>() == 1000, "{name}: {tenths:?}");
        assert_eq!(tenths.is_empty(), ["empty", "nothing"].contains(&name), "{name}");
    }
}

#[test]
fn scopes_stand_where_they_are_in_the_step() {
    says(
        &markdown(SERVICE),
        &[
            "| `tokenise` | ████████░░░░░░░░ | 0 ns | 20.0 ms | 160 |",
            "| ↳ `encode` | ░░████░░░░░░░░░░ | 5.00 ms | 10.0 ms | 160 |",
            "| `compute` | ░░░░░░░░███████░ | 20.0 ms | 18.0 ms | 160 |",
        ],
    );
}

#[test]
fn losses_clock_and_what_was_not_recorded_are_said() {
    let page = markdown(UNWELL);
    says(
        &page,
        &[
            "**Caution:** losses: 12,000 records overwritten before they could be written to disk (scopes)",
            "| **bad** | clock | timestamps accurate to 9.00 ms |",
            "| **warn** | not recorded | stacks: ptrace is not permitted here |",
            "| **warn** | note | the ring was full for 2 s |",
            "| info | not recorded | memory: not read |",
        ],
    );
}

#[test]
fn without_steps_the_recording_is_said_to_be_no_step() {
    let page = markdown(NO_STEPS);
    says(&page, &["## Where the time of the recording goes", "No steps found", "| `time.sleep` | waiting |"]);
    assert!(!page.contains("p99 |\n") && !page.contains("| step p50 |"), "{page}");
}

#[test]
fn nothing_is_said_to_be_nothing() {
    let page = reports(&timeline::Timeline::default()).0;
    says(&page, &["> No timed events were recorded.", "No samples, calls, steps or scopes were recorded."]);
}

#[test]
fn no_name_gets_out_of_its_place() {
    let page = reports(&timelines::hostile()).0;
    assert!(!page.chars().any(|letter| letter.is_control() && letter != '\n'), "control characters");
    for trick in ["<script", "<img", "</details><", "\u{202e}", "\u{2028}", "a|b"] {
        assert!(!page.contains(trick), "{trick}");
    }
    let ours =
        ["# InferScope", "## Where", "### ", "## Findings", "## GPU", "## The whole", "## Data quality", "## How it"];
    let heads: Vec<&str> = page.lines().filter(|line| line.starts_with('#')).collect();
    assert!(heads.iter().all(|head| ours.iter().any(|our| head.starts_with(our))), "{heads:#?}");
    says(&page, &["`line\\nbreak\\r\\n\\n# heading\\n\\n- list`", "`@everyone`", "takes 25 % of the step"]);
}

#[test]
fn a_gain_that_the_recording_alone_does_not_show_says_so() {
    let steps = |kernel: &str| {
        markdown(&format!(
            "device 0 NVIDIA_H200\n track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel {kernel} 20us..8ms\n\
             api cudaStreamSynchronize 20us..9.9ms\n end"
        ))
    };
    let bounded = steps("cutlass_80_simt_sgemm_128x64_8x5_nn_align1");
    says(&bounded, &["gain **0 to ", " %** of the step, bounds only · confidence"]);
    let prior = steps("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align1");
    says(
        &prior,
        &["gain **0 to ", " %** of the step, from measurements elsewhere · confidence", "measured on an H200"],
    );
}
