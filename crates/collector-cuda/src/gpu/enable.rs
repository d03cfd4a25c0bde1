//! What is asked of CUPTI: which kinds of records, and which calls call back. What it refuses is said once in a recording, by
//! name. Reading the records and the calls is left to others.

use super::api::{SUCCESS, UnifiedMemory};
use super::library::check;
use super::{Collecting, buffers, calls, launches, layout, say};
use crate::recorded;
use std::sync::atomic::Ordering;
use trace::codes::{Note, NoteCode, Reason, ReasonCode};
use trace::status::{Collector, State};
use workload::settings::{Budget, GpuDetail};

/// What devices did and do.
const KINDS: &[(u32, &str)] = &[
    (layout::Device::KIND, "what the devices are"),
    (layout::Kernel::KIND, "kernels"),
    (layout::Memcpy::KIND, "copies"),
    (layout::MemcpyPeer::KIND, "copies between devices"),
    (layout::Memset::KIND, "fills"),
    (layout::Overhead::KIND, "CUPTI's own overhead"),
];

/// With every detail: pages moved by unified memory. Waits (38) and allocations (49) are not asked of CUPTI: that slows every
/// launch, and the callbacks of the few calls say the same (`parameters`).
const MORE_KINDS: &[(u32, &str)] = &[(layout::Migration::KIND, "pages moved by unified memory")];

/// The largest machines have 16.
const MOST_DEVICES: u32 = 16;
/// The kind without which nothing is worth having.
const NEEDED: u32 = layout::Kernel::KIND;
/// What most callbacks are for, in words.
const LAUNCHES: &str = "the launches";
/// CUPTI is told that buffers come zeroed, so that it does not do that on the program's thread.
const ZEROED_BUFFERS: u32 = 5;

impl Collecting {
    /// Switches everything on that the settings ask for.
    pub fn enable(&self) -> Result<(), String> {
        let cupti = &self.cupti;
        if let Some(register) = cupti.register_callbacks {
            // SAFETY: both functions only hand buffers over.
            let code = unsafe { register(buffers::requested, buffers::completed) };
            check(cupti, "CUPTI refuses our buffers", code)?;
        }
        if let Some(set) = cupti.set_attribute {
            let (mut size, mut value) = (1, 1u8);
            // SAFETY: one byte, as the attribute wants. A version that does not know it zeroes the buffers itself.
            unsafe { set(ZEROED_BUFFERS, &mut size, (&raw mut value).cast()) };
        }
        if self.session.settings.recording.gpu_detail == GpuDetail::All {
            self.unified_memory();
        }
        let windows = matches!(self.session.settings.recording.overhead_budget, Budget::Windows(_));
        self.record_calls(!windows);
        let refused = |code| format!("CUPTI refuses to record kernels: {}", cupti.words(code));
        self.kinds(true).map_err(refused)?;
        let status = self.session.status(Collector::Launches);
        match (self.session.settings.recording.gpu_detail, windows) {
            (GpuDetail::Off | GpuDetail::Kernel, _) => status.set(State::Off, "not asked for (--gpu-detail kernel)"),
            (_, true) => status.set(State::On, "in windows, by the overhead budget"),
            (GpuDetail::Launch, _) => status.set(State::On, ""),
            (GpuDetail::All, _) => status.set(State::On, "every call"),
        }
        if windows {
            // Known to work before the first window.
            self.kinds(false).map_err(refused)?;
            self.calls_refused(self.callbacks(calls::PROGRESS_CALLS, true, LAUNCHES), self.records_calls());
        } else {
            self.calls_refused(self.calls(true), self.records_calls());
        }
        self.calls_refused(self.callbacks(calls::MEMORY, true, "the allocations"), true);
        recorded::begin(!windows);
        Ok(())
    }

    /// Which movements of pages count: to the device, to the host. Devices that are not there are refused.
    fn unified_memory(&self) {
        let Some(configure) = self.cupti.configure_unified_memory else { return };
        for device in 0..MOST_DEVICES {
            let movement = |kind| UnifiedMemory { scope: 1, kind, device, enable: 1 };
            let mut both = [movement(1), movement(2)];
            // SAFETY: two configurations, which CUPTI copies.
            unsafe { configure(both.as_mut_ptr(), 2) };
        }
    }

    fn wanted_kinds(&self) -> impl Iterator<Item = (u32, &'static str)> {
        let more = if self.session.settings.recording.gpu_detail == GpuDetail::All { MORE_KINDS } else { &[] };
        KINDS.iter().chain(more).copied()
    }

    /// The error is CUPTI's, about kernels: without them nothing is worth having. Other kinds that are refused are said.
    pub fn kinds(&self, on: bool) -> Result<(), u32> {
        let cupti = &self.cupti;
        let Some(function) = (if on { cupti.activity_enable } else { cupti.activity_disable }) else { return Ok(()) };
        let mut refused: Vec<(u32, &str, u32)> = Vec::new();
        for (kind, name) in self.wanted_kinds() {
            // SAFETY: CUPTI's own function; kinds that it does not know it refuses.
            let code = unsafe { function(kind) };
            if on && kind == NEEDED {
                if code != SUCCESS {
                    return Err(code);
                }
            } else if on && code != SUCCESS {
                refused.push((kind, name, code));
            }
        }
        // Of those that were not said yet, one sentence for each reason.
        refused.retain(|(kind, ..)| self.refused.fetch_or(1 << kind, Ordering::Relaxed) >> kind & 1 == 0);
        while let Some((.., code)) = refused.first().copied() {
            let names: Vec<&str> = refused.iter().filter(|one| one.2 == code).map(|one| one.1).collect();
            let words = cupti.words(code);
            say(self.session, &Note::new(NoteCode::GpuKindRefused).with(names.join(", ")).with(words));
            refused.retain(|one| one.2 != code);
        }
        Ok(())
    }

    /// For the status page: what CUPTI refuses to record, and which CUPTI it is.
    pub fn words(&self) -> String {
        let mask = self.refused.load(Ordering::Relaxed);
        let names: Vec<&str> =
            self.wanted_kinds().filter(|(kind, _)| mask >> kind & 1 == 1).map(|(_, name)| name).collect();
        let refused = if names.is_empty() { String::new() } else { format!("not recorded: {}; ", names.join(", ")) };
        format!("{refused}{}", self.described)
    }

    /// The error says which calls CUPTI refuses, and why.
    fn calls(&self, on: bool) -> Result<(), String> {
        match self.session.settings.recording.gpu_detail {
            GpuDetail::Off | GpuDetail::Kernel => Ok(()),
            GpuDetail::Launch => self.callbacks(calls::CHOSEN, on, LAUNCHES),
            GpuDetail::All => {
                let enable = self.cupti.enable_domain.ok_or("this libcupti has no cuptiEnableDomain")?;
                for (domain, name) in [(calls::RUNTIME, "runtime"), (calls::DRIVER, "driver")] {
                    if !on {
                        self.silence_domain(domain);
                        continue;
                    }
                    // SAFETY: CUPTI's own function.
                    let code = unsafe { enable(1, self.subscriber.load(Ordering::Relaxed), domain) };
                    check(&self.cupti, &format!("CUPTI refuses callbacks for the calls of the {name}"), code)?;
                }
                Ok(())
            }
        }
    }

    /// Every call but those of memory, one by one: not even for a moment may those be off.
    fn silence_domain(&self, domain: u32) {
        let of_memory = calls::MEMORY.iter().filter(|(of, _)| *of == domain).flat_map(|(_, ids)| *ids);
        let of_memory: Vec<u32> = of_memory.copied().collect();
        let others: Vec<u32> = (1..calls::MOST_IDS as u32).filter(|id| !of_memory.contains(id)).collect();
        let _ = self.callbacks(&[(domain, &others)], false, LAUNCHES);
    }

    /// Puts a refusal of what is `wanted` onto the status page, and into the report once.
    fn calls_refused(&self, result: Result<(), String>, wanted: bool) {
        let status = self.session.status(Collector::Launches);
        if let Err(why) = result
            && wanted
            && status.state() != State::Failed
        {
            status.set(State::Failed, &why);
            say(self.session, &Note::new(NoteCode::CudaCallsNotRecorded).with(why));
        }
    }

    fn records_calls(&self) -> bool {
        matches!(self.session.settings.recording.gpu_detail, GpuDetail::Launch | GpuDetail::All)
    }

    /// From now on, or no longer. Calls call back for the progress calls too, and for the question whether they do.
    fn record_calls(&self, on: bool) {
        launches::record(on && self.records_calls());
    }

    /// An error when CUPTI refuses all of them, which are `of` something; single ones are of another version.
    fn callbacks(&self, chosen: &[(u32, &[u32])], on: bool, of: &str) -> Result<(), String> {
        let enable = self.cupti.enable_callback.ok_or("this libcupti has no cuptiEnableCallback")?;
        let subscriber = self.subscriber.load(Ordering::Relaxed);
        let (mut taken, mut refusal) = (0, SUCCESS);
        for (domain, ids) in chosen {
            for id in *ids {
                // SAFETY: CUPTI's own function; ids that it does not know it refuses.
                match unsafe { enable(u32::from(on), subscriber, *domain, *id) } {
                    SUCCESS => taken += 1,
                    code => refusal = code,
                }
            }
        }
        if taken > 0 { Ok(()) } else { check(&self.cupti, &format!("CUPTI refuses callbacks for {of}"), refusal) }
    }

    /// Begins or ends a window of the overhead budget. Returns whether the GPU is recorded from now on.
    pub fn switch(&self, recording: bool) -> bool {
        if !recording {
            recorded::turn(false);
        }
        let kernels = self.kinds(recording);
        let on = recording && kernels.is_ok();
        self.record_calls(on);
        if on {
            self.calls_refused(self.calls(true), self.records_calls());
            recorded::turn(true);
            return true;
        }
        if let Err(code) = kernels {
            let _ = self.kinds(false);
            let status = self.session.status(Collector::Gpu);
            if status.state() != State::Failed {
                let reason = Reason::new(ReasonCode::KernelsRefusedAfterPause).with(self.cupti.words(code));
                status.set(State::Failed, &reason.message());
                say(self.session, &reason.note(NoteCode::GpuRecordingStopped));
            }
        }
        let _ = self.calls(false);
        // The progress calls go on: by them the cost is told.
        let _ = self.callbacks(calls::PROGRESS_CALLS, true, LAUNCHES);
        false
    }

    /// Whether CUPTI knows us: asked by switching a callback on, of a call that every version has.
    pub fn is_subscribed(&self) -> bool {
        !self.subscriber.load(Ordering::Relaxed).is_null()
            && self.callbacks(&[(calls::RUNTIME, calls::RUNTIME_DEVICE_SYNCHRONIZE)], true, LAUNCHES).is_ok()
    }

    /// Whether it knew us and does no longer.
    pub fn was_unsubscribed(&self) -> bool {
        self.calls_back.load(Ordering::Relaxed) && !self.is_subscribed()
    }
}
