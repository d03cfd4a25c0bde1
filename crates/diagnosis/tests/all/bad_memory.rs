//! Memory that cannot be, and memory that is only unlucky: sizes beyond all memory, addresses that come again at once, frees of what nobody allocated,
//! an allocator that is swapped while the program runs. The diagnosis ends, adds up, and blames nothing that was not seen.

use crate::bad_input::check;
use diagnosis::Diagnosis;
use timeline::Timeline;

fn of(text: &str) -> Diagnosis {
    check(&Timeline::from_text(text).unwrap())
}

fn codes(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.findings.iter().map(|finding| finding.code.as_str()).collect()
}

const STEPS: &str = "process p\n device 0 NVIDIA_H200\n track main\n";

#[test]
fn sizes_of_2_to_the_63_and_more_add_up() {
    for size in ["9223372036854775808", "18446744073709551615"] {
        of(&format!(
            "{STEPS} repeat 40 every 1ms\n step r 0..900us\n block alloc 10us {size} at 1 each main>keep@m.py:4\n segment alloc 9us {size} at 1\n \
             alloc 9us {size} at 1\n end\n oom 39ms {size} free {size}\n reserved {size} at 1\n holds 4M active\n reserved {size} at 1"
        ));
    }
}

#[test]
fn an_address_that_comes_again_within_a_microsecond_is_no_leak() {
    let found = of(&format!(
        "{STEPS} repeat 60 every 1ms\n step r 0..900us\n block alloc 100us 4M at 1 main>f@m.py:4\n block free 100.5us 4M at 1\n \
         block alloc 100.5us 4M at 1 main>f@m.py:5\n block free 101us 4M at 1\n alloc 9us 4096 at 7\n free 9us 0 at 7\n alloc 9us 8192 at 7\n free 9.2us 0 at 7\n end"
    ));
    assert!(!codes(&found).contains(&"leak"), "{:?}", codes(&found));
}

#[test]
fn frees_of_what_nobody_allocated_are_no_leak_and_no_growth() {
    let found = of(&format!(
        "{STEPS} repeat 60 every 1ms\n step r 0..900us\n block free 100us 4M at 1 each\n free 200us 0 at 5 each\n end"
    ));
    assert!(!codes(&found).contains(&"leak"), "{:?}", codes(&found));
}

/// From the middle on the program takes its memory elsewhere: PyTorch's blocks are freed, and no block comes any more.
#[test]
fn an_allocator_that_is_swapped_while_it_runs_is_no_leak() {
    let found = of(&format!(
        "{STEPS} block alloc 1us 64M at 1 main>load@m.py:1\n repeat 30 every 1ms\n step r 0..900us\n block alloc 10us 4M at 2 main>f@m.py:4\n \
         block free 800us 4M at 2\n end\n block free 30ms 64M at 1\n alloc 30ms 67108864 at 9\n repeat 30 every 1ms\n step r 31ms..31900us\n \
         alloc 31010us 4194304 at 8\n free 31800us 0 at 8\n end"
    ));
    assert!(!codes(&found).contains(&"leak"), "{:?}", codes(&found));
}

/// Lines of memory in any order, the same in every run.
#[test]
fn memory_at_random() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut roll = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let sizes = ["0", "1", "4096", "4M", "2G", "9223372036854775808", "18446744073709551615"];
    let stacks = ["", "main>f@a.py:1", "main>g@b.py:2", "main>at::cuda::getCUDABlasWorkspace@m.py:3"];
    for _ in 0..600 {
        let mut text = String::from("process p\n device 0 GPU\n track main\n");
        if roll(4) == 0 {
            text += "allocator expandable_segments=True\n";
        }
        for step in 0..roll(24) {
            text += &format!("step r {step}ms..{}us\n", step * 1000 + roll(1000));
        }
        for _ in 0..roll(90) {
            let (at, size, address) = (roll(24_000), sizes[roll(7) as usize], 1 + roll(5));
            let (stack, handle) = (stacks[roll(4) as usize], roll(4));
            text += &match roll(14) {
                0..=2 => format!("block alloc {at}us {size} at {address} {stack}\n"),
                3 | 4 => format!("block free {at}us {size} at {address}\n"),
                5 => format!(
                    "segment {} {at}us {size} at {address}\n",
                    ["alloc", "free", "map", "unmap"][roll(4) as usize]
                ),
                6 => format!("oom {at}us {size} free {}\n", sizes[roll(7) as usize]),
                7 => format!("reserved {size} at {address}\n holds 4M active {stack}\n holds {} free\n", roll(9)),
                8 => format!("counter host gpu_memory_used_bytes {at}us={}\n", roll(1 << 40)),
                9 => format!("failed {at}us 4096 error 2\n"),
                10 => format!("create {at}us 4096 handle {handle}\n map {at}us 4096 at {address} handle {handle}\n"),
                11 => format!("unmap {at}us {} at {address}\n", roll(9999)),
                12 => format!("{} {at}us 0 handle {handle}\n", ["release", "import"][roll(2) as usize]),
                _ => format!("alloc {at}us {} at {address}\n free {}us 0 at {address}\n", roll(1 << 34), roll(24_000)),
            };
        }
        of(&text);
    }
}
