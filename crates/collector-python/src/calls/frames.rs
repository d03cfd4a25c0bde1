//! A frame's code object on 3.10 and 3.11, read where it lies: asking the interpreter for it costs as much as all the rest
//! that the hook does.

use pyo3::ffi::{Py_DECREF, PyEval_GetFrame, PyFrame_GetCode, PyFrameObject};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// The address of a frame's code object, which the frame keeps alive.
#[inline(always)]
pub unsafe fn code_of(frame: *mut PyFrameObject) -> usize {
    // SAFETY: the caller's frame is alive, and with it its code; `learn_frames` tried what is read here.
    unsafe {
        match FRAMES.load(Ordering::Relaxed) {
            CODE_IN_FRAME => *frame.cast::<usize>().add(3),
            CODE_BEHIND_FRAME => *(*frame.cast::<*const usize>().add(3)).add(4),
            _ => ask_for_code(frame),
        }
    }
}

#[cold]
unsafe fn ask_for_code(frame: *mut PyFrameObject) -> usize {
    // SAFETY: as for `code_of`.
    unsafe {
        let code = PyFrame_GetCode(frame);
        Py_DECREF(code.cast());
        code as usize
    }
}

static FRAMES: AtomicU8 = AtomicU8::new(0);
/// 3.10: the frame's fourth word.
const CODE_IN_FRAME: u8 = 1;
/// 3.11: the fourth word leads to the inner frame, whose fifth word it is.
const CODE_BEHIND_FRAME: u8 = 2;

/// Finds out whether a frame of this interpreter is laid out as its version says. If not, we ask for the code each time.
pub fn learn_frames(py: Python<'_>) {
    // SAFETY: attached; the frame is borrowed from the interpreter, which runs it now.
    unsafe {
        let frame = PyEval_GetFrame();
        let layout = if py.version_info() >= (3, 11) { CODE_BEHIND_FRAME } else { CODE_IN_FRAME };
        if !frame.is_null() {
            FRAMES.store(layout, Ordering::Relaxed);
            if code_of(frame) != ask_for_code(frame) {
                FRAMES.store(0, Ordering::Relaxed);
            }
        }
    }
}
