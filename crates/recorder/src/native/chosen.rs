//! Functions that a library chooses when it is loaded, by what the processor can do: `memmove`, `memcmp`, `exp`. A stripped file names
//! only the function that chooses. Where the very same file is loaded in this process as well, it has chosen the same here: we ask.

use super::mapping::FileIdentity;
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::{mem, ptr};

/// Where in the file the function lies that goes by this name. None: the file is not loaded here, or another answers to the name.
pub(super) fn address(name: &CStr, file: FileIdentity) -> Option<u64> {
    // SAFETY: asks the loader for a name that ends with a zero. Libraries that a resolver belongs to were loaded with this program.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if function.is_null() {
        return None;
    }
    // SAFETY: plain fields, for which zeros are valid.
    let mut found: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: any address may be asked for; what is written lives as long as the library, which is never unloaded.
    let is_known = unsafe { libc::dladdr(function, ptr::from_mut(&mut found)) } != 0;
    if !is_known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a text of the loader's.
    let path = unsafe { CStr::from_ptr(found.dli_fname) };
    let here = FileIdentity::of(&File::open(OsStr::from_bytes(path.to_bytes())).ok()?).ok()?;
    (here == file).then(|| (function as u64).wrapping_sub(found.dli_fbase as u64))
}

/// How long the functions are that begin at these addresses: by the library's own table of call frames, `.eh_frame`, loaded at `loaded`.
pub(super) fn lengths(frames: &[u8], loaded: u64, mut starts: HashMap<u64, u64>) -> HashMap<u64, u64> {
    let bases = BaseAddresses::default().set_eh_frame(loaded);
    let frames = EhFrame::new(frames, LittleEndian);
    let mut entries = frames.entries(&bases);
    // What cannot be read ends the walk: a function without a length gets no name.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(function) = entry else { continue };
        let Ok(function) = function.parse(EhFrame::cie_from_offset) else { continue };
        if let Some(length) = starts.get_mut(&function.initial_address()) {
            *length = function.len();
        }
    }
    starts.retain(|_, length| *length > 0);
    starts
}
