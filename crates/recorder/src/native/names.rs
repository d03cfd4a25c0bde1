//! Names of native functions as people read them: demangled, without the arguments of templates and functions, and without what the
//! compiler appended. And which of them are the interpreter's own: those that run Python code, and those that only pass calls on.

use crate::demangle::demangle;

/// What a function without a name is called.
pub(super) const UNNAMED: &str = "[no symbol]";
/// What code is called that the process made itself: a compiler in it has no file to name it by.
pub(super) const GENERATED: &str = "[generated code]";
/// Longer ones do not fit a line, nor a flame graph.
const LONGEST: usize = 160;

pub(super) fn readable(symbol: &str) -> String {
    match demangle(symbol) {
        Some(name) => cut(&without_arguments(&name)),
        // `inflate_table.constprop.0`: the same function, compiled for one caller. The version of a symbol is none of its name.
        None => {
            let end = symbol.find(['.', '@']).filter(|end| *end > 0).unwrap_or(symbol.len());
            cut(&symbol[..end])
        }
    }
}

/// Without what stands in angle brackets, without the arguments at the end, unnamed namespaces, and which lambda of the function it is.
/// Operators keep theirs: `operator<`, `operator()`.
fn without_arguments(name: &str) -> String {
    let name = name.replace("(anonymous namespace)::", "");
    let name = name.find("::{lambda").filter(|end| *end > 0).map_or(&*name, |end| &name[..end]);
    let mut short = String::with_capacity(name.len());
    let (mut angles, mut rounds) = (0u32, 0u32);
    for (at, letter) in name.char_indices() {
        let operator = short.ends_with("operator") || short.ends_with("operator<") || short.ends_with("operator>");
        match letter {
            '<' | '>' if angles == 0 && rounds == 0 && operator => short.push(letter),
            '(' if angles == 0 && rounds == 0 && operator && name[at..].starts_with("()") => {
                rounds += 1;
                short.push_str("()");
            }
            '(' => rounds += 1,
            ')' => rounds = rounds.saturating_sub(1),
            '<' if rounds == 0 => angles += 1,
            '>' if rounds == 0 && !name[..at].ends_with('-') => angles = angles.saturating_sub(1),
            _ if angles == 0 && rounds == 0 => short.push(letter),
            _ => {}
        }
    }
    // `f() const`, `f() [clone .cold]`.
    let end = short.find(" [clone").unwrap_or(short.len());
    let short = short[..end].trim_end().trim_end_matches(" const").trim_end();
    if short.is_empty() { name.to_owned() } else { short.to_owned() }
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

/// Runs Python code: what is below it on the stack was called by lines further out.
pub(super) fn runs_python(function: &str) -> bool {
    // From Python 3.14 on the instructions may be functions of their own.
    function.starts_with("_PyEval_EvalFrame") || function.starts_with("_TAIL_CALL_")
}

/// Functions of the interpreter that call what they were given and do nothing else.
const PASS_ON: [&str; 14] = [
    "PyObject_Call",
    "_PyObject_Call",
    "PyObject_Vectorcall",
    "_PyObject_Vectorcall",
    "_PyObject_MakeTpCall",
    "_PyVectorcall_Call",
    "PyVectorcall_Call",
    "_PyFunction_Vectorcall",
    "cfunction_",
    "method_vectorcall",
    "vectorcall_",
    "object_vacall",
    "wrap_",
    "_PyEval_",
];

pub(super) fn passes_on(function: &str) -> bool {
    PASS_ON.iter().any(|start| function.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_people_write_them() {
        for (symbol, name) in [
            ("inflate", "inflate"),
            ("inflate_table.constprop.0", "inflate_table"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            (".plt", ".plt"),
            ("_ZN2at6native6linearERKNS_6TensorES3_RKSt8optionalIS1_E", "at::native::linear"),
            ("_ZN2at6native12_GLOBAL__N_117vectorized_loop2dIfEEvPfl", "at::native::vectorized_loop2d"),
            ("_ZZN2at6native4sortEvENKUlvE_clEv", "at::native::sort"),
            ("_ZNKSt8functionIFvvEEclEv", "std::function::operator()"),
            ("_ZN1AltERKS_", "A::operator<"),
            ("_ZN1AptEv", "A::operator->"),
        ] {
            assert_eq!(readable(symbol), name, "{symbol}");
        }
        let long = "a".repeat(500);
        assert_eq!(readable(&long).chars().count(), LONGEST + 1);
    }

    #[test]
    fn odd_names_do_no_harm() {
        for odd in ["", "<", ">", "((((", "))))", "operator<<", "_ZN", "é<é", "a<b", "a(b", "(", "<>"] {
            let _ = readable(odd);
            let _ = without_arguments(odd);
        }
    }

    #[test]
    fn the_interpreter_is_told_from_what_it_calls() {
        assert!(runs_python("_PyEval_EvalFrameDefault") && runs_python("_TAIL_CALL_CALL_KW"));
        assert!(!runs_python("PyEval_RestoreThread") && !runs_python("inflate"));
        assert!(passes_on("PyObject_Vectorcall") && passes_on("cfunction_vectorcall_FASTCALL"));
        assert!(!passes_on("sre_ucs1_match") && !passes_on("list_sort"));
    }
}
