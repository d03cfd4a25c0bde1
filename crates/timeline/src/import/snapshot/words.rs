//! The keys and values that snapshots use. Each is interned first, so that its number as a text is known beforehand.

use super::value::{Kind, Value};

macro_rules! words {
    ($($word:ident $text:literal)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Word { $($word),* }

        pub const WORDS: &[&str] = &[$($text),*];
    };
}

words! {
    // Of a snapshot.
    Segments "segments"
    DeviceTraces "device_traces"
    HostSegments "host_segments"
    HostTraces "host_traces"
    AllocatorSettings "allocator_settings"
    ExternalAnnotations "external_annotations"
    // Of frames, events, blocks, segments and annotations.
    Name "name"
    Filename "filename"
    Line "line"
    Frames "frames"
    ActionKey "action"
    Addr "addr"
    Address "address"
    Size "size"
    Stream "stream"
    TimeUs "time_us"
    DeviceFree "device_free"
    State "state"
    RequestedSize "requested_size"
    RealSize "real_size"
    History "history"
    TotalSize "total_size"
    Blocks "blocks"
    SegmentType "segment_type"
    SegmentPoolId "segment_pool_id"
    IsExpandable "is_expandable"
    Device "device"
    Stage "stage"
    // Values: what happened, and states of blocks.
    Alloc "alloc"
    FreeRequested "free_requested"
    FreeCompleted "free_completed"
    SegmentAlloc "segment_alloc"
    SegmentFree "segment_free"
    SegmentMap "segment_map"
    SegmentUnmap "segment_unmap"
    Oom "oom"
    Snapshot "snapshot"
    Annotate "annotate"
    ActiveAllocated "active_allocated"
    ActiveAwaitingFree "active_awaiting_free"
    // As torch before 2.1 called it.
    ActivePendingFree "active_pending_free"
    Large "large"
    Start "START"
    End "END"
}

impl Word {
    pub fn is(self, value: Value) -> bool {
        value == Value::new(Kind::Text, self as u32)
    }
}

/// The entries of a dictionary whose keys are [`Word`]s; others are left out.
pub struct Fields([Value; WORDS.len()]);

impl Fields {
    /// From keys and values by turns.
    pub fn of(pairs: &[Value]) -> Fields {
        let mut fields = [Value::MISSING; WORDS.len()];
        for pair in pairs.chunks_exact(2) {
            if pair[0].is(Kind::Text) && pair[0].place() < WORDS.len() {
                fields[pair[0].place()] = pair[1];
            }
        }
        Fields(fields)
    }

    pub fn get(&self, word: Word) -> Value {
        self.0[word as usize]
    }

    pub fn has(&self, word: Word) -> bool {
        self.get(word) != Value::MISSING
    }
}
