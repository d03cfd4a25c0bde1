//! The timelines with devices that the reports are tested on: a small one as text, with one of each kind of work, and a model
//! of any size with layers, graphs, copies, waits and counters.

use timeline::gpu::{Device, Job, Shape, Site, WorkExtra, WorkKind, detail};
use timeline::{Builder, CollectorState, Process, ProcessIndex, SliceExtra, SliceKind, State, Timeline, TrackIndex};

/// Four requests: a copy in, two kernels (one from a graph that overlaps), a memset, a copy out, a wait; and one piece of work
/// from before the window.
pub const SMALL: &str = include_str!("small.timeline");

pub fn small() -> Timeline {
    Timeline::from_text(SMALL).expect("a timeline")
}

/// Sixty requests of 8 ms; in two of them garbage is collected for 12 ms more.
pub fn tail() -> Timeline {
    let mut text = "rate 1000\ntrack main\n".to_owned();
    for number in 0..60 {
        let at = |ms: u64| format!("{}ms", 30 * number + ms);
        let slow = number == 20 || number == 40;
        text += &format!("step request {}..{}\n", at(0), at(if slow { 20 } else { 8 }));
        text += &format!("samples {}..{} every 1ms active gil main>serve@serve.py:30\n", at(0), at(8));
        if slow {
            text += &format!("gc collect {}..{}\n", at(8), at(20));
            text += &format!("samples {}..{} every 1ms active gil main>build@serve.py:41\n", at(8), at(20));
        }
    }
    Timeline::from_text(&text).expect("a timeline")
}

/// Steps of 20 µs with a kernel of 10 µs each; the last takes 40 µs and launches nothing.
pub fn many_steps(count: u64) -> Timeline {
    let mut model = Model::new();
    for step in 0..count - 1 {
        let at = MS + step * 30 * US;
        model.slice(SliceKind::Step, "decode", at, 20 * US, 0);
        model.call("cudaLaunchKernel", at + US, 2 * US);
        model.work(WorkKind::Kernel, "gemm", 7, at + 5 * US, 10 * US, WorkExtra::default());
    }
    model.slice(SliceKind::Step, "decode", MS + (count - 1) * 30 * US, 40 * US, 0);
    model.builder.timeline.info.state = State::Complete;
    model.builder.finish()
}

const US: u64 = 1000;
const MS: u64 = 1000 * US;

/// A decoder: each step runs `layers` layers of seven kernels, then a graph, and waits.
pub fn model(steps: u64, layers: u64) -> Timeline {
    let mut model = Model::new();
    let long = 2 * MS + layers * 7 * 14 * US;
    for step in 0..steps {
        model.step(step, MS + step * (long + 400 * US), long, layers);
    }
    model.counters(MS + steps * (long + 400 * US));
    model.builder.timeline.info.state = State::Complete;
    model.builder.finish()
}

struct Model {
    builder: Builder,
    process: ProcessIndex,
    main: TrackIndex,
    correlation: u32,
    /// When the device is free.
    free: u64,
}

impl Model {
    fn new() -> Model {
        let mut builder = Builder::default();
        let on =
            |name: &str| CollectorState { name: name.into(), state: "on".into(), own_ns: 3 * MS, ..Default::default() };
        let process = builder.process(Process {
            pid: 4242,
            program: "serve.py".into(),
            python: "3.12.1".into(),
            collectors: vec![on("gpu")],
            ..Process::default()
        });
        let main = builder.track(process, 4242, "MainThread");
        builder.device(device(Some(process)));
        builder.device(device(None));
        builder.timeline.info.command = "python serve.py --model gpt2".into();
        builder.timeline.info.settings.rate_hz = Some(100.0);
        builder.timeline.info.host.cpu_count = Some(16);
        Model { builder, process, main, correlation: 0, free: 0 }
    }

    fn slice(&mut self, kind: SliceKind, name: &str, start: u64, dur: u64, id: u32) {
        let name = self.builder.name(name, "", 0);
        self.builder.slice(self.main, kind, name, start, dur, SliceExtra { id, ..SliceExtra::default() });
    }

    fn call(&mut self, name: &str, at: u64, dur: u64) -> u32 {
        self.correlation += 1;
        self.slice(SliceKind::ApiCall, name, at, dur, self.correlation);
        self.correlation
    }

    fn work(&mut self, kind: WorkKind, name: &str, stream: u32, start: u64, dur: u64, more: WorkExtra) {
        let site = Site { process: self.process, device: 0, context: 1, stream };
        let shape = Shape { grid: [128, 1 + dur as u32 % 3, 1], block: [256, 1, 1], registers: 96, ..Shape::default() };
        let shape = (kind == WorkKind::Kernel).then_some(Shape { shared_dynamic: 48 << 10, ..shape });
        let name = self.builder.name(name, "", 0);
        self.builder.work(Job { site, kind, name, start, dur, correlation: self.correlation, shape, more });
    }

    fn step(&mut self, step: u64, at: u64, long: u64, layers: u64) {
        const KERNELS: [(&str, u64); 7] = [
            ("void at::native::vectorized_layer_norm_kernel<float, float>(int, float, float const*)", 4),
            ("ampere_sgemm_128x64_tn", 22),
            ("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4>>(Flash_fwd_params)", 12),
            ("ampere_sgemm_64x32_sliced1x4_tn", 9),
            ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)", 2),
            ("cutlass_80_simt_sgemm_256x128_8x4_tn_align1", 26),
            ("void at::native::elementwise_kernel<128, 2, at::native::GeluCUDAKernelImpl>(int)", 3),
        ];
        self.slice(SliceKind::Step, "decode", at, long, 0);
        self.call("cudaMemcpyAsync", at + 20 * US, 9 * US);
        let copy = |kind, source, target, bytes| WorkExtra {
            bytes,
            detail: detail::pack(kind, source, target, 1) as u32,
            ..WorkExtra::default()
        };
        let pageable = copy(detail::H2D, detail::PAGEABLE, detail::DEVICE, 4 << 20);
        self.work(WorkKind::Memcpy, "Memcpy HtoD (Pageable -> Device)", 7, at + 35 * US, 260 * US, pageable);
        self.slice(SliceKind::Nvtx, "forward", at + 300 * US, long - 900 * US, 0);
        self.free = at + 310 * US;
        let mut now = at + 310 * US;
        for layer in 0..layers {
            let begin = now;
            for (place, (name, micros)) in KERNELS.iter().enumerate() {
                self.call(if place == 2 { "cuLaunchKernel" } else { "cudaLaunchKernel" }, now + 3 * US, 5 * US);
                let start = self.free.max(now + 9 * US);
                let dur = micros * US + (step * 37 + layer * 11) % 900;
                self.work(WorkKind::Kernel, name, 7, start, dur, WorkExtra::default());
                self.free = start + dur + 800;
                now += 12 * US;
            }
            self.slice(SliceKind::Layer, &format!("transformer.h.{layer}"), begin, now - begin, 0);
            self.slice(SliceKind::Layer, &format!("transformer.h.{layer}.attn"), begin + US, 36 * US, 0);
            self.slice(SliceKind::Layer, &format!("transformer.h.{layer}.mlp"), begin + 49 * US, 34 * US, 0);
        }
        self.call("cudaGraphLaunch", now + 5 * US, 14 * US);
        for node in 0..12u64 {
            let more = WorkExtra { graph: 3, node: node + 1, ..WorkExtra::default() };
            let start = self.free + 20 * US + node * 9 * US;
            self.work(WorkKind::Kernel, "void sample_topk_kernel<__half, 128>(int)", 13, start, 14 * US, more);
        }
        self.free += 160 * US;
        self.call("cudaMemsetAsync", now + 40 * US, 3 * US);
        let set = WorkExtra { bytes: 1 << 16, ..WorkExtra::default() };
        self.work(WorkKind::Memset, "Memset (Device)", 7, self.free, 3 * US, set);
        self.call("cudaMemcpyAsync", now + 50 * US, 6 * US);
        let pinned = copy(detail::D2H, detail::DEVICE, detail::PINNED, 1 << 20);
        self.work(WorkKind::Memcpy, "Memcpy DtoH (Device -> Pinned)", 7, self.free + 6 * US, 42 * US, pinned);
        self.call("cudaStreamSynchronize", now + 60 * US, self.free + 52 * US - now - 60 * US);
        let stream = WorkExtra { detail: 3, ..WorkExtra::default() };
        self.work(WorkKind::Sync, "stream synchronise", 7, now + 61 * US, self.free + 50 * US - now - 61 * US, stream);
        self.samples(step, at, long);
    }

    fn samples(&mut self, step: u64, at: u64, long: u64) {
        let (main, forward) = (self.builder.name("main", "serve.py", 5), self.builder.name("forward", "model.py", 40));
        let root = self.builder.frame(None, main, 9);
        let leaf = self.builder.frame(Some(root), forward, 41 + (step % 5) as u32);
        self.builder.sample(self.main, at + long / 2, leaf, true, true);
    }

    fn counters(&mut self, end: u64) {
        for point in 0..200u64 {
            let at = point * end / 200;
            let wave = ((point as f64 / 9.0).sin() * 20.0) as i64;
            for (name, value) in [
                ("gpu_utilisation_percent", 62 + wave),
                ("gpu_memory_bandwidth_utilisation_percent", 31 + wave / 2),
                ("gpu_memory_used_bytes", (9 << 30) + wave * (1 << 24)),
                ("gpu_memory_total_bytes", 141 << 30),
                ("gpu_sm_clock_mhz", 1755 - i64::from(point > 150) * 300),
                ("gpu_memory_clock_mhz", 3201),
                ("gpu_power_mw", 310_000 + wave * 1000),
                ("gpu_temperature_c", 54 + point as i64 / 40),
                ("gpu_throttle_reasons", if point > 150 { 4 } else { 0 }),
                ("gpu_pcie_rx_bytes_per_s", 2_000_000_000 + wave * 10_000_000),
                ("gpu_pcie_tx_bytes_per_s", 400_000_000),
            ] {
                self.builder.count(None, None, name, at, value);
            }
            self.builder.count(Some(self.process), None, "gpu_process_memory_bytes", at, (8 << 30) + wave);
        }
    }
}

fn device(process: Option<ProcessIndex>) -> Device {
    Device {
        process,
        name: "NVIDIA H200".into(),
        uuid: "GPU-6f1e".into(),
        multiprocessors: Some(132),
        compute_capability: "9.0".into(),
        memory_bytes: Some(141 << 30),
        bandwidth: Some(4_800_000_000_000),
        cupti: "130001".into(),
        driver: "13.0".into(),
        ..Device::default()
    }
}
