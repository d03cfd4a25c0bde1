//! The keys of manifest.json, object by object. The recorder writes exactly these, which a test there proves; whoever reads a
//! manifest asks for them by these names. What they mean is in docs/trace-format.md.

macro_rules! keys {
    ($($(#[$about:meta])* $object:ident { $($name:ident = $key:literal,)* })*) => {
        $(
            $(#[$about])*
            pub mod $object {
                $(pub const $name: &str = $key;)*
                /// All of this object.
                pub const ALL: &[&str] = &[$($key,)*];
            }
        )*
    };
}

keys! {
    /// The whole.
    root {
        FORMAT = "format",
        FORMAT_VERSION = "format_version",
        STATE = "state",
        INFERSCOPE = "inferscope",
        ID = "id",
        CREATED_UNIX_NS = "created_unix_ns",
        STARTED_NS = "started_ns",
        ENDED_NS = "ended_ns",
        RECORDER_PID = "recorder_pid",
        SEGMENTS = "segments",
        COMMAND = "command",
        ARGUMENTS = "arguments",
        EXIT = "exit",
        ATTACHED = "attached",
        CLOCK = "clock",
        HOST = "host",
        SETTINGS = "settings",
        DEVICES = "devices",
        PROCESSES = "processes",
        NOTES = "notes",
    }
    /// How the command ended: one of the two.
    exit {
        CODE = "code",
        SIGNAL = "signal",
    }
    clock {
        SOURCE = "source",
        UNIX_MINUS_MONO_NS = "unix_minus_mono_ns",
        RESIDUAL_NS = "residual_ns",
        BOOT_ID = "boot_id",
    }
    host {
        HOSTNAME = "hostname",
        KERNEL = "kernel",
        CPU_MODEL = "cpu_model",
        CPU_COUNT = "cpu_count",
        NUMA_NODES = "numa_nodes",
        RAM_BYTES = "ram_bytes",
    }
    /// The settings of the recording by the fields of their rows; whether C functions are among the calls is a key of its own.
    /// Here are those that somebody reads.
    settings {
        RATE_HZ = "rate_hz",
        CALLS = "calls",
        C_CALLS = "c_calls",
        MIN_US = "min_us",
        LAYERS = "layers",
        MEMORY_STACKS_KB = "memory_stacks_kb",
    }
    /// A device of the machine.
    device {
        INDEX = "index",
        KIND = "kind",
        NAME = "name",
        UUID = "uuid",
        PCI_BUS_ID = "pci_bus_id",
    }
    process {
        PID = "pid",
        PARENT_PID = "parent_pid",
        PROGRAM = "program",
        PYTHON = "python",
        STARTED_NS = "started_ns",
        ENDED_NS = "ended_ns",
        COLLECTORS = "collectors",
        START_TICKS = "start_ticks",
        DEVICES = "devices",
        RANK = "rank",
        LOCAL_RANK = "local_rank",
        WORLD_SIZE = "world_size",
    }
    /// A device as a process numbers it.
    process_device {
        ORDINAL = "ordinal",
        NAME = "name",
        UUID = "uuid",
        MULTIPROCESSORS = "multiprocessors",
        COMPUTE_CAPABILITY = "compute_capability",
        MEMORY_BYTES = "memory_bytes",
        BANDWIDTH = "bandwidth",
    }
    /// What traces of the first version said of a device besides.
    first_version_device {
        CUPTI = "cupti",
        DRIVER = "driver",
    }
    collector {
        NAME = "name",
        STATE = "state",
        REASON = "reason",
        REASON_CODE = "reason_code",
        OWN_NS = "own_ns",
        RESIDUAL_NS = "residual_ns",
        WINDOWS = "windows",
        STACK_READS = "stack_reads",
    }
    windows {
        RECORDED_PPM = "recorded_ppm",
        COST_PPM = "cost_ppm",
    }
    stack_reads {
        READ = "read",
        REUSED = "reused",
    }
    note {
        CODE = "code",
        PROCESS = "process",
        PROCESSES = "processes",
        ARGS = "args",
        TEXT = "text",
    }
}

/// The words for the state of a trace.
pub mod state {
    pub const RECORDING: &str = "recording";
    pub const COMPLETE: &str = "complete";
    pub const RECOVERED: &str = "recovered";
}

#[cfg(test)]
mod tests {
    use crate::settings::{Group, Recording};

    #[test]
    fn settings_are_called_as_their_rows() {
        let known = |key: &&str| Recording::ROWS.iter().any(|row| row.field == *key);
        let others: Vec<&&str> = super::settings::ALL.iter().filter(|key| !known(key)).collect();
        assert_eq!(others, [&super::settings::C_CALLS]);
    }
}
