//! Names of files and folders that several parts of the recorder look for.

/// In a segments folder: tables that the trace's disk did not take.
pub(crate) const RESCUED: &str = "rescued";
/// The segments' folder of a trace whose segments are on disk.
pub(crate) const SEGMENTS: &str = "segments";
/// To us: finish now. Holds `ends` if the program ends and waits for nothing else, or nothing if it goes on.
pub(crate) const STOP: &str = "stop";
/// From us: the trace is complete; holds the path of the report.
pub(crate) const DONE: &str = "done";

/// By which a recorder and the program that started it talk.
pub(crate) const PROTOCOL_FILES: [&str; 2] = [STOP, DONE];
