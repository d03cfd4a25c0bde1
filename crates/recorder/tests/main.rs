//! The tests that start recorders and workloads as processes of their own, in one program, which plays those roles too. Apart
//! from them are `recording`, which records in its own process and forks there, and `signals`, which needs the main thread.

mod device;
mod gpu;
mod kills;
mod roles;

#[test]
fn role() {
    roles::play();
}
