//! Puts the two groups side by side: the means of a step, item by item, and which of the differences to say.

use super::{Count, Counted, Difference, Side, SlowSteps, device, host};
use crate::StepAnalysis;
use crate::host::blame;
use crate::host::breakdown::{Key, PartKind};
use crate::host::step_samples::Doing;
use crate::idle::{Cause, Who, by_line};
use crate::place::Place;
use crate::steps::groups::{Groups, SLOW, USUAL};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use timeline::NameIndex;

/// Rows of the report.
const MOST: usize = 24;
/// A difference of less of the slow steps' additional time is noise.
const LEAST: f64 = 0.01;

pub fn fill(case: &StepAnalysis, groups: &Groups, slow: &mut SlowSteps) {
    let mut all = threads(case, groups);
    let device = case.idle().iter().max_by_key(|device| device.busy_ns);
    if let Some(device) = device {
        let accounts = [USUAL, SLOW].map(|group| device::account(case, device, groups, group));
        if accounts.iter().all(|one| one.steps > 0) {
            all.extend(devices(case, &accounts));
            slow.counts = counts(&accounts);
        }
    }
    let more = slow.slow_ns.saturating_sub(slow.usual_ns) as f64;
    all.retain(|one| one.more_ns().unsigned_abs() as f64 >= LEAST * more && one.more_ns() != 0);
    all.sort_by_key(|one| std::cmp::Reverse(one.more_ns().unsigned_abs()));
    all.truncate(MOST);
    slow.differences = all;
}

/// What may explain them, most first: what a thread did, and what the device did for longer. Waits for the device are
/// explained by what it did; idle time of the device only where calls tell the reason, for the thread tells the others if it was
/// seen.
pub fn telling(slow: &SlowSteps) -> impl Iterator<Item = &Difference> {
    let unseen = |one: &Difference| one.side == Side::Thread(PartKind::Unknown);
    let unseen = slow.differences.iter().any(|one| unseen(one) && 2 * one.slow_ns > slow.slow_ns);
    let says = move |one: &&Difference| match one.side {
        Side::Thread(kind) => !matches!(kind, PartKind::Gpu | PartKind::Unknown),
        Side::Kernel | Side::Copy => true,
        Side::Idle(Cause::Launch | Cause::Copy | Cause::Allocator | Cause::Compile | Cause::Communication) => true,
        Side::Idle(cause) => unseen && cause != Cause::Unknown,
    };
    slow.differences.iter().filter(|one| one.more_ns() > 0).filter(says)
}

fn threads(case: &StepAnalysis, groups: &Groups) -> Vec<Difference> {
    let windows = [USUAL, SLOW].map(|group| case.windows.only(|window| groups.of(window.step) == Some(group)));
    let [usual, slow] = host::accounts(case, &windows);
    // One row a function and kind; its line is the one that differs most.
    let mean = |times: &HashMap<Key, u64>, key: &Key, group: usize| {
        times.get(key).copied().unwrap_or(0) / windows[group].all().len().max(1) as u64
    };
    // In order, so that of equal ones the same are said each time.
    let mut rows: BTreeMap<(PartKind, NameIndex), (u64, u64, u32, i64)> = BTreeMap::new();
    for key in usual.keys().chain(slow.keys()).collect::<BTreeSet<_>>() {
        let (slow, usual) = (mean(&slow, key, SLOW), mean(&usual, key, USUAL));
        let row = rows.entry((key.kind, key.name)).or_insert((0, 0, 0, i64::MIN));
        (row.0, row.1) = (row.0 + slow, row.1 + usual);
        let more = slow as i64 - usual as i64;
        if more > row.3 {
            (row.2, row.3) = (key.line, more);
        }
    }
    let row = |((kind, name), (slow_ns, usual_ns, line, _))| {
        let place = match kind {
            PartKind::Gc => collector(case, groups),
            _ => place(case, name, line),
        };
        Difference { side: Side::Thread(kind), place, slow_ns, usual_ns }
    };
    rows.into_iter().map(row).collect()
}

fn place(case: &StepAnalysis, name: NameIndex, line: u32) -> Place {
    if name.0 == u32::MAX {
        return Place::default();
    }
    let known = case.timeline.names.get(name);
    Place {
        function: Some(known.text.to_string()),
        file: Some(known.file.to_string()).filter(|file| !file.is_empty()),
        line: Some(line).filter(|line| *line > 0),
        ..Place::default()
    }
}

/// Where the slow steps were when the collector began.
fn collector(case: &StepAnalysis, groups: &Groups) -> Place {
    let slow = |window: u32| groups.of(case.windows.all()[window as usize].step) == Some(SLOW);
    let seen = blame::functions(case, |one| one.doing == Doing::Gc && slow(one.window));
    seen.first().and_then(|one| one.lines.first()).map(|(frame, _)| case.place(*frame)).unwrap_or_default()
}

fn devices(case: &StepAnalysis, accounts: &[device::Account; 2]) -> Vec<Difference> {
    let mean = |ns: u64, group: usize| ns / accounts[group].steps.max(1) as u64;
    let mut all = Vec::new();
    let names: BTreeSet<u32> = accounts.iter().flat_map(|one| one.kernels.keys().copied()).collect();
    for name in names {
        let time = |group: usize| mean(accounts[group].kernels.get(&name).map_or(0, |one| one.0), group);
        let kernel = Some(case.timeline.names.text(NameIndex(name)).to_owned());
        let place = Place { kernel, ..Place::default() };
        let (slow_ns, usual_ns) = (time(SLOW), time(USUAL));
        all.push(Difference { side: Side::Kernel, place, slow_ns, usual_ns });
    }
    let [usual_ns, slow_ns] = [USUAL, SLOW].map(|group| mean(accounts[group].exposed_ns, group));
    all.push(Difference { side: Side::Copy, place: Place::default(), slow_ns, usual_ns });
    for cause in Cause::ALL {
        let of = |group: usize| accounts[group].idle.iter().filter(move |((one, _), _)| *one == cause);
        let sum = |group: usize| mean(of(group).map(|(_, ns)| *ns).sum(), group);
        let mut tops: Vec<(Who, u64)> = of(SLOW)
            .map(|(key, ns)| {
                let before = accounts[USUAL].idle.get(key).copied().unwrap_or(0);
                (key.1, mean(*ns, SLOW).saturating_sub(mean(before, USUAL)))
            })
            .collect();
        tops.sort_by_key(|(who, ns)| (u64::MAX - ns, *who));
        let place = by_line(case.timeline, &tops).into_iter().next().map(|(place, _)| place).unwrap_or_default();
        all.push(Difference { side: Side::Idle(cause), place, slow_ns: sum(SLOW), usual_ns: sum(USUAL) });
    }
    all
}

fn counts(accounts: &[device::Account; 2]) -> Vec<Count> {
    let mut all = Vec::new();
    for (what, of) in [
        (Counted::Kernels, (|one: &device::Account| one.launched) as fn(&device::Account) -> u64),
        (Counted::Copies, |one| one.copies),
        (Counted::CopiedBytes, |one| one.copied_bytes),
        (Counted::Allocations, |one| one.allocations),
    ] {
        let [usual, slow] =
            [USUAL, SLOW].map(|group| of(&accounts[group]) as f64 / accounts[group].steps.max(1) as f64);
        // What reports show has one digit after the point.
        if (slow - usual).abs() >= 0.05 {
            all.push(Count { what, slow, usual });
        }
    }
    all
}
