//! The parts while they are summed up, one time after the other, and whether they fit what the driver counts.

use super::series::{Live, Settled, User};
use super::{Attribution, Device, Level, MOST_OFF, NotAttributed, Part, PartKind};
use timeline::ProcessIndex;

/// A process that ends gives its memory back before it is gone: what its calls say no longer holds.
const ENDING_NS: u64 = 2_000_000_000;
/// The parts while they are summed up, one time after the other.
pub(super) struct Sum<'a> {
    level: Level,
    users: Vec<&'a User<'a>>,
    times: Vec<u64>,
    used: Vec<u64>,
    parts: Vec<Part>,
    /// What the parts had too much at this time, and whether the program was ending.
    over: i128,
    overs: Vec<i128>,
    unsettled: usize,
}

impl<'a> Sum<'a> {
    pub(super) fn new(of: &'a Device, settled: &Settled, level: Level) -> Sum<'a> {
        let (users, unsettled) = (of.users.clone(), settled.left_out);
        let times = settled.times.iter().map(|(time, _)| *time).collect();
        Sum { level, users, times, used: Vec::new(), parts: Vec::new(), over: 0, overs: Vec::new(), unsettled }
    }

    /// Less than nothing is more than there is of others.
    pub(super) fn add(&mut self, kind: PartKind, process: Option<ProcessIndex>, bytes: i128) {
        self.over += (-bytes).max(0);
        let place = self.parts.iter().position(|part| (part.kind, part.process) == (kind, process));
        let place = place.unwrap_or_else(|| {
            self.parts.push(Part { kind, process, bytes: Vec::new(), peak: 0 });
            self.parts.len() - 1
        });
        let part = &mut self.parts[place];
        part.bytes.resize(self.used.len(), 0);
        part.bytes.push(u64::try_from(bytes.max(0)).unwrap_or(u64::MAX));
    }

    pub(super) fn live(&mut self, user: &User, live: Live) {
        for (kind, bytes) in [
            (PartKind::Driver, live.driver),
            (PartKind::DriverPool, live.pool),
            (PartKind::Cached, live.framework.saturating_sub(live.in_use)),
            (PartKind::InUse, live.in_use),
        ] {
            self.add(kind, Some(user.process), i128::from(bytes));
        }
    }

    /// What the driver counts beyond the calls: at the start the context, later the context as it was then, and what is hidden.
    pub(super) fn left(&mut self, process: Option<ProcessIndex>, left: i128, warm: bool, kept: &mut Option<i128>) {
        let context = match *kept {
            Some(kept) if warm => left.min(kept),
            _ => left,
        };
        if !warm || kept.is_none() {
            *kept = Some(left.max(0));
        }
        self.add(PartKind::Context, process, context);
        self.add(PartKind::Hidden, process, (left - context.max(0)).max(0));
    }

    pub(super) fn next(&mut self, used: u64) {
        self.used.push(used);
        self.overs.push(std::mem::take(&mut self.over));
    }

    pub(super) fn finish(mut self) -> Result<Attribution, NotAttributed> {
        self.without_the_end();
        let Some(last) = self.times.len().checked_sub(1) else {
            return Err(NotAttributed::NotAskedInTime);
        };
        for part in &mut self.parts {
            part.bytes.resize(last + 1, 0);
            let recorded = self.users.iter().find(|user| Some(user.process) == part.process);
            let exact = recorded.map_or(0, |user| user.peak(part.kind, self.times[last]));
            part.peak = part.bytes.iter().copied().max().unwrap_or(0).max(exact);
        }
        self.parts.retain(|part| part.peak > 0);
        self.parts.sort_by_key(|part| (part.kind, part.process));
        let share = |bytes: i128, at: usize| bytes as f64 / self.used[at].max(1) as f64;
        let over = (0..=last).map(|at| share(self.overs[at], at)).fold(0.0, f64::max);
        if over > MOST_OFF {
            return Err(NotAttributed::MoreThanCounted(over));
        }
        let apart = |user: &&User, at: usize| share(i128::from(user.apart(self.times[at])), at);
        let apart = (0..=last).flat_map(|at| self.users.iter().map(move |user| apart(user, at))).fold(0.0, f64::max);
        if apart > MOST_OFF {
            return Err(NotAttributed::AllocatorApart(apart));
        }
        let Sum { level, times, used, parts, unsettled, .. } = self;
        Ok(Attribution { level, times, used, parts, off: over.max(apart), unsettled })
    }

    /// Leaves out the last times where memory is already given back by a program that ends.
    fn without_the_end(&mut self) {
        let ends = self.users.iter().map(|user| user.ended).max().unwrap_or(u64::MAX);
        while let (Some(time), Some(over), Some(used)) = (self.times.last(), self.overs.last(), self.used.last()) {
            let ending = time.saturating_add(ENDING_NS) >= ends;
            if !ending || *over as f64 <= MOST_OFF * (*used).max(1) as f64 {
                return;
            }
            self.times.pop();
            self.overs.pop();
            self.used.pop();
            self.unsettled += 1;
        }
    }
}
