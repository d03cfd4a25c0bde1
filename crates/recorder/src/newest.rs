//! A recording that goes elsewhere (`--output`) leaves its path among those that do not, so that "the newest trace" is the newest run
//! and not an older one. Who looks for it does not trust what is there.

use crate::output::TRACES;
use crate::private;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use trace::settings::internal;

/// In `./inferscope-traces`: the path of the newest trace that is not called as those there are.
pub const POINTER: &str = ".newest";
/// Set by whoever records for a purpose of its own: such a trace is no run of the user's.
pub(crate) const UNLISTED: &str = internal::UNLISTED;

/// Only where the folder is there already: without it there is no older trace that could be taken for this one.
pub(crate) fn remember(trace: &Path) {
    let folder = Path::new(TRACES);
    if std::env::var_os(UNLISTED).is_some() || !folder.is_dir() {
        return;
    }
    // Nothing depends on it but a search; the recording goes on without.
    let _ = private::write(&folder.join(POINTER), trace.as_os_str().as_bytes());
}
