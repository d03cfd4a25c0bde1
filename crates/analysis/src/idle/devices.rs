//! Measures the devices of a recording, on all cores: first what their gaps are read from, then the gaps, in parts that follow each
//! other. What a gap is, and how parts are joined, is left to others.

use super::DeviceIdle;
use super::IdleInputs;
use super::busy::{self, Busy, FirstLinked};
use super::found::Found;
use super::gaps::{self, Device};
use super::handed;
use super::host::{Hosts, Piece};
use super::parts::{Inside, Part};
use crate::host::StepContext;
use crate::steps::Step;
use crate::steps::chosen::Chosen;
use crate::steps::groups::Groups;
use crate::steps::windows::Window;
use timeline::TrackIndex;
use timeline::gpu::Stream;
use timeline::parallel::{self, Task};

/// By process and ordinal, as the devices of [`crate::device::gpu::GpuMetrics`].
pub fn measure(context: &StepContext, chosen: Option<&Chosen>) -> Vec<DeviceIdle> {
    measure_in(IdleInputs::new(context, chosen), None)
}

/// `parts`: for each device, and for whatever else is cut; None: as many as it is worth.
fn measure_in(inputs: IdleInputs, parts: Option<usize>) -> Vec<DeviceIdle> {
    let streams = &inputs.timeline.gpu.streams;
    let streams: Vec<&[Stream]> = streams.chunk_by(|a, b| (a.process, a.device) == (b.process, b.device)).collect();
    let usual: Vec<_> = streams.iter().map(|streams| busy::usual_thread(inputs, streams)).collect();
    let hosts = Hosts::new(inputs, parts);
    let Ready { spans, rest, members } = Ready::new(inputs, &streams, &hosts, &usual, parts);

    let shown = members.median.and_then(|step| inputs.steps.steps.get(step as usize));
    let mut devices: Vec<Device> = Vec::new();
    for (place, (streams, (windows, first))) in streams.iter().zip(rest).enumerate() {
        let Some(stream) = streams.first().filter(|_| !spans[place].is_empty()) else { continue };
        devices.push(Device {
            process: stream.process,
            ordinal: stream.device,
            inputs,
            hosts: &hosts,
            usual: usual[place],
            others: (&spans, place),
            first,
            inside: Inside::new(&windows, &spans[place], parts),
            windows,
            members: &members,
            shown: shown.map(|step| (step.start, step.end)),
        });
    }

    let cuts = devices.iter().map(|device| device.inside.cut(parts.unwrap_or_else(|| device.inside.worth())));
    let mut found: Vec<Vec<_>> =
        cuts.map(|cuts| cuts.into_iter().map(|part| (part, Found::default())).collect()).collect();
    let mut host: Vec<Vec<Piece>> = devices.iter().map(|_| Vec::new()).collect();
    let mut tasks: Vec<Task> = Vec::new();
    for ((device, found), host) in devices.iter().zip(&mut found).zip(&mut host) {
        tasks.push(Box::new(move || *host = of_step(device, shown)));
        tasks.extend(
            found.iter_mut().map(|(part, found)| Box::new(move || *found = gaps::attribute(device, part)) as Task),
        );
    }
    parallel::run(inputs.timeline.gpu.work.len(), tasks, || ());
    let all = devices.into_iter().zip(found).zip(host);
    all.map(|((device, found), host)| join(inputs, device, found, host)).collect()
}

/// What the gaps are read from.
struct Ready {
    /// By device: when it was busy.
    spans: Vec<Vec<Busy>>,
    /// By device: its windows, and the first works whose launch was recorded.
    rest: Vec<(Vec<Window>, FirstLinked)>,
    members: Groups,
}

impl Ready {
    /// What the gaps ask of threads is made at the same time; they would wait for it, one behind the other.
    fn new(
        inputs: IdleInputs,
        streams: &[&[Stream]],
        hosts: &Hosts,
        usual: &[Option<TrackIndex>],
        parts: Option<usize>,
    ) -> Ready {
        let device = inputs.device;
        let mut ready = Ready {
            spans: streams.iter().map(|_| Vec::new()).collect(),
            rest: streams.iter().map(|_| Default::default()).collect(),
            members: Groups::default(),
        };
        let Ready { spans, rest, members } = &mut ready;
        let mut tracks: Vec<TrackIndex> = usual.iter().flatten().copied().collect();
        tracks.sort_unstable();
        tracks.dedup();
        let mut tasks: Vec<Task> = Vec::new();
        for track in tracks {
            tasks.push(Box::new(move || _ = hosts.of(track)));
        }
        for (streams, spans) in streams.iter().zip(spans) {
            tasks.push(Box::new(move || *spans = busy::spans(inputs, streams, parts)));
        }
        for (streams, (windows, first)) in streams.iter().zip(rest) {
            tasks.push(Box::new(move || {
                *windows = streams.first().map(|first| device.windows_of(first.process)).unwrap_or_default();
                *first = busy::first_linked(inputs, streams);
            }));
        }
        tasks.push(Box::new(move || *members = Groups::new(inputs.steps)));
        tasks.push(Box::new(|| _ = hosts.first()));
        parallel::run(inputs.timeline.gpu.work.len(), tasks, || _ = hosts.between_launches());
        ready
    }
}

/// What the thread of the step that is shown did in it.
fn of_step(device: &Device, shown: Option<&Step>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let Some(step) = shown else { return pieces };
    // Steps of several threads that overlap are one window: the one that is shown may lie anywhere in it.
    if device.windows.iter().any(|window| window.start <= step.start && step.end <= window.end) {
        handed::split(device.inputs, &mut device.hosts.ask(), step.track, (step.start, step.end), &mut pieces);
    }
    pieces
}

fn join(inputs: IdleInputs, device: Device, parts: Vec<(Part, Found)>, host: Vec<Piece>) -> DeviceIdle {
    let mut parts = parts.into_iter().map(|(_, found)| found);
    let mut all = parts.next().unwrap_or_default();
    parts.for_each(|found| all.join(found));
    all.tally(&device.windows);
    all.sums.zones = device.inside.zones;
    let Found { idle_ns, sums, groups, median, .. } = all;
    let window_ns = device.windows.iter().fold(0u64, |sum, window| sum.saturating_add(window.end - window.start));
    DeviceIdle {
        process: device.process,
        ordinal: device.ordinal,
        window_ns,
        busy_ns: window_ns - idle_ns,
        causes: sums.causes(inputs.timeline, window_ns),
        sums,
        between_launches_ns: device.hosts.between_launches(),
        groups,
        median,
        host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepAnalysis;
    use crate::steps::StepSource;
    use std::collections::BTreeMap;
    use timeline::Timeline;

    /// Everything that is known of a device, its maps in an order of their own.
    fn all_of(mut device: DeviceIdle) -> String {
        let by: BTreeMap<_, _> = std::mem::take(&mut device.sums.by).into_iter().collect();
        let waits: BTreeMap<_, _> = std::mem::take(&mut device.sums.waits).into_iter().collect();
        let groups = std::mem::take(&mut device.groups).map(|group| group.into_iter().collect::<BTreeMap<_, _>>());
        format!("{device:#?}\n{by:#?}\n{waits:#?}\n{groups:#?}")
    }

    /// Waits, copies, loading, two threads that launch, two devices, samples, and every eighth step a slow one.
    fn recording(step: &str) -> String {
        let mut text = String::from("rate 1000\n");
        let steps = |text: &mut String, of: &dyn Fn(u64, u64) -> String| {
            for (place, at) in (0..40u64).scan(0, |at, place| {
                let begin = *at;
                *at += if place % 8 == 7 { 3_000 } else { 1_500 + place * 3 };
                Some((place, begin))
            }) {
                *text += &of(place, at);
            }
        };
        text += "track main\n";
        steps(&mut text, &|place, at| {
            let us = |after: u64| format!("{}us", at + after);
            let (end, odd) = (us(if place % 8 == 7 { 2_900 } else { 1_400 }), place * 7 % 50);
            let copies = if place % 3 == 0 { 1 } else { 3 };
            let mut step = step.replace("START", &us(0)).replace("END", &end);
            step += &format!("sample {} active gil main>tokenise:5\n", us(20));
            for kernel in 0..6 {
                let (launch, begin) = (50 + kernel * 8 + odd, 60 + kernel * 62 + odd);
                step += &format!("api cudaLaunchKernel {}..{}\nstream 7 device 0\n", us(launch), us(launch + 5));
                step += &format!("kernel k{kernel} {}..{}\n", us(begin), us(begin + 60));
            }
            step += &format!("gc 2 {}..{}\n", us(460), us(470));
            for copy in 0..copies {
                let begin = 500 + copy * 100 + odd;
                let call = if place % 5 == 0 { "cudaMemcpy" } else { "cudaMemcpyAsync" };
                step += &format!("api {call} {}..{}\n", us(begin), us(begin + 30));
                step += &format!("stream 8 device 0\ncopy d2h {}..{} 64 pageable\n", us(begin + 10), us(begin + 25));
                step += &format!("api cudaStreamSynchronize {}..{}\n", us(begin + 40), us(begin + 60));
                step += &format!("sample {} gil active main>item:9\n", us(begin + 80));
            }
            step += &format!("api cuModuleLoadData {}..{}\n", us(900), us(990));
            step += &format!("sample {} main>get@/usr/lib/python3.12/queue.py:171\n", us(1_050));
            step += &format!("api cudaLaunchKernel {}..{}\n", us(1_100), us(1_105));
            step + &format!("stream 7 device 1\nkernel other {}..{}\n", us(1_110), us(1_300))
        });
        text += "track worker\n";
        steps(&mut text, &|_, at| {
            let us = |after: u64| format!("{}us", at + after);
            let launch = format!("api cudaLaunchKernel {}..{}\nstream 9 device 0\n", us(1_200), us(1_210));
            launch + &format!("kernel late {}..{}\n", us(1_215), us(1_320))
        });
        text
    }

    #[track_caller]
    fn same_in_all_parts(case: &StepAnalysis) {
        let of =
            |parts| measure_in(IdleInputs::new(case, case.chosen()), parts).into_iter().map(all_of).collect::<Vec<_>>();
        let whole = of(Some(1));
        for parts in [Some(2), Some(7), Some(16), Some(1_000_000), None] {
            assert!(of(parts) == whole, "{parts:?} parts");
        }
    }

    #[test]
    fn however_many_parts_there_are_they_say_the_same() {
        let timeline = Timeline::from_text(&recording("step r START..END\n")).unwrap();
        let case = StepAnalysis::new(&timeline, None);
        // What could come out otherwise is there.
        let [one, other] = &*measure_in(IdleInputs::new(&case, case.chosen()), Some(1)) else { panic!("two devices") };
        assert!(one.sums.waits.len() > 1 && one.sums.by.len() > 10 && one.sums.queued_gaps.len() > 1, "{one:?}");
        assert!(one.sums.calls.iter().any(|calls| calls.len() > 10) && !one.host.is_empty(), "{one:?}");
        assert!(other.sums.stretches.iter().any(|all| all.len() > 10) && !other.median.is_empty(), "{other:?}");
        assert!(one.groups.iter().all(|group| group.len() > 1), "{one:?}");
        same_in_all_parts(&case);
    }

    #[test]
    fn also_without_steps_and_where_a_cut_is_inside_a_window() {
        let mut text = String::from("track main\n stream 7\n");
        for place in 0..300u64 {
            let at = place * 40 + place * place % 17;
            text +=
                &format!("api cudaLaunchKernel {at}us..{}us\n kernel k{place} {}us..{}us\n", at + 3, at + 5, at + 20);
        }
        let timeline = Timeline::from_text(&text).unwrap();
        let case = StepAnalysis::new(&timeline, None);
        assert_eq!(case.steps.source, StepSource::Whole);
        same_in_all_parts(&case);
    }
}
