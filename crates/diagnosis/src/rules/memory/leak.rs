//! `leak`: what one place of the program holds of a framework's memory grows from step to step, and is not freed.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::memory::growth::Growth;
use analysis::memory::kept;
use analysis::phrase;
use timeline::RecordedBy;

pub const CODE: RuleCode = RuleCode::new("leak");

pub struct Leak;

const MIN_BLOCKS: Threshold =
    Threshold::new(CODE, "min_blocks", 8.0, Unit::Count, "a handful of blocks is a buffer that was allocated late");
const MIN_BYTES: Threshold =
    Threshold::new(CODE, "min_bytes", 1_048_576.0, Unit::Bytes, "less takes days to matter, and every cache has it");
const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.01, Unit::Share, "of the peak: less is not what fills a GPU");
const MIN_TREND: Threshold = Threshold::new(
    CODE,
    "min_trend",
    2.58,
    Unit::Times,
    "standard deviations: chance gives a trend like this once in a hundred places",
);
const MIN_LATE_SHARE: Threshold = Threshold::new(
    CODE,
    "min_late_share",
    1.0 / 6.0,
    Unit::Share,
    "steady growth has a third of it in the last third of the steps; a cache that fills up has less than half of that",
);
const MAX_PLACES: Threshold = Threshold::new(
    CODE,
    "max_places",
    3.0,
    Unit::Count,
    "a leak is of few lines; the forward pass of a model in training keeps blocks from many, for the backward pass",
);
const MIN_BLOCKS_WITHOUT_STEPS: Threshold = Threshold::new(
    CODE,
    "min_blocks_without_steps",
    16.0,
    Unit::Count,
    "without steps, fewer could be those of the layers of one model",
);

/// What keeps tensors in more ways than these is no list or cache that somebody forgot.
const MOST_KEEPERS: usize = 3;

impl Rule for Leak {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_BLOCKS, MIN_BYTES, MIN_SHARE, MIN_TREND, MIN_LATE_SHARE, MAX_PLACES, MIN_BLOCKS_WITHOUT_STEPS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Memory of PyTorch's allocators (of a GPU, or of the CPU with `--memory-events all`) that one line allocates grows from step to step and is not freed: at least {min_blocks} blocks, {min_bytes} and {min_share} of the peak.",
            why: "Tensors that something still refers to are never freed: a list of results, a closure, a cache without a limit, a graph kept for a backward pass. For each line that allocates, what it holds at the end of each step is tested for a trend (Mann and Kendall), as is the number of its blocks, and it must still grow in the last third: a cache that fills up is no leak, nor is one that replaces its blocks by larger ones. What a program gives back only when its steps have ended counts as kept. Where no stacks were recorded, everything allocated since the first step is one place, and only a growth over steps is said. Without steps, equal parts of the recording are compared, each third must have its part of the growth, and growth of more than {max_places} lines is taken for activations that wait for their backward pass.",
            needs: "Allocator events (`--memory-events`), or a memory snapshot of PyTorch that was recorded with `torch.cuda.memory._record_memory_history()`. The line is known with stacks.",
            example: "GPU 0 memory grows by 4.00 MiB a step: 120 blocks never freed (handle, serve.py:44)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let all = allocators::with_blocks(case);
        if all.is_empty() {
            return allocators::not_recorded(case, allocators::NO_EVENTS);
        }
        let found: Vec<Finding> = all.iter().flat_map(|one| of(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn of(case: &Case, one: &AllocatorMemory) -> Vec<Finding> {
    let least = case.threshold(if one.steps > 0 { MIN_BLOCKS } else { MIN_BLOCKS_WITHOUT_STEPS });
    let bytes = case.threshold(MIN_BYTES).max(case.threshold(MIN_SHARE) * one.history.peak as f64);
    // Of small blocks most have no stack, where some have: only where none has, all of them together are looked at.
    let no_stacks = one.growth.iter().all(|growth| growth.stack.0 == 0) && one.steps > 0;
    let grows = |growth: &&Growth| {
        (growth.stack.0 != 0 || no_stacks)
            && growth.blocks as f64 >= least
            && growth.bytes as f64 >= bytes
            && growth.trend >= case.threshold(MIN_TREND)
            && growth.blocks_trend >= case.threshold(MIN_TREND)
            && growth.late() >= case.threshold(MIN_LATE_SHARE)
            // Without steps, blocks that come in one phase are an optimizer's, or a cache's that is built once.
            && (one.steps > 0 || growth.steady() >= case.threshold(MIN_LATE_SHARE))
    };
    let growing: Vec<&Growth> = one.growth.iter().filter(grows).collect();
    let most = case.threshold(MAX_PLACES) as usize;
    if one.steps == 0 && growing.len() > most {
        return Vec::new();
    }
    growing.into_iter().take(most).map(|growth| finding(case, one, growth)).collect()
}

fn finding(case: &Case, one: &AllocatorMemory, growth: &Growth) -> Finding {
    let name = allocators::name(case, one.allocator);
    let of_device = case.timeline.memory.allocator(one.allocator).device.is_some();
    let rate = match one.steps {
        0 => phrase::bytes(growth.bytes),
        steps => format!("{} a step", phrase::bytes(growth.bytes / steps)),
    };
    let blocks = phrase::counted(growth.blocks, "block");
    let parts = if one.steps > 0 { "steps" } else { "parts of the recording" };
    let keepers = kept::keepers(case.timeline, &case.frames, one.allocator, growth);
    let (there, place) = match growth.stack.0 {
        0 => ("after the first step", "stacks not recorded".to_owned()),
        _ => ("there", phrase::place(&growth.place)),
    };
    let (kept, end) = match growth.freed_later {
        0 => ("never freed", "the end"),
        _ => ("kept to the last step", "the end of the last step"),
    };
    let mut evidence = vec![
        Evidence::new(format!(
            "{} of {} allocated {there} are alive at {end}: {}",
            phrase::count(growth.blocks),
            phrase::counted(growth.allocated, "block"),
            phrase::bytes(growth.bytes)
        ))
        .number("bytes", growth.bytes as f64)
        .number("blocks", growth.blocks as f64),
        Evidence::new(format!(
            "held after the {parts}: {}; the trend is {:.1} standard deviations from chance",
            sampled(&growth.held),
            growth.trend
        ))
        .number("trend", growth.trend),
        Evidence::new(format!("the last third of the {parts} has {} of the growth", phrase::percent(growth.late()))),
    ];
    if growth.freed_later > 0 {
        let freed = phrase::counted(growth.freed_later, "block");
        evidence.push(Evidence::new(format!("{freed} of them freed after the last step, as a program ends")));
    }
    evidence.extend(keepers.iter().take(MOST_KEEPERS).map(|keeper| {
        let (tensors, bytes) = (phrase::counted(keeper.retainer.tensors, "tensor"), keeper.retainer.bytes);
        let text = format!("kept by {}: {tensors}, {}", keeper.retainer.kept_by, phrase::bytes(bytes));
        Evidence::new(text).number("kept_bytes", bytes as f64)
    }));
    let numbers = match of_device {
        true => "keep numbers (.item()) or .detach().cpu() copies in lists, closures and caches instead.",
        false => "keep numbers (.item()) in lists, closures and caches instead.",
    };
    let has_stacks = growth.stack.0 != 0;
    let drop = match has_stacks {
        true => format!("Drop the tensors that this line allocates after use: {numbers}"),
        false => format!("Drop tensors after use: {numbers}"),
    };
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(keepers.first().map(|keeper| {
        let named = &keeper.retainer.kept_by;
        Action::new(format!("Empty or limit what keeps them: {named}."))
    }));
    actions.extend(Action::all([
        drop,
        "Limit what keeps them: collections.deque(maxlen=…), functools.lru_cache(maxsize=…); under training, .detach() what outlives the step.".into(),
    ]));
    if !has_stacks {
        actions.push("Record with stacks (--memory-stacks-kb 512) to see the line that allocates them.".into());
    }
    if keepers.is_empty() && case.timeline.info.recorded_by == RecordedBy::InferScope {
        actions.push("Record with --retainers: it names the list, closure or cache that keeps them.".into());
    }
    Finding {
        code: CODE,
        title: format!("{name} memory grows by {rate}: {blocks} {kept} ({place})"),
        place: growth.place.clone(),
        gain: None,
        severity: Severity::High,
        certainty: Certainty::seen(seen(one, growth)),
        evidence,
        actions,
        verify: "Record again: held bytes are level after the first steps, and this finding is gone.".into(),
    }
}

/// That the next window would rise again, from those that did; without steps, as far as growth is the same in all parts of the recording.
fn seen(one: &AllocatorMemory, growth: &Growth) -> f64 {
    let rises = growth.held.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64;
    let again = (rises + 1.0) / (growth.held.len() as f64 + 1.0);
    if one.steps > 0 { again } else { again * 3.0 * growth.steady() }
}

/// Some of the values, from first to last.
fn sampled(held: &[u64]) -> String {
    let every = held.len().div_ceil(5).max(1);
    let values: Vec<String> = held.iter().rev().step_by(every).map(|bytes| phrase::bytes(*bytes)).collect();
    values.into_iter().rev().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEPS: &str = "track main\n repeat 20 every 1ms\n step request 0..900us\n";
    /// A block that every step allocates and frees.
    const TEMPORARY: &str = "block alloc 20us 64M at 1 main>forward@model.py:7\n block free 30us 64M at 1\n";

    #[test]
    fn a_list_that_keeps_results_is_found_with_its_line_and_rate() {
        let text = format!("{STEPS}{TEMPORARY} block alloc 40us 4M at 2 each main>handle@serve.py:44\n end");
        let found = found(&Leak, &text);
        assert_eq!(
            found[0].title,
            "GPU 0 memory grows by 4.00 MiB a step: 20 blocks never freed (handle (serve.py:44))"
        );
        assert_eq!((found.len(), found[0].place.line, found[0].severity), (1, Some(44), Severity::High));
    }

    #[test]
    fn what_keeps_the_blocks_is_named_where_the_program_was_asked() {
        let text = format!("{STEPS}{TEMPORARY} block alloc 40us 4M at 2 each main>handle@serve.py:44\n end");
        let asks = |found: &[Finding]| found[0].actions.iter().any(|action| action.text().contains("--retainers"));
        assert!(asks(&found(&Leak, &text)));
        let found = found(&Leak, &format!("{text}\n kept 20 80M at 2 each list~in~closure~of~handle~(serve.py:31)"));
        let kept = "kept by list in closure of handle (serve.py:31): 20 tensors, 80.0 MiB";
        assert_eq!(found[0].evidence.last().unwrap().text, kept);
        assert!(!asks(&found) && found[0].actions[0].text().contains("list in closure of handle (serve.py:31)"));
    }

    #[test]
    fn a_cache_that_fills_up_is_none() {
        let early = "track main\n repeat 8 every 1ms\n step request 0..900us\n block alloc 40us 4M at 2 each main>fill@cache.py:9\n end\n";
        let late = format!("repeat 20 every 1ms\n step request 8ms..8900us\n {} end", TEMPORARY);
        let shifted = late.replace("alloc 20us", "alloc 8020us").replace("free 30us", "free 8030us");
        silent(&Leak, &format!("{early}{shifted}"));
    }

    /// A cache of one tensor that is concatenated to: more bytes, as many blocks.
    #[test]
    fn a_cache_that_replaces_its_blocks_is_none() {
        let mut text = String::from("track main\n");
        for step in 0..30u64 {
            let at = step * 1000;
            text += &format!("step decode {at}us..{}us\n", at + 900);
            for layer in 0..10u64 {
                let (new, old) = (2 + layer + 100 * (step % 2), 2 + layer + 100 * ((step + 1) % 2));
                text += &format!("block alloc {}us {}M at {new} main>cat@cache.py:5\n", at + 10 + layer, step + 1);
                if step > 0 {
                    text += &format!("block free {}us {step}M at {old}\n", at + 10 + layer);
                }
            }
        }
        silent(&Leak, &text);
    }

    #[test]
    fn temporaries_and_weights_are_none() {
        silent(&Leak, &format!("{STEPS}{TEMPORARY} end"));
        let weights = "repeat 40 every 1us\n block alloc 0us 8M at 9 each main>load@model.py:3\n end\n";
        let shifted = TEMPORARY.replace("20us", "120us").replace("30us", "130us");
        silent(&Leak, &format!("{weights}track main\n repeat 20 every 1ms\n step request 100us..900us\n{shifted} end"));
    }

    /// A program that ends gives everything back: that comes after its last step.
    #[test]
    fn what_is_freed_after_the_last_step_was_kept() {
        let freed = "repeat 20 every 1ms\n block free 25ms 4M at 2 each\n end";
        let text = format!("{STEPS}{TEMPORARY} block alloc 40us 4M at 2 each main>handle@serve.py:44\n end\n{freed}");
        let found = found(&Leak, &text);
        assert!(
            found[0].title.ends_with("20 blocks kept to the last step (handle (serve.py:44))"),
            "{}",
            found[0].title
        );
        assert!(
            found[0].evidence.iter().any(|one| one.text.starts_with("20 blocks of them freed after the last step"))
        );
    }

    /// Weights are there before the first step, however much they are; the line is not known.
    #[test]
    fn without_stacks_all_that_steps_keep_is_one_place() {
        let plain = |text: &str| text.replace(" main>forward@model.py:7", "").replace(" main>handle@serve.py:44", "");
        let weights = "block alloc 1us 90M at 9\n";
        let kept = " block alloc 40us 4M at 2 each main>handle@serve.py:44\n end";
        let found = found(&Leak, &plain(&format!("{weights}{STEPS}{TEMPORARY}{kept}")));
        assert!(found[0].title.ends_with("19 blocks never freed (stacks not recorded)"), "{}", found[0].title);
        assert!(found[0].actions.iter().any(|action| action.contains("--memory-stacks-kb")));
        silent(&Leak, &plain(&format!("{weights}{STEPS}{TEMPORARY} end")));
        let without_steps = "repeat 40 every 1ms\n block alloc 40us 4M at 2 each\n end";
        silent(&Leak, without_steps);
    }

    /// Without steps: one line that keeps blocks to the end is said with less confidence; many lines are a forward pass.
    #[test]
    fn without_steps_few_lines_are_a_leak_and_many_are_activations() {
        let kept = |lines: u64| {
            let mut text = String::from("repeat 40 every 1ms\n");
            for line in 0..lines {
                text += &format!("block alloc {}us 4M at {} each main>forward@model.py:{line}\n", line + 1, line + 1);
            }
            text + TEMPORARY + "end"
        };
        let found = found(&Leak, &kept(1));
        assert!(found[0].title.starts_with("GPU 0 memory grows by 160 MiB: 40 blocks"));
        silent(&Leak, &kept(6));
    }

    /// Without steps: blocks that all come in the last phase, as those of an optimizer's first step.
    #[test]
    fn one_phase_of_a_recording_is_no_leak() {
        let early = "repeat 60 every 1ms\n block alloc 20us 64M at 1 main>forward@model.py:7\n block free 30us 64M at 1\n end\n";
        let phase = "repeat 60 every 100us\n block alloc 60ms 4M at 9 each main>step@optimizer.py:76\n end";
        silent(&Leak, &format!("{early}{phase}"));
    }

    #[test]
    fn abstains_without_events() {
        abstains(&Leak, "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms", "not recorded");
    }
}
