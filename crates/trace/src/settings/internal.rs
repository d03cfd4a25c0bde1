//! Variables of the environment that are no settings: what our parts tell each other, and where tests put a library of their own. The
//! Python package spells them, too; a test of the command holds it to this list.

macro_rules! variables {
    ($($(#[$about:meta])* $name:ident = $variable:literal;)+) => {
        $($(#[$about])* pub const $name: &str = $variable;)+

        pub const ALL: &[&str] = &[$($variable,)+];
    };
}

variables! {
    /// The command that the Python package starts.
    BIN = "INFERSCOPE_BIN";
    /// Another libcupti.
    CUPTI = "INFERSCOPE_CUPTI";
    /// The fix that `verify` tries, and the value that it is given.
    FIX = "INFERSCOPE_FIX";
    FIX_VALUE = "INFERSCOPE_FIX_VALUE";
    /// Another library of NVML.
    NVML = "INFERSCOPE_NVML";
    /// Where the Python package is.
    PACKAGE = "INFERSCOPE_PACKAGE";
    RECORDER_PID = "INFERSCOPE_RECORDER_PID";
    /// The folder of the segments: a recorder is there.
    SEGMENTS = "INFERSCOPE_SEGMENTS";
    /// Where sysfs is.
    SYSFS = "INFERSCOPE_SYSFS";
    /// The folder of the trace.
    TRACE = "INFERSCOPE_TRACE";
    /// `inferscope analyze` without a trace does not open this one.
    UNLISTED = "INFERSCOPE_UNLISTED";
}
