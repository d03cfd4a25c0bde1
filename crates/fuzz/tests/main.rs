//! Every reader fuzzed with inputs made from seeds, through everything that follows: diagnosis, reports, exports, comparison,
//! replay. `cargo test` does some hundred of each; for longer: `FUZZ_SECONDS=60 cargo test -p inferscope-fuzz`.

mod events;
mod foreign;
mod own;
mod telemetry;
mod through;
mod words;
