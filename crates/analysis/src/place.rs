//! A place in the program: where something was seen to happen.

/// Where in the program. What is not known is not said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    pub module: Option<String>,
    pub kernel: Option<String>,
    pub api: Option<String>,
}
