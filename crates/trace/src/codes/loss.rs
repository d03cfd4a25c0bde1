//! Why records are missing: `losses.reason`.

super::codes! {
    /// Why something that happened is not in the trace.
    pub enum LossReason {
        /// A reason that this version does not know: it was written by a later one.
        Unknown = 0, "unknown";
        /// The ring was full.
        Overwritten = 1, "overwritten";
        /// The ring was full, because the recorder had been killed and the next one came too late.
        OverwrittenDuringRestart = 2, "overwritten-during-restart";
        UnknownRecord = 3, "unknown-record";
        /// Of a record of a device, the numbers in front of it.
        IncompleteDeviceRecord = 4, "incomplete-device-record";
        RowsNotWritten = 5, "rows-not-written";
        /// Samples came faster than the recorder took them.
        RecorderLate = 6, "recorder-late";
        NoRoom = 7, "no-room";
        CollectorErrors = 8, "collector-errors";
        Unpaired = 9, "unpaired";
        TextCut = 10, "text-cut";
        TooManyFunctions = 11, "too-many-functions";
        DroppedByCupti = 12, "dropped-by-cupti";
        WorkWithoutTime = 13, "work-without-time";
        UnknownCuptiRecord = 14, "unknown-cupti-record";
        TooManyRanges = 15, "too-many-ranges";
        SamplerLate = 16, "sampler-late";
        /// A thread went on while its stack was read.
        StackChanged = 17, "stack-changed";
        SamplesNotWritten = 18, "samples-not-written";
        /// These three are of a reader: places in a timeline are 32 bits wide.
        SlicesBeyondTimeline = 19, "slices-beyond-timeline";
        WorkBeyondTimeline = 20, "work-beyond-timeline";
        SamplesBeyondTimeline = 21, "samples-beyond-timeline";
        /// Also of a reader, which has no memory for so many.
        BlocksBeyondTimeline = 22, "blocks-beyond-timeline";
    }
}
