//! What each note says. The arguments are named where they are used.

use crate::codes::{Note, NoteCode};

impl Note {
    pub fn said(&self) -> String {
        use NoteCode::*;
        let arg = |at: usize| self.args.get(at).map_or("", String::as_str);
        let (first, second, third) = (arg(0), arg(1), arg(2));
        match self.code {
            Sentence => first.to_owned(),
            NotesLeftOut => "further notes were left out".into(),
            Defect => format!("a defect in inferscope interrupted {first}; please report it"),
            SupervisorKilled => {
                "the supervisor was killed: the recorder went on without it, and how the command ended is not known"
                    .into()
            }
            SupervisorKilledAttached => "the supervisor was killed: the recording ends there".into(),
            NoPressure => format!("no pressure (PSI): /proc/pressure cannot be read: {first}"),
            NoSharedMemory => {
                format!("no shared memory and swap: /proc/PID/smaps_rollup cannot be read: {first}")
            }
            NoNumaPlacement => format!("no placement on NUMA nodes: /proc/PID/numa_maps cannot be read: {first}"),
            NotInjected => format!("no scopes and calls of {}: {first}", self.who("Python processes")),
            NoStacks => format!("no stacks of {}: {first}", self.who("processes")),
            SampledByAnother => {
                format!("no stacks of {}: process {first} records it already", self.who("processes"))
            }
            DeviceDriverLate => "the last samples of devices are missing: their driver did not answer in time".into(),
            NotCompleteByDefect => "the trace is not complete: a defect in inferscope; please report it".into(),
            NotCompletedByRecorder => format!(
                "the trace is not complete: the recorder did not complete it in {first} attempts ({second}); run `inferscope \
                 analyze {third}`"
            ),
            RecorderRestarted => restarted(first, second),
            EndKeptInMemory => format!(
                "the end of the trace could not be written ({first}) and is kept in {second}: make room, then run \
                 `inferscope analyze {third}`"
            ),
            NoPython => "no stacks: no Python process was seen".into(),
            EndedBeforeFirstSample => "no stacks: the program ended before the first sample".into(),
            SampledAtMost => format!("no stacks of some processes: {first} Python processes are sampled at a time"),
            ProcessesCountedAsOne => format!("{first} processes beyond {second} are counted as one"),
            StillRunning => match first {
                "1" => "1 process was still running when the recording ended".into(),
                _ => format!("{first} processes were still running when the recording ended"),
            },
            FilesNotJoined => {
                format!("the trace is in many small files, because they could not be joined: {first}")
            }
            FilesPutBack => {
                "files of the trace were removed while recording; they were put back from open descriptors".into()
            }
            CompletedInCopy => {
                format!("completed in a temporary copy, because {first}: the trace itself is unchanged")
            }
            FileDamaged => format!("{first} is damaged: what is in it is not shown"),
            SegmentInUse => {
                format!("the records of segment {first} are not in the report: its process still runs")
            }
            FolderLost => "the trace's folder was removed, and the recorder killed: what was in it is lost".into(),
            SegmentNotRead => format!("the records of segment {first} are not in the trace: {second}"),
            NoWatchThread => format!("no stacks and no memory: cannot start a thread: {first}"),
            NoDeviceThread => format!("no samples of devices: cannot start a thread: {first}"),
            NoPackage => {
                "scopes and calls are recorded only of programs that import inferscope themselves: the Python \
                          package is not installed beside the command (INFERSCOPE_PACKAGE=FOLDER names it)"
                    .into()
            }
            NoCudaLibrary => "the GPU is not recorded: this package was built without its CUDA library".into(),
            GpuInjectionTaken => taken("the GPU is not recorded", "CUDA_INJECTION64_PATH", first, second),
            NvtxInjectionTaken => taken("NVTX ranges are not recorded", "NVTX_INJECTION64_PATH", first, second),
            SampledLessOften => format!(
                "stacks of process {} are sampled less often than every {first} ms: a sample of {second} threads takes \
                 {third} ms, and the recorder spends at most 20 % of a core on the stacks of one process",
                self.process.unwrap_or(0)
            ),
            StacksNotReused => format!(
                "process {}: a reused stack differed from what py-spy read; all stacks are read for every sample from now \
                 on, which costs more",
                self.process.unwrap_or(0)
            ),
            NoJournal => format!(
                "samples wait in the recorder's own memory until files are closed ({first}): a kill of the recorder loses \
                 them"
            ),
            DiskFailed => format!(
                "the trace could not be written for a while ({first}): records waited in shared memory, and the oldest \
                 may have been overwritten"
            ),
            LastSamplesLost => format!("the last samples are lost: {first}"),
            SmallerSegment => format!(
                "{} of shared memory instead of {} for {}: {}",
                megabytes(first),
                megabytes(second),
                self.who("processes"),
                limit(third)
            ),
            NoNvidiaSamples => format!("no samples of NVIDIA devices: {first}"),
            DeviceLost => format!("device {first} ({second}) was lost while it was recorded: {third}"),
            RecordedUpToNow => format!("{first} processes still run; they are recorded up to now"),
            Recovered => format!(
                "the recorder was killed; it last wrote at {first}: {second} records were recovered from shared memory, \
                 {third} had been overwritten; stacks, memory and threads after {first} are missing"
            ),
            SegmentsOnDisk => {
                format!("/dev/shm {first}: the workload's segments are on disk, in the trace's folder, which is slower")
            }
            RecordedByAnother => format!("process {first} records this command already: see its trace"),
            GpuNotRecorded => format!("what the GPU does is not recorded: {first}"),
            CudaCallsNotRecorded => format!("CUDA calls are not recorded: {first}"),
            GpuKindRefused => format!("not recorded, for CUPTI refuses it: {first} ({second})"),
            GpuNoRing => "no shared memory is left for the GPU's records".into(),
            GraphsMayHang => {
                "CUDA graphs and a CUPTI older than 12.6 are known to hang together: if the program does, \
                              record with --gpu-detail off"
                    .into()
            }
            NoRoomForNames => "there was no more room for names: kernels that came later have none".into(),
            CuptiBuffersShort => format!("CUPTI asked {first} times for a buffer when none was free"),
            GpuClockUnknown => {
                format!("{first}: until it does, work of the GPU has no times and is only counted")
            }
            WorkOfEarlierRecording => format!(
                "CUPTI handed over {first} pieces of work of an earlier recording of this process when that was over: \
                 they are in neither"
            ),
            CudaCallsRefused => format!(
                "CUDA refused {first} of the calls that give a device work or wait for it: the first was {second}, with \
                 error {third}"
            ),
            CuptiTakenOver => {
                format!("{first} was started and has CUPTI: what the GPU does after that is not in this recording")
            }
            GpuRecordingStopped | CuptiKeepsMemory | GpuWindows | CuptiVersion => first.to_owned(),
        }
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
        "0" => "no record was overwritten meanwhile".into(),
        "1" => "1 record was overwritten meanwhile".into(),
        many => format!("{many} records were overwritten meanwhile"),
    };
    format!(
        "the recorder was killed {times} and started again: {records}; stacks, memory and threads of that time are missing"
    )
}

fn taken(missing: &str, variable: &str, path: &str, by: &str) -> String {
    let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
    format!("{missing}: {variable} is set to {path}{by} already; unset it to record with inferscope")
}

fn megabytes(bytes: &str) -> String {
    let bytes: u64 = bytes.parse().unwrap_or(0);
    format!("{} MB", (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0)
}

/// Why a segment is smaller than asked for.
fn limit(code: &str) -> &'static str {
    match code {
        "address-space" => "little address space is left (ulimit -v)",
        "file-system" => "little space is left where segments are",
        "cgroup" => "its cgroup (memory.max) leaves little memory",
        "file-size" => "files may not be larger (ulimit -f)",
        _ => "no more was to be had",
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
