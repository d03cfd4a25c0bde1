//! Notes: what is missing from a trace as a whole, and why, with the numbers and names that belong to it. Kept in the manifest.

super::codes! {
    /// What a note says. The arguments of each stand beside its wording, in [`crate::wording`].
    pub enum NoteCode {
        /// A line for people, whole as it is: of a reader of a file, of a collector of the GPU, or of a version before there were codes.
        Sentence = 0, "sentence";
        NotesLeftOut = 1, "notes-left-out";
        Defect = 2, "defect";
        SupervisorKilled = 3, "supervisor-killed";
        SupervisorKilledAttached = 4, "supervisor-killed-attached";
        NoPressure = 5, "no-pressure";
        NoSharedMemory = 6, "no-shared-memory";
        NoNumaPlacement = 7, "no-numa-placement";
        /// The collectors did not get into a Python process.
        NotInjected = 8, "not-injected";
        NoStacks = 9, "no-stacks";
        SampledByAnother = 10, "sampled-by-another";
        DeviceDriverLate = 11, "device-driver-late";
        NotCompleteByDefect = 12, "not-complete-by-defect";
        RecorderRestarted = 13, "recorder-restarted";
        EndKeptInMemory = 14, "end-kept-in-memory";
        /// There is nothing to sample.
        NoPython = 15, "no-python";
        EndedBeforeFirstSample = 16, "ended-before-first-sample";
        SampledAtMost = 17, "sampled-at-most";
        ProcessesCountedAsOne = 18, "processes-counted-as-one";
        StillRunning = 19, "still-running";
        FilesNotJoined = 20, "files-not-joined";
        FilesPutBack = 21, "files-put-back";
        CompletedInCopy = 22, "completed-in-copy";
        FileDamaged = 23, "file-damaged";
        SegmentInUse = 24, "segment-in-use";
        FolderLost = 25, "folder-lost";
        SegmentNotRead = 26, "segment-not-read";
        NoWatchThread = 27, "no-watch-thread";
        NoDeviceThread = 28, "no-device-thread";
        /// The Python package is not beside the command: nothing is brought into a program.
        NoPackage = 29, "no-package";
        NoCudaLibrary = 30, "no-cuda-library";
        GpuInjectionTaken = 31, "gpu-injection-taken";
        NvtxInjectionTaken = 32, "nvtx-injection-taken";
        SampledLessOften = 33, "sampled-less-often";
        StacksNotReused = 34, "stacks-not-reused";
        NoJournal = 35, "no-journal";
        DiskFailed = 36, "disk-failed";
        LastSamplesLost = 37, "last-samples-lost";
        SmallerSegment = 38, "smaller-segment";
        NoNvidiaSamples = 39, "no-nvidia-samples";
        DeviceLost = 40, "device-lost";
        RecordedUpToNow = 41, "recorded-up-to-now";
        Recovered = 42, "recovered";
        SegmentsOnDisk = 43, "segments-on-disk";
        RecordedByAnother = 44, "recorded-by-another";
        NotCompletedByRecorder = 60, "not-completed-by-recorder";
        /// Of traces from before layers had the CPU's time where there is no GPU.
        LayersWithoutGpu = 61, "layers-without-gpu";
        /// Layers were asked for, and no process of the program imported PyTorch.
        LayersWithoutTorch = 71, "layers-without-torch";
        /// The kernel gives no native stacks; the one argument says which setting forbids it.
        NoNativeFrames = 70, "no-native-frames";
        /// PyTorch's allocator is not recorded, or no longer; the one argument says why.
        NoMemoryEvents = 72, "no-memory-events";
        /// Blocks have no stacks, for Python's frames are not read; the one argument says why.
        NoMemoryStacks = 73, "no-memory-stacks";
        /// From here on, of the collector of the GPU; the one argument is what it says.
        GpuNotRecorded = 45, "gpu-not-recorded";
        GpuKindRefused = 46, "gpu-kind-refused";
        CudaCallsNotRecorded = 47, "cuda-calls-not-recorded";
        GpuRecordingStopped = 48, "gpu-recording-stopped";
        GpuNoRing = 49, "gpu-no-ring";
        GraphsMayHang = 50, "graphs-may-hang";
        CuptiKeepsMemory = 51, "cupti-keeps-memory";
        GpuWindows = 52, "gpu-windows";
        CudaCallsRefused = 53, "cuda-calls-refused";
        NoRoomForNames = 54, "no-room-for-names";
        CuptiBuffersShort = 55, "cupti-buffers-short";
        CuptiVersion = 56, "cupti-version";
        GpuClockUnknown = 57, "gpu-clock-unknown";
        WorkOfEarlierRecording = 58, "work-of-earlier-recording";
        CuptiTakenOver = 59, "cupti-taken-over";
    }
}

/// An argument without what stands between arguments.
pub(super) fn clean(argument: impl ToString) -> String {
    argument.to_string().replace(['\n', BETWEEN, '\0'], " ")
}

/// One thing that is missing, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    pub code: NoteCode,
    /// The first process that it was noted of, where it is of processes.
    pub process: Option<u32>,
    /// Of how many processes it is true.
    pub processes: u32,
    pub args: Vec<String>,
}

/// Between the arguments of a note in a record: a character that no text of ours or of the system has.
pub(super) const BETWEEN: char = '\u{1f}';

impl Note {
    pub fn new(code: NoteCode) -> Note {
        Note { code, process: None, processes: 0, args: Vec::new() }
    }

    pub fn sentence(text: impl Into<String>) -> Note {
        Note { args: vec![text.into()], ..Note::new(NoteCode::Sentence) }
    }

    /// Adds an argument.
    pub fn with(mut self, argument: impl ToString) -> Note {
        self.args.push(clean(argument));
        self
    }

    /// The same of a process.
    pub fn of(mut self, pid: u32) -> Note {
        (self.process, self.processes) = (Some(pid), 1);
        self
    }

    /// The arguments as one text, as a record carries them.
    pub fn joined(&self) -> String {
        self.args.join(&BETWEEN.to_string())
    }

    /// The inverse of [`Note::joined`]. None: a number that nobody wrote.
    pub fn from_record(number: u32, joined: &str) -> Option<Note> {
        let code = i32::try_from(number).ok().and_then(NoteCode::from_i32)?;
        let arguments = joined.split(BETWEEN).filter(|_| !joined.is_empty());
        Some(arguments.fold(Note::new(code), |note, argument| note.with(argument)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_survives_its_record() {
        let note = Note::new(NoteCode::DeviceLost).with(3).with("A \u{1f}GPU\n").with("gone");
        let back = Note::from_record(note.code as u32, &note.joined()).unwrap();
        assert_eq!(back, note);
        assert_eq!(back.args, ["3", "A  GPU ", "gone"]);
        assert_eq!(Note::from_record(u32::MAX, ""), None);
        let plain = Note::new(NoteCode::DeviceLost);
        assert_eq!(Note::from_record(plain.code as u32, &plain.joined()), Some(plain));
    }
}
