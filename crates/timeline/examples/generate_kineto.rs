//! Writes a trace as torch.profiler does, to measure readers with: `generate_kineto FILE EVENTS`. Steps of a thousand events:
//! operators with shapes inside Python functions, launches with their arrows and kernels, a copy and a wait at the end. About
//! 430 bytes an event, as recordings with shapes and stacks have.

use std::io::{BufWriter, Write};

const KERNELS: u64 = 40;
const LAYERS: u64 = 110;

struct Out<W> {
    to: W,
    events: u64,
    correlation: u64,
    device: u64,
}

/// Microseconds with three decimals.
fn micros(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}

impl<W: Write> Out<W> {
    fn event(
        &mut self,
        phase: &str,
        category: &str,
        name: &str,
        place: (u64, u64),
        span: (u64, Option<u64>),
        args: &str,
    ) {
        let comma = if self.events == 0 { "" } else { "," };
        let dur = span.1.map(|dur| format!(", \"dur\": {}", micros(dur))).unwrap_or_default();
        let (pid, tid, ts) = (place.0, place.1, micros(span.0));
        writeln!(
            self.to,
            "{comma}\n  {{\n    \"ph\": \"{phase}\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {pid}, \"tid\": {tid},\n    \
             \"ts\": {ts}{dur}{args}\n  }}"
        )
        .expect("written");
        self.events += 1;
    }

    /// One layer of the model: nine events in 40 microseconds.
    fn layer(&mut self, number: u64, now: u64) {
        let thread = (4515, 4515);
        let id = self.events;
        let python = |id: u64| {
            format!(
                ", \"args\": {{\n      \"Python parent id\": {}, \"Python id\": {id}, \"Ev Idx\": {id}\n    }}",
                id - id.min(1)
            )
        };
        let file = "transformers/models/llama/modeling_llama.py";
        self.event(
            "X",
            "python_function",
            &format!("{file}({}): forward", 300 + number),
            thread,
            (now, Some(39_000)),
            &python(id),
        );
        self.event(
            "X",
            "python_function",
            &format!("nn.Module: Linear_{number}"),
            thread,
            (now + 1_000, Some(37_000)),
            &python(id),
        );
        let shapes = format!(
            ", \"args\": {{\n      \"External id\": {id},\"Record function id\": 0, \"Fwd thread id\": 0, \"Sequence number\": {id}, \"Module Hierarchy\": \"\", \"Call stack\": \"modeling_llama.py(312): forward;modules/linear.py(117): forward\", \"Concrete Inputs\": [\"\", \"\", \"\", \"[1, 1]\", \"9223372036854775807\"], \"Input type\": [\"c10::BFloat16\", \
             \"c10::BFloat16\", \"c10::BFloat16\", \"ScalarList\", \"Scalar\"], \"Input Strides\": [[{k}, 1], [1, {k}], [1], [], []], \"Input Dims\": [[4, 512, {k}], [{k}, {k}], [{k}], [], []], \"Ev Idx\": {id}\n    }}",
            k = 1024 + 64 * (number % 16)
        );
        for (depth, name) in ["aten::linear", "aten::t", "aten::addmm"].iter().enumerate() {
            let at = now + 2_000 + 3_000 * depth as u64;
            self.event("X", "cpu_op", name, thread, (at, Some(30_000 - 6_000 * depth as u64)), &shapes);
        }
        self.correlation += 1;
        let correlation = self.correlation;
        let at = now + 10_000;
        let args = format!(
            ", \"args\": {{\n      \"External id\": {id}, \"cbid\": 211, \"correlation\": {correlation}\n    }}"
        );
        self.event("X", "cuda_runtime", "cudaLaunchKernel", thread, (at, Some(6_000)), &args);
        self.device = self.device.max(at + 8_000);
        let (start, dur) = (self.device, 5_000 + number % 7 * 3_000);
        let kernel = number * 7 % KERNELS;
        let name = format!(
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, {kernel}ul>, 4, \
             TrivialOffsetCalculator<2, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<2>, \
             at::native::memory::StoreWithCast<1> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, {kernel}ul>, \
             TrivialOffsetCalculator<2, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<2>, \
             at::native::memory::StoreWithCast<1>)"
        );
        let args = format!(
            ", \"args\": {{\n      \"External id\": {id}, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": {correlation}, \
             \"registers per thread\": 32, \"shared memory\": 0, \"blocks per SM\": 14.545455, \"warps per SM\": 58.181820, \"grid\": [{}, 1, 1], \
             \"block\": [128, 1, 1], \"est. achieved occupancy %\": 91\n    }}",
            1920 + kernel
        );
        self.event("X", "kernel", &name, (0, 7), (start, Some(dur)), &args);
        self.device += dur;
        let arrow = |id: u64| format!(", \"id\": {id}, \"bp\": \"e\"");
        self.event("s", "ac2g", "ac2g", thread, (at, None), &arrow(correlation));
        self.event("f", "ac2g", "ac2g", (0, 7), (start, None), &arrow(correlation));
    }
}

fn main() {
    let usage = "generate_kineto FILE EVENTS";
    let mut words = std::env::args().skip(1);
    let (file, wanted) =
        (words.next().expect(usage), words.next().and_then(|count| count.parse::<u64>().ok()).expect(usage));
    let to = BufWriter::with_capacity(1 << 20, std::fs::File::create(file).expect("the file"));
    let mut out = Out { to, events: 0, correlation: 0, device: 0 };
    out.to
        .write_all(b"{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H100 80GB HBM3\", \"totalGlobalMem\": 85018279936, \"computeMajor\": 9, \"computeMinor\": 0, \"numSms\": 132}],\n  \"cuda_driver_version\": 12090,\n  \"traceEvents\": [")
        .expect("written");
    let (mut now, mut step) = (1_419_247_332_972_313, 0);
    while out.events < wanted {
        let begin = now;
        for number in 0..LAYERS {
            out.layer(number, now);
            now += 40_000;
        }
        out.correlation += 1;
        let (thread, correlation) = ((4515, 4515), out.correlation);
        let args = format!(", \"args\": {{\n      \"cbid\": 131, \"correlation\": {correlation}\n    }}");
        let wait = out.device.max(now) - now + 4_000;
        out.event("X", "cuda_runtime", "cudaStreamSynchronize", thread, (now, Some(wait)), &args);
        now += wait + 10_000;
        out.event("X", "user_annotation", &format!("ProfilerStep#{step}"), thread, (begin, Some(now - begin)), "");
        now += 1_000;
        step += 1;
    }
    out.to
        .write_all(b"],\n  \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": 1751410836000000000\n}\n")
        .expect("written");
    out.to.flush().expect("written");
}
