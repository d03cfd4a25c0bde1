//! Segments and their blocks under the rules of PyTorch's caching allocator: the smallest free block that fits is taken and split, free neighbours are
//! joined, and what does not fit asks the driver for a segment, or for more of an expandable one.

use super::settings::{LARGE_SEGMENT, SMALL, SMALL_SEGMENT, Settings, segment_for};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Blocks are only reused within a pool: of everybody or of a graph, of one stream, for small or for large blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Pool {
    pub own: u64,
    pub stream: u64,
    pub large: bool,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u64,
    segment: u64,
    used: bool,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    bytes: u64,
    pool: Pool,
    expandable: bool,
}

/// New segments lie here, far from recorded ones and from each other.
const NEW: u64 = 1 << 62;
const APART: u64 = 1 << 46;

#[derive(Default)]
pub struct Heap {
    settings: Settings,
    /// By address.
    blocks: BTreeMap<u64, Block>,
    segments: BTreeMap<u64, Segment>,
    /// By size, then address.
    free: HashMap<Pool, BTreeSet<(u64, u64)>>,
    /// The one expandable segment of a pool.
    expandable: HashMap<Pool, u64>,
    made: u64,
    /// Where the driver placed the segment that was recorded last: a new one of the same size lies there, too.
    pub offered: Option<(u64, u64)>,
    pub reserved: u64,
    pub peak: u64,
    pub segment_allocs: u64,
}

impl Heap {
    pub fn new(settings: Settings) -> Heap {
        Heap { settings, ..Heap::default() }
    }

    /// A segment as it was recorded, with the blocks in use in it, by address.
    pub fn place(&mut self, address: u64, bytes: u64, pool: Pool, used: &[(u64, u64)]) {
        // Recorded segments do not overlap; those of a damaged file may.
        if bytes == 0 || !self.is_vacant(address, bytes) {
            return;
        }
        let end = address + bytes;
        self.segments.insert(address, Segment { bytes, pool, expandable: false });
        self.reserve(bytes);
        let mut next = address;
        for (at, (block, size)) in used.iter().enumerate() {
            if *block < next || *block >= end {
                continue;
            }
            self.add_free(next, *block - next, address, pool);
            let limit = used.get(at + 1).map_or(end, |(after, _)| (*after).min(end));
            let mut size = (*size).min(limit - *block);
            // What is too little to be split off belongs to the block.
            if !self.settings.may_split(pool.large, size, limit - *block - size) {
                size = limit - *block;
            }
            self.blocks.insert(*block, Block { bytes: size, segment: address, used: true });
            next = *block + size;
        }
        self.add_free(next, end - next, address, pool);
    }

    /// Hands out a block and says where it is.
    pub fn alloc(&mut self, bytes: u64, own: u64, stream: u64) -> Option<u64> {
        // No machine has that much; and two such would not fit beside each other here.
        let size = Some(self.settings.round(bytes)).filter(|size| *size < APART)?;
        let pool = Pool { own, stream, large: size > SMALL };
        let address = match self.best_fit(pool, size) {
            Some(address) => address,
            None => {
                if self.settings.empty_before_growing {
                    self.empty();
                }
                self.grow(pool, size)?
            }
        };
        self.take(address, size, pool);
        Some(address)
    }

    pub fn free(&mut self, address: u64) {
        let Some(block) = self.blocks.get(&address).copied().filter(|block| block.used) else { return };
        let Some(segment) = self.segments.get(&block.segment).copied() else { return };
        let (mut start, mut bytes) = (address, block.bytes);
        let joins = |other: &Block| !other.used && other.segment == block.segment;
        if let Some((after, next)) =
            self.blocks.range(address.saturating_add(1)..).next().map(|(after, next)| (*after, *next))
            && joins(&next)
        {
            self.remove(after, next.bytes, segment.pool);
            bytes += next.bytes;
        }
        if let Some((before, last)) = self.blocks.range(..address).next_back().map(|(before, last)| (*before, *last))
            && joins(&last)
        {
            self.remove(before, last.bytes, segment.pool);
            start = before;
            bytes += last.bytes;
        }
        self.blocks.remove(&address);
        self.add_free(start, bytes, block.segment, segment.pool);
    }

    /// Gives segments without a block in use back to the driver.
    pub fn empty(&mut self) {
        let whole = |(address, segment): (&u64, &Segment)| {
            let block = self.blocks.get(address)?;
            (!block.used && block.bytes == segment.bytes).then_some(*address)
        };
        let gone: Vec<u64> = self.segments.iter().filter_map(whole).collect();
        gone.into_iter().for_each(|address| self.release(address));
    }

    /// The driver took this segment back.
    pub fn release(&mut self, address: u64) {
        let free = self.blocks.get(&address).is_some_and(|block| !block.used);
        let Some(segment) = self.segments.get(&address).copied().filter(|_| free) else { return };
        if self.blocks.get(&address).is_some_and(|block| block.bytes == segment.bytes) {
            self.remove(address, segment.bytes, segment.pool);
            self.segments.remove(&address);
            self.expandable.retain(|_, place| *place != address);
            self.reserved = self.reserved.saturating_sub(segment.bytes);
        }
    }

    /// The largest free block, and all free memory.
    pub fn holes(&self) -> (u64, u64) {
        let free = || self.blocks.values().filter(|block| !block.used).map(|block| block.bytes);
        (free().max().unwrap_or(0), free().fold(0, u64::saturating_add))
    }

    fn best_fit(&self, pool: Pool, size: u64) -> Option<u64> {
        let free = self.free.get(&pool)?;
        // The end of an expandable segment can become larger: it is taken last.
        let end = self.tail(pool).map(|(address, _)| address);
        let (bytes, address) = free.range((size, 0)..).find(|(_, address)| Some(*address) != end)?;
        self.settings.may_serve(size, *bytes).then_some(*address)
    }

    /// The free block at the end of the pool's expandable segment.
    fn tail(&self, pool: Pool) -> Option<(u64, u64)> {
        let place = *self.expandable.get(&pool)?;
        let end = place + self.segments.get(&place)?.bytes;
        let (address, block) = self.blocks.range(place..end).next_back()?;
        (!block.used).then_some((*address, block.bytes))
    }

    fn grow(&mut self, pool: Pool, size: u64) -> Option<u64> {
        if !self.settings.expandable || pool.own != 0 {
            let bytes = segment_for(size);
            let address = self.fresh(bytes, pool, false)?;
            return Some(address);
        }
        let page = if pool.large { LARGE_SEGMENT } else { SMALL_SEGMENT };
        let tail = self.tail(pool);
        if let Some((address, bytes)) = tail
            && bytes >= size
        {
            return Some(address);
        }
        let missing = (size - tail.map_or(0, |(_, bytes)| bytes)).checked_next_multiple_of(page)?;
        let Some(place) = self.expandable.get(&pool).copied() else {
            let address = self.fresh(missing, pool, true)?;
            self.expandable.insert(pool, address);
            return Some(address);
        };
        let end = place + self.segments.get(&place)?.bytes;
        self.segments.get_mut(&place)?.bytes += missing;
        self.reserve(missing);
        self.segment_allocs += 1;
        let (address, bytes) = tail.unwrap_or((end, 0));
        if bytes > 0 {
            self.remove(address, bytes, pool);
        }
        self.add_free(address, bytes + missing, place, pool);
        Some(address)
    }

    fn fresh(&mut self, bytes: u64, pool: Pool, expandable: bool) -> Option<u64> {
        let offered = self.offered.take().filter(|(address, size)| *size == bytes && self.is_vacant(*address, bytes));
        let address = match offered {
            Some((address, _)) => address,
            None => {
                let address = NEW.checked_add(self.made.checked_mul(APART)?)?;
                // A segment larger than the space between two takes several.
                self.made += 1 + bytes / APART;
                address
            }
        };
        self.segments.insert(address, Segment { bytes, pool, expandable });
        self.reserve(bytes);
        self.segment_allocs += 1;
        self.add_free(address, bytes, address, pool);
        Some(address)
    }

    fn is_vacant(&self, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes).filter(|end| *end < NEW) else { return false };
        let before = self.blocks.range(..end).next_back();
        before.is_none_or(|(place, block)| place.saturating_add(block.bytes) <= address)
    }

    fn take(&mut self, address: u64, size: u64, pool: Pool) {
        let Some(block) = self.blocks.get(&address).copied() else { return };
        self.remove(address, block.bytes, pool);
        let expandable = self.segments.get(&block.segment).is_some_and(|segment| segment.expandable);
        let left = block.bytes.saturating_sub(size);
        let splits = if expandable {
            left >= super::settings::SMALLEST
        } else {
            self.settings.may_split(pool.large, size, left)
        };
        let bytes = if splits { size } else { block.bytes };
        self.blocks.insert(address, Block { bytes, used: true, ..block });
        self.add_free(address + bytes, block.bytes - bytes, block.segment, pool);
    }

    fn add_free(&mut self, address: u64, bytes: u64, segment: u64, pool: Pool) {
        if bytes > 0 {
            self.blocks.insert(address, Block { bytes, segment, used: false });
            self.free.entry(pool).or_default().insert((bytes, address));
        }
    }

    fn remove(&mut self, address: u64, bytes: u64, pool: Pool) {
        self.blocks.remove(&address);
        if let Some(free) = self.free.get_mut(&pool) {
            free.remove(&(bytes, address));
        }
    }

    fn reserve(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_add(bytes);
        self.peak = self.peak.max(self.reserved);
    }
}
