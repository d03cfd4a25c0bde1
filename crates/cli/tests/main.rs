//! The tests of the command in one program: linking one for each file would take longer than running them. Apart from them is
//! `hostile`, which can be asked for alone and for longer.

mod analyze;
mod architecture;
mod asked_in_vain;
mod compare;
mod json_file;
mod memory;
mod mistyped;
mod newcomer;
mod newest;
mod no_reader;
mod odd_files;
mod odd_telemetry;
mod odd_traces;
mod plot;
mod run;
mod settings;
mod support;
mod verify;
mod whatif;
mod words;
