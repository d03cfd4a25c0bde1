//! The rows. To add a setting, add one here and use its field; `cargo run -p inferscope-trace --example settings_pages` writes
//! what is made from it.

use super::{Accepts, Budget, Calls, Commands, GpuDetail, Group, Setting, Value, Word};
use std::path::PathBuf;

/// 64 GB: what a process may be given for its records, at most.
pub const MOST_TRACE_SIZE_MB: u64 = 64 << 10;
/// A petabyte: more than any machine has, and far from what a number holds.
const MOST_MB: u64 = 1 << 30;

/// Makes a struct with a field for each row, and what reads and writes it by the row.
macro_rules! settings {
    ($(#[$about:meta])* $group:ident { $($(#[$what:meta])* $field:ident: $type:ty = $default:expr, $row:expr;)* }) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $group { $($(#[$what])* pub $field: $type,)* }

        impl Default for $group {
            fn default() -> $group {
                $group { $($field: $default,)* }
            }
        }

        impl Group for $group {
            const ROWS: &'static [Setting] = &[$($row.named(stringify!($field)),)*];

            fn set(&mut self, setting: &Setting, words: &[String]) -> bool {
                match setting.field {
                    $(stringify!($field) => Value::read(words, &setting.accepts).map(|value| self.$field = value).is_some(),)*
                    _ => false,
                }
            }

            fn text(&self, setting: &Setting) -> String {
                match setting.field {
                    $(stringify!($field) => self.$field.text(),)*
                    _ => String::new(),
                }
            }
        }
    };
}

const fn whole(from: u64, to: u64, hint: &'static str) -> Accepts {
    Accepts::Whole { from, to, hint }
}

/// Readings a second.
const OFTEN: Accepts = Accepts::Number { from: 0.0, to: 100.0 };

const fn recording(accepts: Accepts, help: &'static str) -> Setting {
    Setting::new(Commands::Recording, accepts, help)
}

settings! {
    /// What is recorded, and where to.
    Recording {
        /// The trace's folder, exactly. None: a new one under `./inferscope-traces`.
        output: Option<PathBuf> = None,
            recording(Accepts::Folder, "Write the trace to this folder")
                .flag("--output", "DIR").short('o').default_is("a new one in ./inferscope-traces");
        /// Stack samples a second, where there are any; 0 is none, too.
        rate_hz: u32 = 100,
            recording(whole(1, 1000, "--no-stacks for none"), "Stack samples per second, {range}")
                .flag("--rate", "HZ").detail("`start(rate_hz=0)` samples none, as `--no-stacks` does.");
        stacks: bool = true,
            recording(Accepts::Truth, "Sample stacks").words(&[Word {
                long: "--no-stacks",
                short: None,
                stands_for: "false",
                help: "Do not sample stacks",
                conflicts: &["--rate", "--native"],
            }]);
        /// Native functions above the Python ones, by perf events.
        native: bool = true,
            recording(Accepts::Truth, "Sample native (C/C++/Rust) functions under the Python line that calls them")
                .flag("--native", "false");
        calls: Calls = Calls::Off,
            recording(Accepts::Calls, "Record every Python call; `c` also records calls of C functions")
                .flag("--calls", "c").inside_only();
        /// Modules, packages or path globs whose calls are recorded; empty: all.
        include: Vec<String> = Vec::new(),
            recording(Accepts::List, "Record only calls in these modules, packages or path patterns")
                .flag("--include", "PATTERN").key("calls_include").default_is("all").inside_only();
        exclude: Vec<String> = Vec::new(),
            recording(Accepts::List, "Skip calls in these modules, packages or path patterns")
                .flag("--exclude", "PATTERN").key("calls_exclude").default_is("none").inside_only();
        /// Calls shorter than this are not recorded.
        min_us: u64 = 0,
            recording(whole(0, 60_000_000, "a minute in microseconds"), "Skip calls shorter than this")
                .flag("--min-us", "MICROSECONDS").key("calls_min_us").inside_only();
        /// Shared memory for the records of each process's Python part; its CUDA library may use as much again, up to 64 MB.
        trace_size_mb: u32 = 100,
            recording(whole(1, MOST_TRACE_SIZE_MB, "64 GiB"), "Shared memory per process; CUDA programs use as much again, up to 64 MiB")
                .flag("--trace-size-mb", "MIB").told()
                .detail("Reduced automatically if memory limits are low.");
        /// How often /proc is read. 0: never.
        memory_hz: f64 = 10.0,
            recording(OFTEN, "Memory and thread readings per second; 0 turns them off").flag("--memory-hz", "HZ");
        gpu_detail: GpuDetail = GpuDetail::Launch,
            recording(
                Accepts::GpuDetail,
                "CUDA detail: off, kernel (GPU work only), launch (and its launch calls), all (every CUDA call)",
            )
            .flag("--gpu-detail", "DETAIL").inside_only();
        overhead_budget: Budget = Budget::Auto,
            recording(
                Accepts::Budget,
                "Record CUDA in windows so that recording slows the program by at most this on average; auto: 10% (1% for \
                 CUDA graphs), only if recording everything would exceed it; none: record everything",
            )
            .flag("--overhead-budget", "PERCENT").inside_only();
        /// Which `nn.Module` is at work: who asked for what a device did, or took the time of the CPU.
        layers: bool = false,
            recording(Accepts::Truth, "Record which nn.Module runs: kernels and, without a GPU, CPU time by layer")
                .flag("--layers", "true").inside_only();
        /// Outermost calls into known entry points: models, request handlers.
        entries: bool = true,
            recording(Accepts::Truth, "Record calls into known entry points: models, request handlers")
                .flag("--entries", "false").inside_only();
        /// In a few steps, which are in no figure.
        ops: bool = true,
            recording(Accepts::Truth, "Record PyTorch's operators, with shapes and data flow, in a few steps that no figure includes")
                .flag("--ops", "false").inside_only();
        /// Whose blocks are recorded, of PyTorch's allocators. None by default: the hook has been seen with PyTorch's CPU build and with
        /// stand-ins of its CUDA library, not on a GPU yet.
        memory_events: String = "none".into(),
            recording(
                Accepts::OneOf(&["none", "gpu", "all"]),
                "Record every block that PyTorch's allocators hand out: none, gpu, all (also on the CPU)",
            )
            .flag("--memory-events", "WHOSE").inside_only()
            .detail("Of the GPU only where CUDA is recorded (not with `--gpu-detail off`).");
        /// Bytes between two stacks of small blocks, on average. 512 KiB, as allocators that sample take it: some stacks for a token of a small
        /// model, at under a microsecond each.
        memory_stacks_kb: u64 = 512,
            recording(
                whole(0, 1 << 20, "a gibibyte"),
                "Record the Python stack of every block of 1 MiB and more, and of smaller ones about once per this many KiB; 0 for none",
            )
            .flag("--memory-stacks-kb", "KIB").inside_only();
        /// Never by default: it goes over every object of the program.
        retainers: bool = false,
            recording(Accepts::Truth, "When a program with PyTorch ends, find what keeps its largest tensors alive (goes over all its objects, for at most 5 s)")
                .flag("--retainers", "true").inside_only();
        /// How often devices are asked how they are. 0: never.
        device_hz: f64 = 10.0,
            recording(OFTEN, "GPU clock, power and memory readings per second; 0 turns them off").flag("--device-hz", "HZ");
    }
}

settings! {
    /// How the command reads traces and what it prints.
    Reading {
        /// Rows in each table.
        top: u32 = 12,
            Setting::new(Commands::Tables, whole(1, 100_000, "rows in each table"), "Rows in each table").flag("--top", "N");
        /// 0: what is free when reading starts.
        max_memory_mb: u64 = 0,
            Setting::new(Commands::Reading, whole(0, MOST_MB, "0 for what is free"), "Maximum memory for reading a trace")
                .flag("--max-memory-mb", "MIB").default_is("what is free")
                .detail("0 is what is free when it starts.");
        /// A trace of torch.profiler that unpacks to more needs as much memory, too.
        max_unpacked_mb: u64 = 16 << 10,
            Setting::new(Commands::Reading, whole(1, MOST_MB, "of any file"), "Maximum unpacked size of a gzip file")
                .flag("--max-unpacked-mb", "MIB");
        color: String = "auto".into(),
            Setting::new(Commands::Every, Accepts::OneOf(&["auto", "always", "never"]), "When to use colour: {range}")
                .flag("--color", "WHEN");
        log_level: String = "info".into(),
            Setting::new(
                Commands::Every,
                Accepts::OneOf(&["error", "warning", "info", "debug", "trace"]),
                "How much to print on stderr: {range}",
            )
            .words(&[
                Word {
                    long: "--quiet",
                    short: Some('q'),
                    stands_for: "error",
                    help: "Only errors on stderr",
                    conflicts: &["--verbose"],
                },
                Word {
                    long: "--verbose",
                    short: Some('v'),
                    stands_for: "debug",
                    help: "Print details on stderr",
                    conflicts: &[],
                },
            ]);
        /// Only the Python package acts on it; it stands here so that one table has all. Not in a file: nobody expects that one
        /// somewhere above makes every program record that imports the package.
        enable: bool = false,
            Setting::new(Commands::Every, Accepts::Truth, "The Python package records without `inferscope run`")
                .detail("Not in a file, because importing the package reads none.").not_in_file(
                    "importing the Python package reads none; set INFERSCOPE_ENABLE=1 for one program, or call \
                     inferscope.start() in it",
                );
    }
}

impl Recording {
    /// Stack samples a second; 0: none.
    pub fn stack_rate_hz(&self) -> u32 {
        if self.stacks { self.rate_hz } else { 0 }
    }
}
