//! Advice fits the recording: nobody who has another tool's file, or a program without PyTorch, is told to use what is not
//! theirs.

use diagnosis::{Diagnosis, Options, diagnose};
use timeline::{RecordedBy, Timeline};

/// A recording without steps, with a call every microsecond, and GPU work that was launched before it.
const CALLS: &str = "
    track main
    repeat 400 every 10us
      call f@a.py:1 0..1us
      call g@a.py:2 2us..3us
    end
    api cudaLaunchKernel 1us..2us corr 1
    stream 7
    kernel gemm 5us..1ms corr 1
    kernel old 1ms..3ms corr 0";

/// Steps with small kernels, waits, and copies of pageable memory.
const WAITS: &str = "
    device 0 NVIDIA_H200
    track main
    repeat 40 every 10ms
      step request 0..10ms
      stream 7
      api cudaMemcpyAsync 10us..1.9ms
      copy h2d 1ms..2ms 6000000 pageable
      api cudaLaunchKernel 1.91ms..1.92ms
      kernel forward 2ms..3ms
      api cudaStreamSynchronize 1.93ms..3.01ms
      api cudaLaunchKernel 6ms..6.01ms
      kernel forward 6.02ms..8ms
      api cudaMemcpyAsync 6.02ms..8.1ms
      copy d2h 8ms..8.05ms 4
    end";

fn of(text: &str, change: impl Fn(&mut Timeline)) -> (Vec<String>, Diagnosis) {
    let mut timeline = Timeline::from_text(text).unwrap();
    change(&mut timeline);
    let diagnosis = diagnose(&timeline, &Options::default());
    let found =
        diagnosis.findings.iter().flat_map(|found| found.actions.iter().map(|one| one.text()).chain([&*found.verify]));
    let mut said: Vec<String> = found.chain(diagnosis.answer.iter().map(String::as_str)).map(str::to_owned).collect();
    said.extend(diagnosis.abstentions.iter().map(|one| one.reason.clone()));
    said.extend(diagnosis.health.iter().map(|line| line.text.clone()));
    (said, diagnosis)
}

fn codes(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.findings.iter().map(|found| found.code.as_str()).collect()
}

#[test]
fn our_flags_are_not_for_other_tools_files() {
    const FLAGS: [&str; 8] = [
        "--calls",
        "--layers",
        "--gpu-detail",
        "--overhead-budget",
        "--min-us",
        "--native",
        "--rate",
        "from inferscope",
    ];
    let ours = of(CALLS, |_| {}).0;
    assert!(ours.iter().any(|text| text.contains("--calls --min-us")), "{ours:#?}");
    for (recorder, says) in
        [(RecordedBy::Kineto, "with_stack=False"), (RecordedBy::Nsight, "nsys profile --trace=cuda,nvtx")]
    {
        let (said, diagnosis) = of(CALLS, |timeline| timeline.info.recorded_by = recorder);
        for code in ["overhead-in-window", "no-steps-found", "work-from-before-window"] {
            assert!(codes(&diagnosis).contains(&code), "{code}: {:?}", codes(&diagnosis));
        }
        for text in &said {
            assert!(!FLAGS.iter().any(|flag| text.contains(flag)), "{recorder}: {text}");
            assert!(!text.contains("inferscope run") || text.contains("or record with"), "{recorder}: {text}");
        }
        assert!(said.iter().any(|text| text.contains(says)), "{recorder}: {said:#?}");
    }
}

#[test]
fn a_program_without_pytorch_is_told_of_cuda() {
    let native = |timeline: &mut Timeline| {
        timeline.processes[0].python.clear();
        timeline.processes[0].program = "./server".into();
    };
    let (torch, _) = of(WAITS, |_| {});
    assert!(torch.iter().any(|text| text.contains("torch")), "{torch:#?}");
    let (said, diagnosis) = of(WAITS, native);
    assert!(codes(&diagnosis).len() > 2, "{:?}", codes(&diagnosis));
    for text in &said {
        assert!(!text.contains("torch") && !text.contains("--layers") && !text.contains("non_blocking"), "{text}");
    }
    assert!(said.iter().any(|text| text.contains("cudaHostAlloc")), "{said:#?}");
    assert!(diagnosis.findings.iter().all(|found| !found.actions.is_empty()));
}

#[test]
fn a_program_that_is_not_python_is_not_told_to_sample_its_stacks() {
    let native = |timeline: &mut Timeline| {
        timeline.processes[0].python.clear();
        timeline.processes[0].program = "./server".into();
    };
    let steps = "track main\n repeat 40 every 10ms\n step request 0..8ms\n end";
    assert!(of(steps, |_| {}).1.answer[2].contains("inferscope run"));
    let (said, diagnosis) = of(steps, native);
    assert!(diagnosis.answer[2].contains("NVTX"), "{:?}", diagnosis.answer);
    assert!(said.iter().all(|text| !text.contains("--calls")), "{said:#?}");
}

#[test]
fn steps_are_marked_as_the_program_can() {
    let marks =
        |change: fn(&mut Timeline)| of(CALLS, change).0.into_iter().find(|text| text.starts_with("Mark one request"));
    let says = |said: Option<String>, text: &str| assert!(said.as_ref().unwrap().contains(text), "{said:?}");
    says(marks(|_| {}), "from inferscope import step");
    says(marks(|timeline| timeline.info.recorded_by = RecordedBy::Kineto), "prof.step()");
    says(marks(|timeline| timeline.info.recorded_by = RecordedBy::Nsight), "nvtxRangePushA");
}
