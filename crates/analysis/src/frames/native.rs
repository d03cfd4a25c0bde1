//! Native functions above a line of Python: which line called them, and which of them most of its samples are in.

use super::{DEEP, Frames, is};
use std::collections::{HashMap, HashSet};
use timeline::{NameIndex, StackIndex, Timeline};

/// The native function that a line of Python spends its time in.
#[derive(Clone, PartialEq, Debug)]
pub struct NativeFunction {
    pub function: String,
    /// As people call it: `libtorch_cpu`, `_imaging`.
    pub library: String,
    /// Of the samples that were looked at, 0 to 1.
    pub share: f64,
}

impl NativeFunction {
    /// `_imaging: ImagingResample`; of a long C++ name the end.
    pub fn said(&self) -> String {
        let name = match self.function.rmatch_indices("::").nth(1) {
            Some((at, _)) if self.function.len() > LONG_NAME => &self.function[at + 2..],
            _ => &self.function,
        };
        if self.library.is_empty() { name.to_owned() } else { format!("{}: {name}", self.library) }
    }
}

/// Longer ones do not fit a table beside the line.
const LONG_NAME: usize = 30;
/// A function that this part of the native samples is in stands for all of them: of two that share them evenly, neither does.
const MIN_SHARE: f64 = 2.0 / 3.0;

/// Functions that call what they were given: the work is around or inside them.
const PASS_ON: [&str; 7] = [
    "c10::function_ref",
    "c10::impl::wrap_kernel",
    "at::TensorIteratorBase::",
    "at::internal::",
    "std::function",
    "std::_Function_handler",
    "std::__invoke",
];

/// For every stack its last Python frame. Native frames are those of a file that is no Python: recorded C calls have none.
pub fn python_frames(timeline: &Timeline) -> Vec<StackIndex> {
    let (names, stacks) = (&timeline.names, &timeline.stacks);
    let is_native = |name: NameIndex| {
        let file = &names.get(name).file;
        !file.is_empty() && super::known::bits(names.get(name), names.call(name)) & is::NATIVE != 0
    };
    let known: Vec<bool> = (0..names.len() as u32).map(|index| is_native(NameIndex(index))).collect();
    let mut python: Vec<StackIndex> = vec![StackIndex(0); stacks.len()];
    for index in 1..stacks.len() {
        let frame = stacks.frame(StackIndex(index as u32));
        let below = python[frame.parent.0 as usize];
        let native = known.get(frame.name.0 as usize).copied().unwrap_or(false) && below.0 != 0;
        python[index] = if native { below } else { StackIndex(index as u32) };
    }
    python
}

/// The innermost native function that most of the native ones among these stacks are in. None: no function is, or most of the stacks
/// have no native functions.
pub fn native_function(
    timeline: &Timeline,
    frames: &Frames,
    stacks: impl Iterator<Item = StackIndex>,
) -> Option<NativeFunction> {
    let (mut all, mut native) = (0u64, 0u64);
    // How many stacks a function is in, and how far above the line of Python, added up.
    let mut found: HashMap<NameIndex, (u64, u64)> = HashMap::new();
    let mut known: HashMap<StackIndex, u64> = HashMap::new();
    stacks.for_each(|stack| *known.entry(stack).or_default() += 1);
    for (stack, count) in known {
        let python = frames.python(stack);
        all += count;
        let above: Vec<NameIndex> = timeline
            .stacks
            .walk(stack)
            .take(DEEP)
            .take_while(|(index, _)| *index != python)
            .map(|(_, frame)| frame.name)
            .collect();
        native += if above.is_empty() { 0 } else { count };
        let mut seen = HashSet::new();
        for (below, name) in above.iter().enumerate() {
            let text = timeline.names.text(*name);
            // A name in brackets stands for one that is not known.
            let says_something = !text.starts_with('[') && !PASS_ON.iter().any(|start| text.starts_with(start));
            if seen.insert(*name) && says_something {
                let sum = found.entry(*name).or_default();
                *sum = (sum.0 + count, sum.1 + count * (above.len() - below) as u64);
            }
        }
    }
    if native * 2 <= all {
        return None;
    }
    let leads = |(_, (count, _)): &(NameIndex, (u64, u64))| *count as f64 >= native as f64 * MIN_SHARE;
    let height = |sum: (u64, u64)| sum.1 as f64 / sum.0 as f64;
    let (name, (count, _)) =
        found.into_iter().filter(leads).max_by(|a, b| height(a.1).total_cmp(&height(b.1)).then(b.0.cmp(&a.0)))?;
    let name = timeline.names.get(name);
    let (function, library) = (name.text.to_string(), short_library(&name.file).to_owned());
    Some(NativeFunction { function, library, share: count as f64 / all as f64 })
}

/// Without its folder, its version and what kind of file it is: `libz` of `/lib/libz.so.1`, `_imaging` of `PIL/_imaging.cpython-312-x86_64-linux-gnu.so`.
fn short_library(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    let end = [".cpython-", ".abi3.", ".so"].iter().filter_map(|end| file.find(end)).min().unwrap_or(file.len());
    if end == 0 { file } else { &file[..end] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(samples: &str) -> Option<(String, f64)> {
        let timeline = Timeline::from_text(&format!("track main\n{samples}")).unwrap();
        let frames = Frames::new(&timeline);
        let stacks = (0..timeline.samples.len()).map(|index| timeline.samples.get(index).stack);
        native_function(&timeline, &frames, stacks).map(|found| (found.said(), found.share))
    }

    const RESIZE: &str = "sample 1ms active main@a.py:3>resize@a.py:7>_resize@/p/_imaging.cpython-312-x86_64-linux-gnu.so>ImagingResample@/p/_imaging.cpython-312-x86_64-linux-gnu.so";

    #[test]
    fn the_innermost_function_that_most_samples_are_in_is_named() {
        let library = "/p/_imaging.cpython-312-x86_64-linux-gnu.so";
        let text = format!("{RESIZE}>Horizontal@{library}\n{}>Vertical@{library}", RESIZE.replace("1ms", "2ms"));
        assert_eq!(named(&text), Some(("_imaging: ImagingResample".into(), 1.0)));
        let copies = RESIZE.replace("_resize@", "at::native::AVX2::direct_copy_kernel@");
        let copies =
            copies.replace("ImagingResample", "at::TensorIteratorBase::for_each").replace("_imaging.", "libtorch_cpu.");
        assert_eq!(named(&copies).unwrap().0, "libtorch_cpu: AVX2::direct_copy_kernel");
        // What has no name is not what it is called.
        let text = format!("{RESIZE}>[no~symbol]@{library}");
        assert_eq!(named(&text).unwrap().0, "_imaging: ImagingResample");
    }

    #[test]
    fn python_and_what_shares_evenly_has_none() {
        assert_eq!(named("sample 1ms active main@a.py:3>pure@a.py:9"), None);
        let text = "sample 1ms active main@a.py:3>f@/l/libz.so.1\nsample 2ms active main@a.py:3>g@/l/libz.so.1";
        assert_eq!(named(text), None);
        // Mostly Python.
        let text = "sample 1ms active main@a.py:3\nsample 2ms active main@a.py:3\nsample 3ms active main@a.py:3>f@/l/libz.so.1";
        assert_eq!(named(text), None);
        assert_eq!(named(""), None);
    }

    #[test]
    fn what_is_native_belongs_to_the_line_below() {
        let text = format!("track main\n{RESIZE}\nsample 2ms active main@a.py:3>numpy.dot");
        let timeline = Timeline::from_text(&text).unwrap();
        let frames = Frames::new(&timeline);
        let line = |index: usize| {
            let frame = timeline.stacks.frame(frames.python(timeline.samples.get(index).stack));
            timeline.names.text(frame.name).to_owned()
        };
        // A recorded C function is a place of its own.
        assert_eq!([line(0), line(1)], ["resize", "numpy.dot"]);
        assert_eq!(frames.python(StackIndex(99)), StackIndex(0));
    }

    #[test]
    fn libraries_are_called_as_people_call_them() {
        for (path, short) in [
            ("/lib/x86_64-linux-gnu/libz.so.1", "libz"),
            ("/x/_multiarray_umath.cpython-312-x86_64-linux-gnu.so", "_multiarray_umath"),
            ("/x/_native.abi3.so", "_native"),
            ("/usr/bin/python3.12", "python3.12"),
            ("libpython3.12.so.1.0", "libpython3.12"),
            ("[vdso]", "[vdso]"),
            ("", ""),
            (".so", ".so"),
        ] {
            assert_eq!(short_library(path), short);
        }
    }
}
