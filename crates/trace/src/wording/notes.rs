//! What each note says. The arguments are named where they are used.

use crate::codes::{Note, NoteCode, Reason};
use crate::quantity;

impl Note {
    pub fn said(&self) -> String {
        use NoteCode::*;
        let arg = |at: usize| self.args.get(at).map_or("", String::as_str);
        let (first, second, third) = (arg(0), arg(1), arg(2));
        match self.code {
            Sentence => first.to_owned(),
            NotesLeftOut => "too many notes: the others were dropped".into(),
            Defect => format!("internal error in {first}; recording went on. Please report this bug"),
            SupervisorKilled => {
                "the supervisor was killed: recording went on without it, and the command's exit code is unknown".into()
            }
            SupervisorKilledAttached => "the supervisor was killed: the recording ends there".into(),
            NoPressure => format!("no pressure stall data (PSI): cannot read /proc/pressure: {first}"),
            NoSharedMemory => format!("no shared memory and swap usage: cannot read /proc/PID/smaps_rollup: {first}"),
            NoNumaPlacement => format!("no NUMA placement: cannot read /proc/PID/numa_maps: {first}"),
            NotInjected => format!("no scopes and calls of {}: {first}", self.who("Python processes")),
            NoStacks => format!("no stacks of {}: {first}", self.who("processes")),
            SampledByAnother => {
                format!("no stacks of {}: process {first} is already sampling it", self.who("processes"))
            }
            DeviceDriverLate => "the last GPU readings are missing: the driver did not answer in time".into(),
            NotCompleteByDefect => {
                "the trace is incomplete because of an internal error. Please report this bug".into()
            }
            NotCompletedByRecorder => format!(
                "the trace is incomplete: the recorder failed {first} times to complete it ({second}). To complete it, run \
                 `inferscope analyze {third}`"
            ),
            RecorderRestarted => restarted(first, second),
            EndKeptInMemory => format!(
                "the end of the trace could not be written ({first}) and is kept in {second}: free some space, then run \
                 `inferscope analyze {third}`"
            ),
            NoPython => "no stacks: no Python process was seen".into(),
            EndedBeforeFirstSample => "no stacks: the program ended before the first sample".into(),
            SampledAtMost => {
                format!("no stacks of some processes: at most {first} Python processes are sampled at a time")
            }
            ProcessesCountedAsOne => {
                format!("{first} processes are counted as one: a trace holds at most {second} processes")
            }
            StillRunning => match first {
                "1" => "1 process was still running when the recording ended".into(),
                _ => format!("{first} processes were still running when the recording ended"),
            },
            FilesNotJoined => format!("the trace consists of many small files: merging them failed: {first}"),
            FilesPutBack => "files of the trace were deleted while recording; they were restored".into(),
            CompletedInCopy => {
                format!("completed in a temporary copy, because {first}: the trace itself is unchanged")
            }
            FileDamaged => format!("{first} is damaged: its data is missing here"),
            SegmentInUse => format!("the records in segment {first} are missing here: its process is still running"),
            FolderLost => "the trace's folder was deleted and the recorder killed: its data is lost".into(),
            SegmentNotRead => format!("the records in segment {first} are missing: {second}"),
            NoWatchThread => format!("no stacks and no memory: cannot start a thread: {first}"),
            NoDeviceThread => format!("no GPU readings: cannot start a thread: {first}"),
            NoPackage => {
                "no scopes, calls or GPU work, except of programs that import inferscope themselves: the Python \
                          package is not installed next to the command (set INFERSCOPE_PACKAGE to its folder)"
                    .into()
            }
            NoCudaLibrary => "the GPU is not recorded: this package was built without its CUDA library".into(),
            GpuInjectionTaken => taken("the GPU is not recorded", "CUDA_INJECTION64_PATH", first, second),
            NvtxInjectionTaken => taken("NVTX ranges are not recorded", "NVTX_INJECTION64_PATH", first, second),
            SampledLessOften => format!(
                "stacks of process {} are sampled less often than every {first} ms: reading {second} threads takes {third} \
                 ms, and the sampler may use at most 20 % of a core per process",
                self.process.unwrap_or(0)
            ),
            StacksNotReused => format!(
                "process {}: a reused stack differed from what py-spy read; from now on every stack is read for every \
                 sample, which costs more",
                self.process.unwrap_or(0)
            ),
            NoJournal => format!(
                "samples are kept in the recorder's memory until they are written ({first}): if the recorder is killed, \
                 they are lost"
            ),
            DiskFailed => format!(
                "the disk did not accept the trace for a while ({first}): records waited in shared memory, and the oldest \
                 may have been overwritten"
            ),
            LastSamplesLost => format!("the last samples are lost: {first}"),
            SmallerSegment => format!(
                "{} of shared memory instead of {} for {}: {}",
                size(first),
                size(second),
                self.who("processes"),
                limit(third)
            ),
            NoNvidiaSamples => format!("no readings of NVIDIA GPUs: {first}"),
            DeviceLost => format!("GPU {first} ({second}) was lost while recording: {third}"),
            RecordedUpToNow => format!("{first} processes are still running; they are recorded up to now"),
            Recovered => format!(
                "the recorder was killed; its last write was at {first}. {second} records recovered from shared memory, \
                 {third} overwritten; stacks, memory and threads after {first} are missing"
            ),
            SegmentsOnDisk => format!(
                "/dev/shm {first}: the buffers of the recorded processes are on disk instead, in the trace's folder, which \
                 is slower"
            ),
            RecordedByAnother => format!("process {first} already records this command: see its trace"),
            GpuNotRecorded => format!("the GPU is not recorded: {first}"),
            CudaCallsNotRecorded => format!("CUDA calls are not recorded: {first}"),
            GpuKindRefused => format!("not recorded because CUPTI refuses it: {first} ({second})"),
            GpuNoRing => "GPU records were dropped: no shared memory was left for them".into(),
            GraphsMayHang => {
                "programs with CUDA graphs may hang under a CUPTI older than 12.6: if this one does, record \
                              with --gpu-detail off"
                    .into()
            }
            NoRoomForNames => "the table of names is full: kernels seen later have no name".into(),
            CuptiBuffersShort => format!("CUPTI requested a buffer {first} times when none was free"),
            GpuClockUnknown => {
                format!("{}: until it does, GPU operations have no timestamps and are only counted", self.reason())
            }
            WorkOfEarlierRecording => format!(
                "CUPTI delivered {first} GPU operations of an earlier recording of this process after that had ended: \
                 they are in neither recording"
            ),
            CudaCallsRefused => {
                format!(
                    "{first} CUDA calls failed (launches, copies or waits): the first was {second}, with error {third}"
                )
            }
            CuptiTakenOver => {
                format!("{first} took over CUPTI: what the GPU did after that is not in this recording")
            }
            LayersWithoutTorch => "no layers: no recorded process imported PyTorch".into(),
            LayersWithoutGpu => "layers have the CPU's time: no GPU work was recorded".into(),
            NoMemoryEvents => format!("blocks of PyTorch's allocator are not recorded: {}", self.reason()),
            NoMemoryStacks => format!("blocks of PyTorch's allocator have no Python stacks: {}", self.reason()),
            NoNativeFrames => format!("no native frames of {}: {first}", self.who("processes")),
            GpuWindows => {
                crate::codes::GpuWindows::of(&self.args).map_or_else(|| first.to_owned(), |windows| windows.said())
            }
            GpuRecordingStopped | CuptiKeepsMemory | CuptiVersion => self.reason(),
        }
    }

    /// The reason that a collector gave as a code; traces from before there were any have its sentence.
    fn reason(&self) -> String {
        let sentence = || self.args.first().cloned().unwrap_or_default();
        Reason::of_note(self).map_or_else(sentence, |reason| reason.said())
    }

    fn who(&self, many: &str) -> String {
        let first = self.process.unwrap_or(0);
        match self.processes {
            0 | 1 => format!("process {first}"),
            count => format!("{count} {many} (process {first} first)"),
        }
    }
}

/// How often the recorder was killed, and what that cost.
fn restarted(times: &str, overwritten: &str) -> String {
    let times = if times == "1" { "once".into() } else { format!("{times} times") };
    let records = match overwritten {
        "0" => "no records were overwritten".into(),
        "1" => "1 record was overwritten".into(),
        many => format!("{many} records were overwritten"),
    };
    format!(
        "the recorder was killed {times} and restarted: {records}; stacks, memory and threads of that time are missing"
    )
}

fn taken(missing: &str, variable: &str, path: &str, by: &str) -> String {
    let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
    format!("{missing}: {variable} is already set to {path}{by}; unset it to record with inferscope")
}

fn size(bytes: &str) -> String {
    quantity::bytes(bytes.parse().unwrap_or(0))
}

/// Why a segment is smaller than asked for.
fn limit(code: &str) -> &'static str {
    match code {
        "address-space" => "the address space is limited (ulimit -v)",
        "file-system" => "the file system of the buffers is nearly full",
        "cgroup" => "its cgroup limits memory (memory.max)",
        "file-size" => "the file size is limited (ulimit -f)",
        _ => "no more was available",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_true_of_many_processes_is_one_sentence() {
        let one = Note::new(NoteCode::NoStacks).with("permission denied").of(12);
        assert_eq!(one.said(), "no stacks of process 12: permission denied");
        let many = Note { processes: 500, ..one };
        assert_eq!(many.said(), "no stacks of 500 processes (process 12 first): permission denied");
        let kept_out = Note { code: NoteCode::NotInjected, processes: 2, ..many };
        assert_eq!(kept_out.said(), "no scopes and calls of 2 Python processes (process 12 first): permission denied");
    }

    #[test]
    fn every_note_says_something() {
        for code in NoteCode::ALL {
            let note = Note::new(*code).with("a").with("b").with("c").of(7);
            assert!(!note.said().is_empty(), "{}", code.name());
        }
    }
}
