//! The tests of the readers in one program: linking one for each file would take longer than running them.

mod damage;
mod inferscope_json;
mod inferscope_json_damage;
mod kineto;
mod kineto_damage;
mod nsys;
mod open;
mod ranks;
mod snapshot;
mod snapshot_damage;
mod support;
