//! The GPU in the summary: how busy each device was, what its kernels, copies and layers took, and what launching them cost. All of
//! it is left out where no work of a device was recorded.

use super::Page;
use super::spark::bar;
use crate::gpu_words::{at_least, causes, how_named, in_no_layer, kernel_ns, overhead, place, title, top, window};
use crate::in_steps;
use crate::style::Ink;
use crate::table::Table;
use crate::units::{bytes, count, counted, percent_of};
use analysis::device::gpu::GpuMetrics;
use analysis::device::kernel_name;
use diagnosis::Diagnosis;
use std::io::{self, Write};

impl Page<'_> {
    pub(super) fn gpu(&self, out: &mut impl Write, diagnosis: &Diagnosis, gpu: &GpuMetrics) -> io::Result<()> {
        self.heading(out, "GPU", &format!("shares {}", window(diagnosis.steps.source)))?;
        let mut table = Table::new(["", "busy", "kernels", "exposed copies", "idle before", "idle after", "device"]);
        for device in gpu.devices.iter().take(self.top) {
            let mean = in_steps::of(self.timeline, diagnosis, device);
            let share = |ns: u64| percent_of(ns, device.window_ns);
            let busy = device.busy_ns as f64 / device.window_ns.max(1) as f64;
            let cells = [
                (Ink::Bar, bar(busy, 10, self.style)),
                (Ink::Plain, format!("{}{}", at_least(diagnosis, device), share(device.busy_ns))),
                (Ink::Plain, share(device.kernel_ns)),
                (Ink::Plain, share(device.exposed_copy_ns)),
                (Ink::Plain, self.time(mean.leading_ns)),
                (Ink::Plain, self.time(mean.trailing_ns)),
            ];
            table.row(cells, &self.style.plain(&title(self.timeline, device)), "");
        }
        table.write(out, self.style)?;
        self.launches(out, gpu)?;
        self.idle(out, diagnosis, gpu)?;
        self.kernels(out, gpu)?;
        self.copies(out, gpu)?;
        self.layers(out, gpu)
    }

    /// Why each device had nothing to do.
    fn idle(&self, out: &mut impl Write, diagnosis: &Diagnosis, gpu: &GpuMetrics) -> io::Result<()> {
        for device in gpu.devices.iter().take(self.top) {
            let steps = in_steps::count(self.timeline, diagnosis, device.process);
            let causes = causes(diagnosis, device);
            if causes.is_empty() {
                continue;
            }
            let about = if gpu.devices.len() > 1 { title(self.timeline, device) } else { String::new() };
            self.heading(out, "GPU idle time by cause", &self.style.plain(&about))?;
            let mut table = Table::new(["", "share", "per step", "cause"]);
            for one in causes.iter().take(self.top) {
                let cells = [
                    (Ink::Bar, bar(one.share, 10, self.style)),
                    (Ink::Plain, percent_of(one.ns, device.window_ns)),
                    (Ink::Plain, self.time(one.ns / steps)),
                ];
                table.row(cells, one.cause.name(), &self.style.plain(&top(one)));
            }
            table.write(out, self.style)?;
        }
        Ok(())
    }

    fn launches(&self, out: &mut impl Write, gpu: &GpuMetrics) -> io::Result<()> {
        let mut facts = Vec::new();
        if let Some(launch) = &gpu.launch {
            // Where only copies were launched there is none.
            if launch.latency.is_some() {
                let (p50, p95) = (self.time(launch.latency_p50_ns), self.time(launch.latency_p95_ns));
                facts.push(format!("launch to kernel {p50} (median), {p95} (p95)"));
                facts.push(format!("launch call {} (median)", self.time(launch.call_p50_ns)));
            }
            facts.push(format!("queue depth at most {}", count(launch.max_depth)));
        }
        facts.push(format!("recording overhead {}", overhead(gpu)));
        if gpu.before_window > 0 {
            facts.push(counted(gpu.before_window, "GPU operation") + " from before the recording");
        }
        for line in self.style.lines(&facts, self.style.width.saturating_sub(2)) {
            writeln!(out, "  {}", self.style.ink(Ink::Faint, &line))?;
        }
        Ok(())
    }

    fn kernels(&self, out: &mut impl Write, gpu: &GpuMetrics) -> io::Result<()> {
        if gpu.kernels.is_empty() {
            return Ok(());
        }
        self.heading(out, "Kernels", &self.more(gpu.kernels.len(), "kernels"))?;
        let mut table = Table::new(["", "share", "total", "count", "mean", "p95", "kernel"]);
        let all = kernel_ns(gpu);
        for kernel in gpu.kernels.iter().take(self.top) {
            let cells = [
                (Ink::Bar, bar(kernel.share, 10, self.style)),
                (Ink::Plain, percent_of(kernel.total_ns, all)),
                (Ink::Plain, self.time(kernel.total_ns)),
                (Ink::Plain, count(kernel.count)),
                (Ink::Plain, self.time(kernel.mean_ns)),
                (Ink::Plain, self.time(kernel.p95_ns)),
            ];
            let layer = kernel.layer.as_ref().map(ToString::to_string);
            let from = place(kernel).map(|(file, line)| format!("{file}:{line}"));
            let at = layer.or(from).unwrap_or_default();
            table.row(cells, kernel_name::plain(self.timeline.names.text(kernel.name)), &at);
        }
        table.write(out, self.style)
    }

    fn copies(&self, out: &mut impl Write, gpu: &GpuMetrics) -> io::Result<()> {
        if gpu.copies.is_empty() {
            return Ok(());
        }
        self.heading(out, "Copies", "")?;
        let mut table = Table::new(["count", "bytes", "total", "GB/s", "exposed", "what"]);
        for copy in gpu.copies.iter().take(self.top) {
            let cells = [
                count(copy.count),
                bytes(copy.bytes),
                self.time(copy.total_ns),
                format!("{:.2}", copy.gb_per_s),
                self.time(copy.exposed_ns),
            ];
            table.row(cells.map(|cell| (Ink::Plain, cell)), &self.style.plain(&copy.label), "");
        }
        table.write(out, self.style)
    }

    fn layers(&self, out: &mut impl Write, gpu: &GpuMetrics) -> io::Result<()> {
        if gpu.layers.is_empty() {
            return Ok(());
        }
        let notes = [in_no_layer(gpu), self.more(gpu.layers.len(), "layers")];
        let notes: Vec<&str> = notes.iter().map(String::as_str).filter(|note| !note.is_empty()).collect();
        self.heading(out, "Layers by kernel time", &notes.join("; "))?;
        let all = kernel_ns(gpu);
        let mut table = Table::new(["", "share", "total", "kernels", "layer, and how its kernels were matched"]);
        for layer in gpu.layers.iter().take(self.top) {
            let cells = [
                (Ink::Bar, bar(layer.total_ns as f64 / all.max(1) as f64, 10, self.style)),
                (Ink::Plain, percent_of(layer.total_ns, all)),
                (Ink::Plain, self.time(layer.total_ns)),
                (Ink::Plain, count(layer.kernels)),
            ];
            let name = self.timeline.names.text(layer.name);
            table.row(cells, &self.style.plain(name), &self.style.plain(&how_named(layer)));
        }
        table.write(out, self.style)
    }
}
