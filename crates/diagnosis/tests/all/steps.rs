//! Where steps come from: markers of engines, numbered names, `--step`, and the sequence of kernels where nothing is marked. On
//! recordings of a real GPU the periods found without their marks are the steps that were marked.

use analysis::{StepSource, Steps};
use diagnosis::wording::steps::why;
use std::path::Path;
use timeline::Timeline;

fn text(text: &str) -> Timeline {
    Timeline::from_text(text).unwrap_or_else(|error| panic!("{error}"))
}

fn open(name: &str) -> Timeline {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name);
    timeline::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// On a real GPU: found from kernels alone, as often and as long as they were marked.
#[test]
fn periods_of_kernels_are_the_steps_that_were_marked() {
    for name in ["decode", "bert", "copies", "graphs", "suite/sync_each_layer"] {
        let timeline = open(name);
        let marked = Steps::find(&timeline, None);
        let found = Steps::find(&timeline, Some("kernel-sequence"));
        assert_eq!((marked.source, found.source), (StepSource::Step, StepSource::Sequence), "{name}: {}", why(&found));
        // Each period begins in a step of its own; the last may have been cut short.
        let mut places: Vec<_> = found
            .steps
            .iter()
            .map(|period| marked.steps.iter().position(|step| (step.start..step.end).contains(&period.start)))
            .collect();
        let inside = places.iter().flatten().count();
        places.dedup();
        assert!(inside + 1 >= marked.steps.len(), "{name}: {} of {}: {}", inside, marked.steps.len(), why(&found));
        assert_eq!(places.iter().flatten().count(), inside, "{name}: two in one step: {}", why(&found));
        let ratio = found.p50() as f64 / marked.p50() as f64;
        assert!((0.8..1.3).contains(&ratio), "{name}: {ratio}: {}", why(&found));
        assert!(found.confidence > 0.6 && found.confidence < 1.0, "{name}: {}", why(&found));
    }
}

/// A step of three layers, each of three kernels; every other one has a longer prompt and launches more.
fn layered(every: &str, wait: &str) -> String {
    let kernel = |name: &str, at: u32| {
        let (call, work) = (format!("{at}us..{}us", at + 5), format!("{}us..{}us", at + 10, at + 15));
        format!("api cudaLaunchKernel {call}\nstream 7\nkernel {name} {work}\n")
    };
    let mut text = format!("track main\nrepeat 12 every {every}\n{}", kernel("embed", 0));
    for layer in 0..3 {
        for (place, name) in ["norm", "attention", "mlp"].iter().enumerate() {
            text += &kernel(name, 20 + 60 * layer + 20 * place as u32);
        }
    }
    text + &kernel("sample", 210) + wait + "end\n"
}

#[test]
fn steps_are_told_from_the_layers_inside_them() {
    let waiting = layered("500us", "api cudaStreamSynchronize 220us..260us\n");
    let found = Steps::find(&text(&waiting), None);
    assert_eq!((found.source, found.count(), found.p50()), (StepSource::Sequence, 12, 500_000), "{}", why(&found));
    assert!(why(&found).contains("11 launches") && why(&found).contains("confidence 0.9"), "{}", why(&found));
    assert_eq!((&*found.name, found.source.name()), ("iteration", "kernel_sequence"));
    // Without a wait the sequence still has no other structure, but it is less sure.
    let running = Steps::find(&text(&layered("230us", "")), None);
    // It begins at its longest pause, before the last kernel: one is cut in two by the ends of the recording.
    assert_eq!((running.source, running.count()), (StepSource::Sequence, 11), "{}", why(&running));
    assert!(running.confidence < 0.6 && found.confidence > 0.9);
}

#[test]
fn steps_of_nothing_but_layers_begin_where_the_host_has_waited() {
    // Twenty times the same two kernels, and a wait: as tiny layers are, one after the other.
    let mut all = "track main\nrepeat 12 every 500us\n".to_owned();
    for layer in 0..20 {
        for (place, name) in ["linear", "relu"].iter().enumerate() {
            let at = 20 * layer + 10 * place;
            let (call, work) = (format!("{at}us..{}us", at + 5), format!("{}us..{}us", at + 6, at + 9));
            all += &format!("api cudaLaunchKernel {call}\nstream 7\nkernel {name} {work}\n");
        }
    }
    // No wait comes before the first.
    let found = Steps::find(&text(&(all + "api cudaDeviceSynchronize 420us..450us\nend\n")), None);
    assert_eq!((found.source, found.count(), found.p50()), (StepSource::Sequence, 11, 500_000), "{}", why(&found));
    assert!(why(&found).contains("40 launches") && found.confidence > 0.9, "{}", why(&found));
}

#[test]
fn a_wait_now_and_then_is_no_begin_of_a_step() {
    let mut all = "track main\n".to_owned();
    for step in 0..120 {
        for launch in 0..14 {
            let at = 300 * step + 20 * launch;
            let (call, work) = (format!("{at}us..{}us", at + 5), format!("{}us..{}us", at + 10, at + 15));
            all += &format!("api cudaLaunchKernel {call}\nstream 7\nkernel k{launch} {work}\n");
        }
        if step % 10 == 9 {
            all += &format!("api cudaDeviceSynchronize {}us..{}us\n", 300 * step + 285, 300 * step + 295);
        }
    }
    let found = Steps::find(&text(&all), None);
    assert_eq!((found.source, found.p50()), (StepSource::Sequence, 300_000), "{}", why(&found));
}

#[test]
fn steps_of_varying_lengths_are_steps_and_what_comes_before_them_is_none() {
    let launch = |name: &str, at: u64| {
        format!("api cudaLaunchKernel {at}us..{}us\nstream 7\nkernel {name} {}us..{}us\n", at + 2, at + 5, at + 8)
    };
    let mut all = "track main\n".to_owned();
    // Weights are loaded, none like the other.
    (0..20).for_each(|number| all += &launch(&format!("init{number}"), 10 * number));
    let mut at = 1000;
    for step in 0..15 {
        all += &launch("embed", at);
        (0..20 + step % 4).for_each(|place| all += &launch(["gemm", "norm"][place as usize % 2], at + 10 + 10 * place));
        all += &format!("api cudaStreamSynchronize {}us..{}us\n", at + 260, at + 300);
        at += 400 + 30 * (step % 3);
    }
    let found = Steps::find(&text(&all), None);
    assert_eq!((found.source, found.steps.len()), (StepSource::Sequence, 15), "{}", why(&found));
    assert_eq!(found.steps[0].start, 1_000_000);
    assert!(found.confidence < 0.97, "they are not all alike: {}", why(&found));
}

/// A file of a device alone has steps and a length, though no thread is known.
#[test]
fn a_device_alone_has_steps_too() {
    let kernels = ["embed", "norm", "attention", "mlp", "norm", "attention", "mlp", "sample"];
    let mut all = "process serve.py\nstream 7\nrepeat 12 every 500us\n".to_owned();
    for (place, name) in kernels.iter().enumerate() {
        all += &format!("kernel {name} {}us..{}us corr 0\n", 20 * place, 20 * place + 15);
    }
    let timeline = text(&(all + "end\n"));
    let found = Steps::find(&timeline, None);
    assert_eq!((found.source, found.p50()), (StepSource::Sequence, 500_000), "{}", why(&found));
    assert!(found.count() >= 11 && found.confidence < 0.6, "{}", why(&found));
    let diagnosis = diagnosis::diagnose(&timeline, &diagnosis::Options::default());
    assert!(diagnosis.answer[0].contains("GPU busy 25 % of it"), "{:?}", diagnosis.answer);
    assert_eq!(&*timeline.tracks[0].name, "(no thread recorded)");
}

#[test]
fn kernels_without_a_rhythm_are_no_steps() {
    let mut all = "track main\n".to_owned();
    let mut state = 7u64;
    for place in 0..400u64 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (name, at) = ((state >> 33) % 40, 20 * place);
        all += &format!(
            "api cudaLaunchKernel {at}us..{}us\nstream 7\nkernel k{name} {}us..{}us\n",
            at + 2,
            at + 5,
            at + 8
        );
    }
    let found = Steps::find(&text(&all), None);
    assert_eq!(found.source, StepSource::Whole, "{}", why(&found));
    let asked = Steps::find(&text(&all), Some("kernel-sequence"));
    assert!(why(&asked).contains("no kernel sequence repeats well enough"), "{}", why(&asked));
}

/// What is marked is taken before what is recognised, and what an engine marks before what merely repeats.
#[test]
fn better_sources_come_first() {
    let with = |marks: &str| {
        let inside = format!("repeat 12 every 500us\n{marks}\nend\n");
        text(&(layered("500us", "api cudaStreamSynchronize 220us..260us\n") + &inside))
    };
    let scope = Steps::find(&with("scope poll 0..300us"), None);
    assert_eq!((scope.source, scope.count()), (StepSource::Scope, 12));
    let range = Steps::find(&with("nvtx forward 0..300us"), None);
    assert_eq!((range.source, range.count()), (StepSource::Nvtx, 12));
    // Operators that PyTorch marks are not steps.
    let operators = Steps::find(&with("nvtx aten::linear 0..300us"), None);
    assert_eq!(operators.source, StepSource::Sequence, "{}", why(&operators));
    let engine = Steps::find(&with("nvtx execute_context_0(0)_generation_8(8) 0..300us\nscope poll 0..400us"), None);
    assert_eq!((engine.source, &*engine.name, engine.count()), (StepSource::Step, "execute (decode)", 12));
    assert!(
        why(&engine).starts_with("from the serving engine's markers; they cover 100 % of kernel time"),
        "{}",
        why(&engine)
    );
    let steps = Steps::find(&with("step request 0..300us\nscope poll 0..400us"), None);
    assert_eq!((steps.source, &*steps.name), (StepSource::Step, "request"));
    let asked = Steps::find(&with("step request 0..300us"), Some("kernel-sequence"));
    assert_eq!((asked.source, asked.count()), (StepSource::Sequence, 12));
}

#[test]
fn names_that_differ_in_a_number_are_one_kind_of_step() {
    let numbered = |name: &str| {
        let scopes = (0..6).map(|number| format!("scope {name}{number} {}ms..{}ms\n", 10 * number, 10 * number + 8));
        text(&("track main\n".to_owned() + &scopes.collect::<String>()))
    };
    let found = Steps::find(&numbered("iteration_"), None);
    assert_eq!((found.source, &*found.name, found.count()), (StepSource::Scope, "iteration_#", 6));
    let one = Steps::find(&numbered("iteration_"), Some("iteration_3"));
    assert_eq!((&*one.name, one.count()), ("iteration_3", 1));
    assert_eq!(Steps::find(&numbered("layer_"), None).source, StepSource::Whole);
}

/// Codes decide what is a turn of recording in windows: a program's own mark, scope or range of that name is none.
#[test]
fn a_mark_that_is_named_like_a_turn_of_ours_turns_nothing() {
    const STEPS: &str = "end 60ms\n track main\n repeat 6 every 10ms\n step request 0..9ms\n end\n";
    let marks: String = ["GPU~recording~on 9ms", "GPU~recording~off 31ms", "recording-window 32ms", "off 33ms"]
        .map(|mark| format!("mark {mark}\n"))
        .concat();
    let found = |text: &str| Steps::find(&Timeline::from_text(text).unwrap(), None);
    let (plain, marked) = (found(STEPS), found(&format!("{STEPS}{marks}")));
    assert_eq!((marked.steps.len(), marked.apart.len()), (plain.steps.len(), 0));
    assert_eq!(why(&marked), why(&plain));
    let windows = found(&format!("{STEPS} window on 9ms\n window off 31ms\n"));
    assert!(windows.steps.len() < plain.steps.len() && why(&windows).contains("windows"), "{}", why(&windows));
}
