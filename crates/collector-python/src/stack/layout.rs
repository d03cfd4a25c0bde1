//! Where CPython keeps a thread's frames and what their code objects say, in bytes from the begin of each: by the version, for it is not the same
//! in any two. Nothing here is believed before `check` has compared what is read with what the interpreter says.

use workload::python_stack::lines::LineFormat;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// From the thread's state to its innermost frame, one step or two.
    pub current: &'static [usize],
    pub interpreter: usize,
    pub frame: Frame,
    pub code: Code,
    /// Where the characters of a string begin: of ASCII alone, and of others.
    pub ascii: usize,
    pub characters: usize,
    pub lines: LineFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    pub code: usize,
    pub previous: usize,
    pub instruction: usize,
    /// A byte that says of what kind it is. None: there is one kind only.
    pub owner: Option<usize>,
}

/// What `owner` is of a frame that stands for a call from C, and has no code.
pub const OWNED_BY_C: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code {
    pub first_line: usize,
    pub file: usize,
    /// The qualified name; of 3.10, which has none, the plain one.
    pub name: usize,
    pub lines: usize,
    /// Where the instructions begin, of which a frame has the address of one. None: it has their number.
    pub instructions: Option<usize>,
}

/// Of a release of CPython as it is built by default.
pub fn of(version: (u8, u8)) -> Option<&'static Layout> {
    match version {
        (3, 10) => Some(&PYTHON_3_10),
        (3, 11) => Some(&PYTHON_3_11),
        (3, 12) => Some(&PYTHON_3_12),
        (3, 13) => Some(&PYTHON_3_13),
        // Later ones have marks in their references to code. Who adds one runs the tests with it.
        _ => None,
    }
}

const PYTHON_3_10: Layout = Layout {
    current: &[24],
    interpreter: 16,
    frame: Frame { code: 32, previous: 24, instruction: 96, owner: None },
    code: Code { first_line: 40, file: 104, name: 112, lines: 120, instructions: None },
    ascii: 48,
    characters: 72,
    lines: LineFormat::Pairs,
};

const PYTHON_3_11: Layout = Layout {
    current: &[56, 8],
    interpreter: 16,
    frame: Frame { code: 32, previous: 48, instruction: 56, owner: None },
    code: Code { first_line: 72, file: 112, name: 128, lines: 136, instructions: Some(184) },
    ascii: 48,
    characters: 72,
    lines: LineFormat::Entries,
};

const PYTHON_3_12: Layout = Layout {
    current: &[56, 0],
    interpreter: 16,
    frame: Frame { code: 0, previous: 8, instruction: 56, owner: Some(70) },
    code: Code { first_line: 68, file: 112, name: 128, lines: 136, instructions: Some(192) },
    ascii: 40,
    characters: 56,
    lines: LineFormat::Entries,
};

const PYTHON_3_13: Layout =
    Layout { current: &[72], code: Code { instructions: Some(200), ..PYTHON_3_12.code }, ..PYTHON_3_12 };
