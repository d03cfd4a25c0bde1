//! Why memory is not attributed, its segments are not known, or its allocator is not simulated.

use analysis::memory::attribution::NotAttributed;
use analysis::memory::segments::SegmentsUnknown;
use analysis::phrase;
use replay::allocator::NotSimulated;

pub fn not_attributed(why: &NotAttributed) -> String {
    match why {
        NotAttributed::NotSampled => "what the device has in use was not sampled (no NVML here, or --device-hz 0)",
        NotAttributed::Mig => "the GPU is split into MIG instances: what the driver counts is of all of them",
        NotAttributed::UnknownDevice => "which of the machine's devices the program used was not recorded",
        NotAttributed::UnifiedMemory => {
            "unified memory moves between host and device: how much of it lies where is not recorded"
        }
        NotAttributed::NeverAsked => "the driver was not asked after the program first took memory",
        NotAttributed::NotAskedInTime => "the program ended before the driver was asked",
        NotAttributed::NeverSettled => "memory was taken or given back at every time at which the driver was asked",
        NotAttributed::MoreThanCounted(part) => {
            return format!("recorded allocations are {} % more than the driver counts", whole(*part));
        }
        NotAttributed::AllocatorApart(part) => {
            let part = whole(*part);
            return format!(
                "PyTorch's allocator says that it has reserved {part} % of the device more, or less, than recorded calls explain"
            );
        }
    }
    .to_owned()
}

/// In percent: what is there is at least one.
fn whole(part: f64) -> f64 {
    (part * 100.0).round().max(1.0)
}

pub fn segments_unknown(why: SegmentsUnknown) -> &'static str {
    match why {
        SegmentsUnknown::BeganLate => "recording began after the allocator's first block",
        SegmentsUnknown::BlocksOutside => "what blocks lie in is not what the driver was seen to hand out",
    }
}

pub fn not_simulated(why: NotSimulated) -> String {
    match why {
        NotSimulated::OtherAllocator => "only PyTorch's allocator of CUDA memory is simulated",
        NotSimulated::NoEvents => "the recording has no allocator events (torch.cuda.memory._record_memory_history)",
        NotSimulated::EventsMissing => "events are missing: the file was cut",
        NotSimulated::NoReserved => "what the allocator had reserved was not recorded",
        NotSimulated::Missed(part) => {
            return format!("the replay of the allocator misses the recorded peak by {}", phrase::percent(part));
        }
    }
    .to_owned()
}
