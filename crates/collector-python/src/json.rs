//! Tags and metadata as a JSON object, bounded in size and depth, always valid JSON. The user's own code (`__str__`)
//! may run here and may fail: what it raises stays here, unless it is an interrupt or an exit.

use super::text::with_text;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::fmt::Write;
use trace::event::MAX_TEXT;

const DEEPEST: usize = 16;

/// The object, and whether something had to be left out.
pub fn object(tags: &Bound<'_, PyAny>) -> PyResult<(String, bool)> {
    let mut json = Json { text: String::with_capacity(128), closers: 0, cut: false };
    if tags.is_instance_of::<PyDict>() {
        json.value(tags, 0)?;
    } else {
        json.text.push_str("{\"value\":");
        json.closers = 1;
        json.value(tags, 1)?;
        json.text.push('}');
    }
    Ok((json.text, json.cut))
}

struct Json {
    text: String,
    /// Brackets still to come: room is always kept for them.
    closers: usize,
    cut: bool,
}

impl Json {
    fn room(&self) -> usize {
        MAX_TEXT.saturating_sub(self.text.len() + self.closers)
    }

    fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if value.is_none() {
            self.text.push_str("null");
        } else if let Ok(flag) = value.cast_exact::<PyBool>() {
            self.text.push_str(if flag.is_true() { "true" } else { "false" });
        } else if value.is_instance_of::<PyString>() {
            self.string(value);
        } else if value.is_instance_of::<PyInt>() {
            match value.extract::<i64>() {
                Ok(number) => drop(write!(self.text, "{number}")),
                Err(_) => self.described(value)?,
            }
        } else if let Ok(number) = value.cast::<PyFloat>() {
            self.float(number.value());
        } else if let (Ok(dict), true) = (value.cast::<PyDict>(), depth < DEEPEST) {
            self.dict(dict, depth)?;
        } else if let (Ok(list), true) = (value.cast::<PyList>(), depth < DEEPEST) {
            // By number and not by iterator: the user's code may change the list while we read it.
            self.sequence(|at| list.get_item(at).ok(), depth)?;
        } else if let (Ok(tuple), true) = (value.cast::<PyTuple>(), depth < DEEPEST) {
            self.sequence(|at| tuple.get_item(at).ok(), depth)?;
        } else {
            match numpy_scalar(value) {
                Some(plain) => self.value(&plain, depth)?,
                None => self.described(value)?,
            }
        }
        Ok(())
    }

    fn float(&mut self, number: f64) {
        if number.is_finite() {
            let _ = write!(self.text, "{number:?}");
        } else {
            // JSON has no word for these.
            let _ = write!(self.text, "\"{number}\"");
        }
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
        self.text.push('{');
        self.closers += 1;
        let (size, mut place, mut first) = (dict.len(), 0, true);
        while let Some((key, value)) = next_pair(dict, &mut place) {
            let before = self.text.len();
            if !std::mem::take(&mut first) {
                self.text.push(',');
            }
            if key.is_instance_of::<PyString>() {
                self.string(&key)
            } else {
                self.described(&key)?
            }
            self.text.push(':');
            if !self.fits(before, |json| json.value(&value, depth + 1))? {
                break;
            }
            // The user's code that ran here may have changed it: then there is no going on.
            if dict.len() != size {
                self.cut = true;
                break;
            }
        }
        self.text.push('}');
        self.closers -= 1;
        Ok(())
    }

    fn sequence<'py>(&mut self, item: impl Fn(usize) -> Option<Bound<'py, PyAny>>, depth: usize) -> PyResult<()> {
        self.text.push('[');
        self.closers += 1;
        let mut number = 0;
        while let Some(value) = item(number) {
            let before = self.text.len();
            if number > 0 {
                self.text.push(',');
            }
            number += 1;
            if !self.fits(before, |json| json.value(&value, depth + 1))? {
                break;
            }
        }
        self.text.push(']');
        self.closers -= 1;
        Ok(())
    }

    /// Takes back what `write` added since `before` if it went over the limit.
    fn fits(&mut self, before: usize, write: impl FnOnce(&mut Json) -> PyResult<()>) -> PyResult<bool> {
        let closers = self.closers;
        let mut fits = self.room() > 0;
        if fits {
            write(self)?;
            fits = self.text.len() + self.closers <= MAX_TEXT;
        }
        if !fits {
            self.text.truncate(before);
            self.closers = closers;
            self.cut = true;
        }
        Ok(fits)
    }

    fn string(&mut self, string: &Bound<'_, PyAny>) {
        // SAFETY: attached, no exception is set, and callers checked that it is a str.
        unsafe {
            with_text(string.as_ptr(), |text, was_cut| {
                self.cut |= was_cut;
                self.quoted(text);
            });
        }
    }

    /// A string in quotes, cut to the room there is.
    fn quoted(&mut self, text: &str) {
        let room = self.room().saturating_sub(2);
        let end = self.text.len() + 1 + room;
        self.text.push('"');
        for character in text.chars() {
            let before = self.text.len();
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\t' => self.text.push_str("\\t"),
                '\r' => self.text.push_str("\\r"),
                '\0'..='\x1f' => drop(write!(self.text, "\\u{:04x}", character as u32)),
                _ => self.text.push(character),
            }
            if self.text.len() > end {
                self.text.truncate(before);
                self.cut = true;
                break;
            }
        }
        self.text.push('"');
    }

    /// Anything else, in the words of its own `str()`.
    fn described(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = array_in_words(value);
        match array.map_or_else(|| value.str().map(Ok), |words| Ok(Err(words))) {
            Ok(Ok(string)) => self.string(string.as_any()),
            Ok(Err(words)) => self.quoted(&words),
            Err(error) if error.is_instance_of::<PyException>(value.py()) => {
                self.quoted(&format!("<{} that cannot be written>", type_name(value)));
            }
            Err(interrupt) => return Err(interrupt),
        }
        Ok(())
    }
}

/// The next pair of a dict. Not by a list of all: there may be a million, and room for a hundred.
fn next_pair<'py>(dict: &Bound<'py, PyDict>, place: &mut isize) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: attached; what is borrowed becomes ours at once.
    unsafe {
        (ffi::PyDict_Next(dict.as_ptr(), place, &mut key, &mut value) != 0)
            .then(|| (Bound::from_borrowed_ptr(dict.py(), key), Bound::from_borrowed_ptr(dict.py(), value)))
    }
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

/// NumPy's numbers as Python's, where there is a Python number for it.
fn numpy_scalar<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let numpy = value.get_type().module().is_ok_and(|module| module.to_string_lossy() == "numpy");
    if !numpy || !value.getattr("shape").ok()?.extract::<Vec<i64>>().ok()?.is_empty() {
        return None;
    }
    let plain = value.call_method0("item").ok()?;
    let number = plain.is_exact_instance_of::<PyInt>()
        || plain.is_exact_instance_of::<PyFloat>()
        || plain.is_exact_instance_of::<PyBool>();
    number.then_some(plain)
}

/// Arrays and tensors by type, shape and element: printing one could copy it from a device and wait for that.
fn array_in_words(value: &Bound<'_, PyAny>) -> Option<String> {
    let kind = value.get_type();
    if !(kind.hasattr("shape").ok()? && kind.hasattr("dtype").ok()?) {
        return None;
    }
    let shape: Vec<i64> = value.getattr("shape").ok()?.extract().ok()?;
    let element = value.getattr("dtype").ok()?.str().ok()?.to_string();
    let scalar = shape.is_empty() && kind.module().is_ok_and(|module| module.to_string_lossy().starts_with("numpy"));
    (!scalar).then(|| format!("{}{shape:?} {element}", type_name(value)))
}
