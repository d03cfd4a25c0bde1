//! Recording in windows: `slices.id` where `slices.kind` is 11.

super::codes! {
    /// With an overhead budget the GPU is recorded by turns: what begins at a turn.
    pub enum RecordingWindow {
        On = 1, "on";
        Off = 2, "off";
    }
}
